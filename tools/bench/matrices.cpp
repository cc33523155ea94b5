#include "tools/bench/matrices.h"

#include "partition/generators/generator.h"
#include "partition/input_kind.h"
#include "partition/readers/reader.h"
#include "partition/shard/shard_file.h"

namespace shardmat::tools {
namespace {

constexpr MatrixClass kKernelClasses[] = {
    {"elasticity", {"elasticity:n=8", "elasticity:n=32", "elasticity:n=96"}},
    {"poisson27", {"poisson27:n=12", "poisson27:n=64", "poisson27:n=192"}},
    {"poisson7", {"poisson7:n=16", "poisson7:n=96", "poisson7:n=256"}},
    {"rmat", {"rmat:scale=11", "rmat:scale=17", "rmat:scale=22"}},
    {"random", {"random:n=2000,row_nnz=32", "random:n=200000,row_nnz=32", "random:n=4194304,row_nnz=32"}},
    {"5 diagonals",
     {"diagonals:n=5000,spacing=70", "diagonals:n=1000000,spacing=1000", "diagonals:n=16777216,spacing=4096"}},
    {"7 diagonals",
     {"diagonals:n=5000,count=7,spacing=300", "diagonals:n=1000000,count=7,spacing=10000",
      "diagonals:n=16777216,count=7,spacing=65536"}},
    {"dense band", {"banded:n=3000", "banded:n=200000", "banded:n=4000000"}},
    {"sparse band",
     {"banded:n=2000,bandwidth=256,density=0.06", "banded:n=100000,bandwidth=512,density=0.03",
      "banded:n=4000000,bandwidth=512,density=0.03"}},
};

}  // namespace

Size parse_size(std::string_view text) { return text == "tiny" ? Size::tiny : text == "small" ? Size::small : Size::full; }

std::span<const MatrixClass> kernel_classes() { return kKernelClasses; }

std::vector<NamedMatrix> matrices_from(const std::vector<std::string>& arguments, std::span<const MatrixClass> classes,
                                       Size size) {
  std::vector<NamedMatrix> all;
  for (const std::string& argument : arguments) all.push_back({argument, argument});
  if (arguments.empty())
    for (const MatrixClass& one : classes)
      all.push_back({std::string(one.name), std::string(one.specifications[static_cast<int>(size)])});
  return all;
}

HostCsr load_matrix(const std::string& argument, const Progress& progress) {
  const InputKind kind = kind_of_input(argument);
  if (kind == InputKind::generated) {
    const auto source = make_generator(argument);
    return source->read_rows(0, source->rows());
  }
  if (kind == InputKind::hdf5 && !is_foreign_hdf5(argument)) {
    const auto file = ShardFile::open(argument);
    return file->read_rows(0, file->rows());
  }
  ReadOptions options;
  options.progress = progress;
  return read_matrix(argument, options);
}

}  // namespace shardmat::tools
