// The matrices that benchmarks measure: what is named on the command line, or one of each class in three sizes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/progress.h"
#include "kernels/matrix/csr.h"

namespace shardmat::tools {

/// `tiny` takes seconds on two cores, `small` a minute; `full` is many times the caches of a GPU.
enum class Size { tiny, small, full };
/// Parses tiny, small or full.
Size parse_size(std::string_view text);

/// A kind of matrix for which formats differ.
struct MatrixClass {
  std::string_view name;               ///< "elasticity"
  std::string_view specifications[3];  ///< of a generator, by Size
};

/// What the benchmark calls a matrix, and the file or generator it comes from.
struct NamedMatrix {
  std::string name, argument;
};

/// The arguments as they are, or all of `classes` in a size if there are none.
std::vector<NamedMatrix> matrices_from(const std::vector<std::string>& arguments, std::span<const MatrixClass> classes,
                                       Size size);

/// Finite elements, stencils, graphs, bands, diagonals.
std::span<const MatrixClass> kernel_classes();

/// All rows of a matrix file of any kind or of a generator. Throws what the reader throws.
HostCsr load_matrix(const std::string& argument, const Progress& progress);

}  // namespace shardmat::tools
