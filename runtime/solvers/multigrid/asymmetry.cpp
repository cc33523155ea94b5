#include "runtime/solvers/multigrid/asymmetry.h"

#include <array>
#include <cmath>
#include <mutex>
#include <span>

#include "kernels/base/parallel.h"
#include "kernels/host/lanes.h"
#include "partition/generators/counter_random.h"
#include "runtime/solvers/multigrid/blocks.h"

namespace shardmat::multigrid {
namespace {

constexpr int kPairs = 8;
using Pairs = Lanes<double, kPairs>;  ///< one for each pair
using Bits = Lanes<std::uint64_t, kPairs>;

constexpr CounterRandom kSigns(0xa5, 0);  ///< bits of an unknown: below those of x, above those of y

/// 1 or -1 for each pair, from the bits `first`, `first` + 1 ….
SHARDMAT_INLINE Pairs signs_of(std::uint64_t bits, int first) {
  constexpr Bits kPlace = {63, 62, 61, 60, 59, 58, 57, 56};
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63, kOne = std::uint64_t{0x3ff} << 52;
  return reinterpret_cast<Pairs>(((Bits{} + (bits >> first)) << kPlace & kSign) | kOne);
}

/// Adds x·A·y − y·A·x of each pair, and the square of the norm behind them, over rows from `begin` to `end`.
template <int kS>
SHARDMAT_INLINE void add_rows(const NodeRows& a, const std::uint64_t* bits, std::int64_t begin, std::int64_t end,
                              double* sums) {
  constexpr int kMost = kS > 0 ? kS : kMostUnknowns;
  const int s = kS > 0 ? kS : a.row_size;
  Pairs difference{};
  double squares = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    Pairs of_x[kMost] = {}, of_y[kMost] = {};  // the rows times x and y
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
      const double* const block = a.block(k);
      for (int c = 0; c < s; ++c) {
        const std::uint64_t of_column = bits[std::int64_t{a.column[at(k)]} * s + c];
        const Pairs x = signs_of(of_column, 0), y = signs_of(of_column, 32);
        for (int r = 0; r < s; ++r) {
          const double value = block[r * s + c];
          of_x[r] += value * x, of_y[r] += value * y;
          squares += value * value;
        }
      }
    }
    for (int r = 0; r < s; ++r) {
      const std::uint64_t of_row = bits[i * s + r];
      difference += signs_of(of_row, 0) * of_y[r] - signs_of(of_row, 32) * of_x[r];
    }
  }
  for (int p = 0; p < kPairs; ++p) sums[p] += difference[p];
  sums[kPairs] += squares;
}

}  // namespace

double asymmetry(const NodeRows& a) {
  const std::int64_t s = a.row_size;
  HostVector<std::uint64_t> bits(at(a.cols->local_count() * s));
  parallel_ranges(a.cols->local_count(), 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; ++j)
      for (std::int64_t c = 0; c < s; ++c) bits[at(j * s + c)] = kSigns.bits(a.cols->global(j) * s + c);
  });
  std::array<double, kPairs + 1> sums{};  // then the square of the norm
  std::mutex mutex;
  parallel_ranges(a.count(), 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    std::array<double, kPairs + 1> mine{};
    with_sizes(a.row_size, a.row_size, [&]<int kS>(Known<kS>, auto) {
      run_compiled_for(
          best_isa(), [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA { add_rows<kS>(a, bits.data(), begin, end, mine.data()); });
    });
    const std::lock_guard lock(mutex);
    for (std::size_t p = 0; p < sums.size(); ++p) sums[p] += mine[p];
  });
  a.rows->ranks().all_reduce(std::span<double>(sums), Reduction::sum);
  double squares = 0;
  for (int p = 0; p < kPairs; ++p) squares += sums[static_cast<std::size_t>(p)] * sums[static_cast<std::size_t>(p)] / kPairs;
  return sums[kPairs] > 0 ? std::sqrt(squares / sums[kPairs]) : 0;
}

}  // namespace shardmat::multigrid
