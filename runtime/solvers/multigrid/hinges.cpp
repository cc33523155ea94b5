#include "runtime/solvers/multigrid/hinges.h"

#include "kernels/base/parallel.h"
#include "kernels/blocks/dense_blocks.h"
#include "runtime/solvers/multigrid/blocks.h"

namespace shardmat::multigrid {
HostVector<char> find_hinges(const NodeRows& a, const HostVector<double>& inverse) {
  const int s = a.row_size;
  HostVector<char> hinges(at(a.blocks()), 0);
  parallel_ranges(a.count(), a.grain(), [&](std::int64_t begin, std::int64_t end) {
    with_sizes(s, s, [&]<int kS, int kM>(Known<kS>, Known<kM>) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t diagonal = a.find(i, static_cast<std::int32_t>(i));
        for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
          const std::int32_t j = a.column[at(k)];
          if (j >= a.count() || j == i) continue;
          const std::int64_t other = a.find(j, j);
          hinges[at(k)] = diagonal < 0 || other < 0 ||
                          blocks::is_hinge<kS>(blocks::kFree, a.block(k), a.block(diagonal), inverse.data() + i * s * s,
                                               a.block(other), inverse.data() + std::int64_t{j} * s * s, s);
        }
      }
    });
  });
  return hinges;
}

}  // namespace shardmat::multigrid
