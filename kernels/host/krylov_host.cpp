// Steps of Krylov methods on host threads. A pass is cut into blocks of entries; how many depends on their number alone.
#include <algorithm>
#include <cstddef>
#include <new>
#include <type_traits>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/host/basis_tiles.h"
#include "kernels/host/lanes.h"
#include "kernels/krylov/all_steps.h"
#include "kernels/krylov/passes.h"

namespace shardmat::krylov {
namespace {

constexpr std::int64_t kEntriesOfABlock = 4096;
constexpr std::int64_t kRowsAtOnce = 256;  // of several columns, so that a column's next entries are in the cache

/// Items [begin, end) of one column, `stride` entries apart.
template <class Step, class Index>
SHARDMAT_INLINE Sums<Step::kSums> sum_column(const Step& step, const typename Step::Factors& factors, std::int64_t begin,
                                             std::int64_t end, int column, Index stride) {
  static_assert(Step::kSums <= 3 || Step::kSums == 8);
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3, s4, s5, s6, s7)
  for (std::int64_t i = begin; i < end; ++i) {
    const Sums<Step::kSums> sums = step.entry(factors, {i, i * stride + column, column});
    if constexpr (Step::kSums > 0) s0 += sums.of[0];
    if constexpr (Step::kSums > 1) s1 += sums.of[1];
    if constexpr (Step::kSums > 2) s2 += sums.of[2];
    if constexpr (Step::kSums > 3) s3 += sums.of[3], s4 += sums.of[4], s5 += sums.of[5];
    if constexpr (Step::kSums > 3) s6 += sums.of[6], s7 += sums.of[7];
  }
  const double found[] = {s0, s1, s2, s3, s4, s5, s6, s7};
  Sums<Step::kSums> all;
  std::copy_n(found, Step::kSums, all.of);
  return all;
}

/// Items [begin, end) of several columns. These are not compiled for further instruction sets: strides would gather.
template <class Step>
void run_columns(const Step& step, const typename Step::Factors* factors, std::int64_t begin, std::int64_t end, int columns,
                 Sums<Step::kSums>* sums) {
  std::fill_n(sums, columns, Sums<Step::kSums>{});
  for (std::int64_t first = begin; first < end; first += kRowsAtOnce)
    for (int j = 0; j < columns; ++j) {
      if (!factors[j].works) continue;
      const auto some = sum_column(step, factors[j], first, std::min(end, first + kRowsAtOnce), j, columns);
      for (int s = 0; s < Step::kSums; ++s) sums[j].of[s] += some.of[s];
    }
}

/// One column. Memory is the limit for long vectors: one instruction set above the baseline is enough.
template <class Step>
void run_column(const Step& step, const typename Step::Factors& factors, std::int64_t begin, std::int64_t end,
                [[maybe_unused]] Isa isa, Sums<Step::kSums>* sums) {
  if (!factors.works) {
    *sums = {};
    return;
  }
  const auto body = [&](auto) SHARDMAT_INLINE_LAMBDA {
    if constexpr (requires { run_tile(step, factors, begin, kTile, *sums); }) {
      *sums = {};
      for (std::int64_t first = begin; first < end; first += kTile)
        run_tile(step, factors, first, static_cast<int>(std::min<std::int64_t>(kTile, end - first)), *sums);
    } else {
      *sums = sum_column(step, factors, begin, end, 0, std::integral_constant<int, 1>{});
    }
  };
#if defined(__x86_64__)
  if (isa >= Isa::avx2) return run_avx2(body);
#endif
  body(Baseline{});
}

template <class Step>
constexpr std::int64_t work_of_item() {
  if constexpr (requires { Step::kWork; }) return Step::kWork;
  else return 1;
}

/// A pass over blocks of items, without the type of its step: every line that does not need the type is compiled once, not
/// for each of the steps.
struct Pass {
  std::int64_t items, work, blocks;
  int columns, sums;  ///< sums: of a column, at least 1
  bool backward;
  double* partial;
  /// Runs items [begin, end) and writes their sums of all columns.
  void (*run_block)(const Pass& pass, const void* step, const void* factors, std::int64_t begin, std::int64_t end, Isa isa,
                    double* sums);

  void run(const void* step, const void* factors) const {
    const Isa isa = instruction_set();  // of this thread
    parallel_ranges(blocks, grain_of(blocks, work), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t b = backward ? first + last - 1 - i : i;
        run_block(*this, step, factors, items * b / blocks, items * (b + 1) / blocks, isa, partial + b * columns * sums);
      }
    });
  }

  /// Adds the sums of a column over all blocks to `all`.
  void add_blocks(int column, double* all) const {
    for (std::int64_t b = 0; b < blocks; ++b)
      for (int s = 0; s < sums; ++s) all[s] += partial[(b * columns + column) * sums + s];
  }
};

template <class Step>
void run_block(const Pass& pass, const void* of_step, const void* of_factors, std::int64_t begin, std::int64_t end, Isa isa,
               double* of_sums) {
  const Step& step = *static_cast<const Step*>(of_step);
  const auto* const factors = static_cast<const typename Step::Factors*>(of_factors);
  auto* const sums = reinterpret_cast<Sums<Step::kSums>*>(of_sums);
  if (pass.columns == 1) run_column(step, *factors, begin, end, isa, sums);
  else run_columns(step, factors, begin, end, pass.columns, sums);
}

}  // namespace

template <class Step>
void run_host(const Step& step, std::int64_t items, int columns, double* partial) {
  if constexpr (std::is_base_of_v<NoEntries, Step>) {
    for (int j = 0; j < columns; ++j) step.finish(j, {});
  } else {
    using Factors = typename Step::Factors;
    static_assert(std::is_trivially_copyable_v<Factors> && alignof(Factors) <= alignof(std::max_align_t));
    std::vector<std::byte> memory(static_cast<std::size_t>(columns) * sizeof(Factors));
    for (int j = 0; j < columns; ++j)
      new (memory.data() + static_cast<std::size_t>(j) * sizeof(Factors)) Factors(step.factors(j));
    const std::int64_t work = items * columns * work_of_item<Step>(),
                       blocks = std::clamp<std::int64_t>(work / kEntriesOfABlock, 1, most_blocks<Step>());
    const Pass pass{items, work, blocks, columns, std::max(1, Step::kSums), is_backward<Step>(), partial, run_block<Step>};
    pass.run(&step, memory.data());
    for (int j = 0; j < columns; ++j) {
      Sums<Step::kSums> all;
      if constexpr (Step::kSums > 0) pass.add_blocks(j, all.of);
      step.finish(j, all);
    }
  }
}

template <class Step>
void Passes::run(const Step& step, std::int64_t items, Stream& stream) const {
#ifdef SHARDMAT_HAVE_CUDA
  if (stream.device().backend == Backend::cuda) return run_cuda(step, items, columns_, partial_.as<double>(), stream);
#else
  static_cast<void>(stream);
#endif
  if constexpr (is_for_gpus<Step>()) throw Error(ErrorKind::internal, "a step for GPUs was run on the host");
  else run_host(step, items, columns_, partial_.as<double>());
}

#define SHARDMAT_MAKE(...) template void Passes::run(const __VA_ARGS__&, std::int64_t, Stream&) const;
SHARDMAT_STEPS_OF_TYPE(SHARDMAT_MAKE, float)
SHARDMAT_STEPS_OF_TYPE(SHARDMAT_MAKE, double)
SHARDMAT_SCALAR_STEPS(SHARDMAT_MAKE)

}  // namespace shardmat::krylov
