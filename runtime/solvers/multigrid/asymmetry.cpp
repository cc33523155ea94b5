#include "runtime/solvers/multigrid/asymmetry.h"

#include <array>
#include <cmath>
#include <mutex>
#include <span>

#include "kernels/base/parallel.h"
#include "partition/generators/counter_random.h"

namespace shardmat::multigrid {
namespace {

constexpr int kPairs = 32;

constexpr CounterRandom kSigns(0xa5, 0);  ///< bits of an unknown: below those of x, above those of y

}  // namespace

double asymmetry(const NodeRows& a) {
  std::array<double, kPairs + 1> sums{};  // then the square of the norm
  std::mutex mutex;
  parallel_ranges(a.count(), 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    std::array<double, kPairs + 1> mine{};
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k)
        for (int r = 0; r < a.row_size; ++r)
          for (int c = 0; c < a.col_size; ++c) {
            const double value = a.block(k)[r * a.col_size + c];
            mine[kPairs] += value * value;
            const std::uint64_t row = kSigns.bits(a.rows->global(i) * a.row_size + r),
                                column = kSigns.bits(a.cols->global(a.column[at(k)]) * a.col_size + c);
            const std::uint64_t one = row ^ (column >> 32), other = column ^ (row >> 32);  // signs of x_i·y_j and x_j·y_i
            for (int p = 0; p < kPairs; ++p)
              mine[static_cast<std::size_t>(p)] +=
                  value * 2 * (static_cast<double>(other >> p & 1) - static_cast<double>(one >> p & 1));
          }
    const std::lock_guard lock(mutex);
    for (std::size_t p = 0; p < sums.size(); ++p) sums[p] += mine[p];
  });
  a.rows->ranks().all_reduce(std::span<double>(sums), Reduction::sum);
  double squares = 0;
  for (int p = 0; p < kPairs; ++p) squares += sums[static_cast<std::size_t>(p)] * sums[static_cast<std::size_t>(p)] / kPairs;
  return sums[kPairs] > 0 ? std::sqrt(squares / sums[kPairs]) : 0;
}

}  // namespace shardmat::multigrid
