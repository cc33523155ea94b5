#include "tools/bench/cache_model.h"

#include <algorithm>
#include <array>

namespace shardmat::tools {
namespace {

constexpr std::int64_t kLineBytes = 128, kBlock = 256, kWarp = 32, kLeastBlocks = 64;
constexpr int kWays = 4;
constexpr std::int64_t kMostReads = std::int64_t{1} << 22;

enum Array : std::int64_t { offsets = 1, columns = 2, values = 3, vector_x = 4, sums = 5 };

/// The line of entry `index`, whose size is `bytes`.
std::int64_t line_of(Array array, std::int64_t index, std::int64_t bytes) {
  return (static_cast<std::int64_t>(array) << 44) + index * bytes / kLineBytes;
}

/// What one thread reads in one step: up to three loads one after another.
struct Reads {
  std::array<std::int64_t, 3> lines{};
  int count = 0;  ///< 0: the thread is done
  int x = -1;     ///< which of them reads x
};

struct Counts {
  std::int64_t reads = 0, hits = 0, x_reads = 0, x_hits = 0;
  HitRates rates() const {
    const auto share = [](std::int64_t part, std::int64_t all) {
      return all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
    };
    return {share(hits, reads), share(x_hits, x_reads)};
  }
};

/// One load of a warp: each line once.
void load(std::span<std::int64_t> lines, bool of_x, LruCache& cache, Counts& counts) {
  std::sort(lines.begin(), lines.end());
  const auto end = std::unique(lines.begin(), lines.end());
  for (auto line = lines.begin(); line < end; ++line) {
    const bool hit = cache.access(*line);
    ++counts.reads, counts.hits += hit;
    if (of_x) ++counts.x_reads, counts.x_hits += hit;
  }
}

/// Runs `threads` threads on one multiprocessor. `source(thread, step)` tells what a thread reads.
template <class Source>
void simulate(const L1Model& model, std::int64_t threads, const Source& source, Counts& counts) {
  LruCache cache(model.bytes, kLineBytes, kWays);
  const std::int64_t blocks = (threads + kBlock - 1) / kBlock;
  const std::int64_t stride = std::clamp<std::int64_t>(blocks / kLeastBlocks, 1, model.multiprocessors);
  const std::int64_t at_once = std::max<std::int64_t>(1, model.resident_threads / kBlock);
  std::int64_t thread_reads = 0;
  std::array<std::vector<std::int64_t>, 3> lines;
  for (std::int64_t first = 0; first < blocks && thread_reads < 3 * kMostReads; first += at_once * stride) {
    std::vector<std::int64_t> warps;  // first thread of each
    for (std::int64_t block = first; block < std::min(blocks, first + at_once * stride); block += stride)
      for (std::int64_t thread = block * kBlock; thread < std::min(threads, (block + 1) * kBlock); thread += kWarp)
        warps.push_back(thread);
    for (std::int64_t step = 0; !warps.empty(); ++step) {
      std::erase_if(warps, [&](std::int64_t warp) {
        for (auto& of_a_load : lines) of_a_load.clear();
        int x = -1;
        for (std::int64_t thread = warp; thread < std::min(threads, warp + kWarp); ++thread) {
          const Reads reads = source(thread, step);
          thread_reads += reads.count;
          for (int i = 0; i < reads.count; ++i)
            lines[static_cast<std::size_t>(i)].push_back(reads.lines[static_cast<std::size_t>(i)]);
          if (reads.x >= 0) x = reads.x;
        }
        for (int i = 0; i < 3; ++i) load(lines[static_cast<std::size_t>(i)], i == x, cache, counts);
        return lines[0].empty();
      });
    }
  }
}

}  // namespace

LruCache::LruCache(std::int64_t bytes, std::int64_t line_bytes, int ways)
    : sets_(bytes / line_bytes / ways), ways_(ways), lines_(static_cast<std::size_t>(sets_ * ways), -1) {}

bool LruCache::access(std::int64_t line) {
  const auto begin = lines_.begin() + line % sets_ * ways_, end = begin + ways_;
  const auto found = std::find(begin, end, line);
  const bool hit = found != end;
  std::rotate(begin, hit ? found : end - 1, hit ? found + 1 : end);
  *begin = line;
  return hit;
}

L1Model l1_model(Device device) {
  if (device.backend != Backend::cuda) return {};
  return {l1_cache(device), properties(device).name};
}

HitRates crs_hit_rates(const CsrView& matrix, ValueType type, const L1Model& model) {
  const auto bytes = static_cast<std::int64_t>(size_of(type));
  const auto place = [&](std::int64_t row) { return matrix.row_ptr[static_cast<std::size_t>(row)] - matrix.row_ptr[0]; };
  Counts counts;
  simulate(
      model, matrix.rows,
      [&](std::int64_t row, std::int64_t step) -> Reads {
        if (step == 0) return {{line_of(offsets, row, 4), line_of(offsets, row + 1, 4)}, 2};
        const std::int64_t k = place(row) + step - 1;
        if (k >= place(row + 1)) return {};
        const std::int64_t column = matrix.col_idx[static_cast<std::size_t>(k)];
        return {{line_of(columns, k, 4), line_of(values, k, bytes), line_of(vector_x, column, bytes)}, 3, 2};
      },
      counts);
  return counts.rates();
}

HitRates fold_hit_rates(const CsrView& matrix, ValueType type, std::int64_t width, const L1Model& model) {
  const auto bytes = static_cast<std::int64_t>(size_of(type));
  const auto place = [&](std::int64_t row) { return matrix.row_ptr[static_cast<std::size_t>(row)] - matrix.row_ptr[0]; };
  std::vector<std::int64_t> fold_ptr{0};
  fold_ptr.reserve(static_cast<std::size_t>(matrix.rows) + 1);
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    fold_ptr.push_back(fold_ptr.back() + (place(row + 1) - place(row) + width - 1) / width);
  const std::int64_t pieces = fold_ptr.back();
  Counts counts;
  simulate(
      model, pieces,
      [&](std::int64_t piece, std::int64_t step) -> Reads {
        if (step >= width) return {};
        const std::int64_t row = std::upper_bound(fold_ptr.begin(), fold_ptr.end(), piece) - fold_ptr.begin() - 1;
        const std::int64_t k = place(row) + (piece - fold_ptr[static_cast<std::size_t>(row)]) * width + step;
        const std::int64_t stored = step * pieces + piece;
        Reads reads{{line_of(columns, stored, 4), line_of(values, stored, bytes)}, 2};
        if (k < place(row + 1)) {
          reads.lines[2] = line_of(vector_x, matrix.col_idx[static_cast<std::size_t>(k)], bytes);
          reads.count = 3, reads.x = 2;
        }
        return reads;
      },
      counts);
  simulate(
      model, matrix.rows,
      [&](std::int64_t row, std::int64_t step) -> Reads {
        const auto i = static_cast<std::size_t>(row);
        if (step == 0) return {{line_of(offsets, row, 4), line_of(offsets, row + 1, 4)}, 2};
        const std::int64_t piece = fold_ptr[i] + step - 1;
        if (piece >= fold_ptr[i + 1]) return {};
        return {{line_of(sums, piece, bytes)}, 1};
      },
      counts);
  return counts.rates();
}

}  // namespace shardmat::tools
