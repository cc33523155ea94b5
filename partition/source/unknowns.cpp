#include "partition/source/unknowns.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "kernels/base/memory_limits.h"
#include "partition/files/output_file.h"

namespace shardmat {
namespace {

/// The different numbers among those that get() takes from the unknowns, ascending.
template <class Get>
HostVector<std::int64_t> different(const UnknownList& unknowns, Get get) {
  HostVector<std::int64_t> numbers(unknowns.size());
  std::transform(unknowns.begin(), unknowns.end(), numbers.begin(), get);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

}  // namespace

UnknownStatistics statistics_of(const UnknownList& unknowns) {
  require_host_memory(8 * std::ssize(unknowns), "counting nodes");
  UnknownStatistics result;
  result.count = std::ssize(unknowns);
  result.nodes = std::ssize(different(unknowns, [](const NodeUnknown& one) { return one.node; }));
  for (const std::int64_t dof : different(unknowns, [](const NodeUnknown& one) { return one.dof; })) {
    if (!result.dofs.empty() && result.dofs.back().second == dof - 1) result.dofs.back().second = dof;
    else result.dofs.emplace_back(dof, dof);
  }
  return result;
}

std::filesystem::path unknowns_file(std::filesystem::path matrix) { return matrix += ".dof"; }

void write_unknowns(const AtomicFile& file, const UnknownList& unknowns) {
  OutputFile out(file);
  fmt::memory_buffer line;
  for (const NodeUnknown& one : unknowns) {
    line.clear();
    fmt::format_to(std::back_inserter(line), "{}.{}\n", one.node, one.dof);
    out.append({line.data(), line.size()});
  }
  out.close();
}

}  // namespace shardmat
