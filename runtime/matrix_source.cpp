#include "runtime/matrix_source.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "kernels/base/error.h"
#include "partition/generators/generator.h"
#include "partition/generators/mesh.h"
#include "partition/hdf5_kind.h"
#include "partition/missing_file.h"
#include "partition/readers/npz_kind.h"
#include "partition/readers/reader.h"
#include "partition/replaceable.h"
#include "runtime/hdf5_on_ranks.h"

namespace shardmat {

namespace {

/// A shard file's name is only known by trying; what other programs' files look like is known to the readers.
void refuse_other_formats(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) fail_missing(path);
  if (path.extension() == ".npz" && kind_of_npz(path) == NpzKind::graphs)
    throw Error(ErrorKind::input, fmt::format("{} is a batch of graphs, not one matrix; multiply it with: shardmat batch {}",
                                              path.string(), path.string()));
  for (const Reader& reader : readers())
    if (reader.accepts(path))
      throw Error(ErrorKind::input,
                  fmt::format("{} is a {} file, not a shard file; make one with: shardmat partition {} {}", path.string(),
                              reader.name, path.string(), path.stem().stem().string() + ".h5"));
  const FileContent content = content_of(path);
  if (!has_hdf5_suffix(path) && content != FileContent::hdf5 && std::filesystem::is_regular_file(path, error))
    throw Error(ErrorKind::input,
                fmt::format("{} is no matrix that can be multiplied; shard files and Binsparse matrices (.h5) "
                            "can. shardmat partition makes a shard file from .mtx, .mtx.gz or .npz",
                            path.string()));
}

}  // namespace

std::string order_text(const MatrixSource& source) {
  if (source.file == nullptr || !source.file->permuted()) return "no";
  const RowOrder order = source.file->row_order();
  return order == RowOrder::by_length ? "globally in the file" : std::string(title(order)) + " in the file";
}

MatrixSource open_matrix(const std::string& argument, Communicator& communicator, bool allow_nonfinite) {
  MatrixSource source;
  bool generated = false;
  communicator.together([&] {
    generated = is_generator_specification(argument) && !std::filesystem::exists(argument);
    if (!generated) refuse_other_formats(argument);
  });
  if (!generated) describe_on_all_ranks(Hdf5Input{argument, ShardFile::objects()}, communicator);
  else if (const std::string mesh = mesh_of(argument); !mesh.empty())
    describe_on_all_ranks(Hdf5Input{mesh, tet_mesh_objects()}, communicator);
  communicator.together([&] {
    if (generated) {
      source.rows = make_generator(argument);
      source.access = "each rank, which generates its own rows";
      return;
    }
    auto file = ShardFile::open(argument, allow_nonfinite);
    source.access = "each rank, its own rows";
    source.file = file.get();
    source.rows = std::move(file);
  });
  return source;
}

}  // namespace shardmat
