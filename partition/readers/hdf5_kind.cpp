#include "partition/readers/hdf5_kind.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "partition/hdf5/shard_file_format.h"
#include "partition/readers/matrix_market.h"

namespace shardmat {

Hdf5Kind kind_of(const Hdf5File& file) {
  if (file.has_attribute(shard_format::kRoot, shard_format::kDescriptor))
    return file.has(shard_format::kGroup) ? Hdf5Kind::shard_file : Hdf5Kind::binsparse;
  if (file.has_attribute(shard_format::kRoot, "shardmat_batch")) return Hdf5Kind::batch;
  if (file.has("/points") && file.has("/tetrahedra")) return Hdf5Kind::mesh;
  return Hdf5Kind::other;
}

std::string describe(const Hdf5File& file) {
  switch (kind_of(file)) {
    case Hdf5Kind::shard_file:
      return "a matrix in a shard file";
    case Hdf5Kind::binsparse:
      return "a matrix in a Binsparse file";
    case Hdf5Kind::batch:
      return "a batch of small matrices";
    case Hdf5Kind::mesh:
      return "a mesh of tetrahedra";
    case Hdf5Kind::other:
      break;
  }
  constexpr std::size_t kShown = 6;
  std::vector<std::string> names = file.children(shard_format::kRoot);
  if (names.empty()) return "an HDF5 file without datasets";
  const bool more = names.size() > kShown;
  if (more) names.resize(kShown);
  std::string text = "an HDF5 file with ";
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}{}",
                        i == 0                         ? ""
                        : i + 1 < names.size() || more ? ", "
                                                       : " and ",
                        matrix_market::quote("/" + names[i]));
  return more ? text + ", …" : text;
}

namespace {

std::string mesh_remedy(const Hdf5File& file) {
  return fmt::format("make a matrix of it with: shardmat generate elasticity --mesh {} MATRIX.h5", file.path());
}

}  // namespace

std::string why_no_matrix(const Hdf5File& file) {
  const Hdf5Kind kind = kind_of(file);
  if (kind == Hdf5Kind::batch)
    return fmt::format("is {}, not one matrix; multiply it with: shardmat batch {}", describe(file), file.path());
  if (kind == Hdf5Kind::mesh) return fmt::format("is {}, not a matrix; {}", describe(file), mesh_remedy(file));
  return fmt::format(
      "is {} and no matrix: its root has no attribute 'binsparse'. Shard files, Binsparse matrices and groups of AnnData "
      "and 10x Genomics are read: `shardmat partition` makes a shard file from .mtx, .mtx.gz or .npz, and "
      "partition/shard-file.md of the sources has the lines of Python that write one",
      describe(file));
}

std::string why_no_batch(const Hdf5File& file) {
  const Hdf5Kind kind = kind_of(file);
  if (kind == Hdf5Kind::shard_file || kind == Hdf5Kind::binsparse)
    return fmt::format("is {}, not a batch; multiply it with: shardmat multiply {}", describe(file), file.path());
  if (kind == Hdf5Kind::mesh) return fmt::format("is {}, not a batch; {}", describe(file), mesh_remedy(file));
  return fmt::format(
      "is {} and no batch: its root has no attribute 'shardmat_batch'. `shardmat batch SOURCE --save FILE.h5` writes "
      "batch files",
      describe(file));
}

DatasetName split_dataset_name(const std::string& name) {
  for (const std::string_view mark : {".h5:", ".hdf5:"})
    if (const std::size_t at = name.rfind(mark); at != std::string::npos) {
      const std::string dataset = name.substr(at + mark.size());
      return {name.substr(0, at + mark.size() - 1), dataset.starts_with('/') ? dataset : "/" + dataset};
    }
  return {name, ""};
}

bool has_hdf5_suffix(const std::filesystem::path& path) { return path.extension() == ".h5" || path.extension() == ".hdf5"; }

}  // namespace shardmat
