// What finite-element programs call the rows of a matrix: the node and the degree of freedom of each unknown.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/base/host_vector.h"

namespace shardmat {

class AtomicFile;

/// Abaqus and CalculiX: degrees of freedom 1 to 3 are displacements, 4 to 6 rotations; temperatures are 11 in Abaqus and 0
/// in CalculiX.
struct NodeUnknown {
  std::int64_t node, dof;
  auto operator<=>(const NodeUnknown&) const = default;
};

/// Entry i belongs to row i of the matrix in its original order. A pair may come several times: CalculiX makes solids of
/// shells and beams, and calls the unknowns of such a solid by the nodes of the shell.
using UnknownList = HostVector<NodeUnknown>;

struct UnknownStatistics {
  std::int64_t count = 0;                                   ///< entries of the list
  std::int64_t nodes = 0;                                   ///< different nodes
  std::vector<std::pair<std::int64_t, std::int64_t>> dofs;  ///< ranges of the degrees of freedom: first, last; ascending
};
/// Takes 8 bytes of memory an entry. Throws Error(resources) before allocating more memory than there is.
UnknownStatistics statistics_of(const UnknownList& unknowns);

/// The file with the unknowns of the matrix file `matrix`: "A.mtx" has "A.mtx.dof". CalculiX's own job.dof, which job.sti
/// needs, is never meant.
std::filesystem::path unknowns_file(std::filesystem::path matrix);

/// Writes the temporary of `file` as CalculiX writes a .dof file: a line "node.dof" for each row. Throws Error(resources).
void write_unknowns(const AtomicFile& file, const UnknownList& unknowns);

}  // namespace shardmat
