#include "partition/input_kind.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "partition/generators/generator.h"
#include "partition/hdf5_kind.h"
#include "partition/readers/reader.h"
#include "partition/replaceable.h"

namespace shardmat {

InputKind kind_of_input(const std::string& argument) {
  const std::filesystem::path path(argument);
  std::error_code ignored;
  if (is_generator_specification(argument) && !std::filesystem::exists(path, ignored)) return InputKind::generated;
  if (has_hdf5_suffix(path)) return InputKind::hdf5;
  const auto known = readers();
  if (std::any_of(known.begin(), known.end(), [&](const Reader& reader) { return reader.accepts(path); }))
    return InputKind::foreign;
  return content_of(path) == FileContent::hdf5 ? InputKind::hdf5 : InputKind::foreign;
}

}  // namespace shardmat
