#include "partition/input_kind.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "partition/files/object_name.h"
#include "partition/files/rank_files.h"
#include "partition/generators/generator.h"
#include "partition/hdf5/binsparse.h"
#include "partition/readers/hdf5_kind.h"
#include "partition/readers/reader.h"
#include "partition/readers/replaceable.h"
#include "partition/shard/shard_file.h"

namespace shardmat {

InputKind kind_of_input(const std::string& argument, const InputChoices& choices) {
  if (const std::string format = format_of(argument, choices); !format.empty())
    return require_input_format(format) ? InputKind::foreign : InputKind::hdf5;
  const ObjectName name = split_object_name(argument);
  const std::filesystem::path path(name.file);
  if (name.object.empty() && is_generator_specification(argument) && !names_input_file(argument))
    return InputKind::generated;
  if (!name.object.empty() || is_rank_pattern(name.file)) return InputKind::foreign;
  if (has_hdf5_suffix(path)) return InputKind::hdf5;
  const auto known = readers();
  if (std::any_of(known.begin(), known.end(), [&](const Reader& reader) { return !reader.hdf5 && reader.accepts(path); }))
    return InputKind::foreign;
  return content_of(path) == FileContent::hdf5 ? InputKind::hdf5 : InputKind::foreign;
}

bool is_foreign_hdf5(const std::string& path) {
  const Hdf5File file = Hdf5File::open(path, ShardFile::objects());
  const Hdf5Kind kind = kind_of(file);
  return kind == Hdf5Kind::other || (kind == Hdf5Kind::binsparse && binsparse::has_other_form(file));
}

}  // namespace shardmat
