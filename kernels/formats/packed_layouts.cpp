// Which blocks and lanes to take, judged by a sample of the rows: the layout with the fewest bytes.
#include <algorithm>
#include <limits>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/cost_model.h"
#include "kernels/formats/packed.h"
#include "kernels/formats/packed_pieces.h"

namespace shardmat {
namespace {

constexpr std::int64_t kChunks = 32, kRowsOfChunk = 48;  ///< of the sample
constexpr int kWindow = 16384;                           ///< groups sorted together

/// Rows sorted together when they have little in common: few, so that what they gather from x stays in L1, and fewer the
/// more of L1 a value takes. 1024 in f64 and 4096 in f32 measured best on sparse bands and on meshes.
int window_of_gathers(std::int64_t value_bytes) { return static_cast<int>(65536 / (value_bytes * value_bytes)); }

/// What a sample says about blocks.
struct Estimate {
  int block = 1, shift = 0;
  double bytes = 0;  ///< of values and indices of the sample
  double pieces = 0;
  std::int64_t nnz = 0;
  double shared = 0;  ///< pieces as far from their row as the same piece of the group before

  bool groups_alike() const { return 2 * shared > pieces; }
};

/// Adds the pieces of groups [begin, end).
template <int B>
void add_groups(const packed::Source<std::int64_t>& a, int shift, std::int64_t begin, std::int64_t end, Estimate& sum) {
  std::vector<std::int64_t> before, deltas;
  for (std::int64_t g = begin; g < end; ++g) {
    const std::int64_t row = g * B - shift;
    packed::PieceReader<B, std::int64_t> reader(a, row);
    deltas.clear();
    for (std::int64_t start; (start = reader.find()) >= 0; reader.skip(start)) deltas.push_back(start - row);
    sum.pieces += static_cast<double>(deltas.size());
    for (std::size_t k = 0; k < std::min(deltas.size(), before.size()); ++k) sum.shared += before[k] == deltas[k] ? 1 : 0;
    before.swap(deltas);
  }
  const auto first_nonzero = [&](std::int64_t group) {
    return a.rows == 0 ? 0 : a.offset(std::clamp<std::int64_t>(group * B - shift, 0, a.rows));
  };
  sum.nnz += first_nonzero(end) - first_nonzero(begin);
}

Estimate estimate(const ConversionInput& input, int block, int shift) {
  const CsrView& m = input.matrix();
  const packed::Source<std::int64_t> a{m.rows,           m.cols,           nullptr,
                                       m.row_ptr.data(), m.col_idx.data(), m.rows == 0 ? 0 : m.row_ptr[0]};
  Estimate sum{block, shift};
  packed::with_shape({block, block, shift, 1}, [&](auto tag) {
    constexpr int B = tag.B;
    const std::int64_t groups = PackedShape{B, B, shift, 1}.groups(m.rows), size = kRowsOfChunk / B;
    if (groups <= kChunks * size) return add_groups<B>(a, shift, 0, groups, sum);
    for (std::int64_t c = 0; c < kChunks; ++c)
      add_groups<B>(a, shift, groups / kChunks * c, groups / kChunks * c + size, sum);
  });
  sum.bytes = sum.pieces * block * block * static_cast<double>(input.value_bytes()) + 2 * (sum.pieces - sum.shared);
  return sum;
}

/// Of every block and shift that the matrix can have; sampled once.
const std::vector<Estimate>& estimates_of(ConversionInput& input) {
  return input.remember<std::vector<Estimate>>("packed samples", [&] {
    std::vector<Estimate> estimates;
    for (const int block : {3, 6, 4, 2, 1})
      if (block == 1 || block <= input.matrix().cols)
        for (int shift = 0; shift < block; ++shift) estimates.push_back({block, shift});
    parallel_tasks(static_cast<std::int64_t>(estimates.size()), [&](std::int64_t i) {
      Estimate& e = estimates[static_cast<std::size_t>(i)];
      e = estimate(input, e.block, e.shift);
    });
    return estimates;
  });
}

const Estimate& estimate_of(ConversionInput& input, const Policy& layout) {
  for (const Estimate& e : estimates_of(input))
    if (e.block == layout.at("block") && e.shift == layout.at("shift")) return e;
  throw Error(ErrorKind::usage, "packed: this matrix has no layout " + layout.text());
}

/// What suits a GPU.
std::vector<Policy> layouts_for_warps(ConversionInput& input) {
  const std::vector<Estimate>& estimates = estimates_of(input);
  // Of blocks with nearly the same bytes the first is taken: they save loads of x.
  constexpr double kNearly = 1.02;
  const auto least = std::min_element(estimates.begin(), estimates.end(),
                                      [](const Estimate& e, const Estimate& f) { return e.bytes < f.bytes; });
  const Estimate& best = *std::find_if(estimates.begin(), estimates.end(),
                                       [&](const Estimate& e) { return e.bytes <= kNearly * least->bytes; });
  // Groups that share their columns lie best a lane each; other blocks read x better with neighbouring columns in
  // neighbouring lanes. Of single rows that share little, sparse bands prefer the one and meshes in f64 the other.
  const auto layout = [&](int lanes, int window) {
    return Policy{{"block", best.block}, {"lanes", lanes}, {"shift", best.shift}, {"window", window}};
  };
  if (best.groups_alike() && best.block <= 3) return {layout(1, kWindow)};
  if (best.block > 1) return {layout(best.block, kWindow)};
  std::vector<Policy> layouts = {layout(1, window_of_gathers(input.value_bytes()))};
  if (input.type() == ValueType::f64) layouts.push_back(layout(2, kWindow));
  return layouts;
}

}  // namespace

std::vector<Policy> packed_layouts(ConversionInput& input) {
  std::vector<Policy> layouts = layouts_for_warps(input);
  if (input.stream().device().backend == Backend::host) {  // there the lanes of vectors are rows
    const Estimate& rows = *std::find_if(estimates_of(input).begin(), estimates_of(input).end(),
                                         [](const Estimate& e) { return e.block == 1; });
    const int window = rows.groups_alike() ? kWindow : window_of_gathers(input.value_bytes());
    const Policy single{{"block", 1}, {"lanes", 1}, {"shift", 0}, {"window", window}};
    std::erase(layouts, single);
    layouts.insert(layouts.begin(), single);
  }
  return layouts;
}

Policy packed_ordered_layout(ConversionInput& input) {
  const std::vector<Policy> layouts = packed_layouts(input);
  if (input.stream().device().backend == Backend::host || layouts.front().at("lanes") == 1) return layouts.front();
  const Estimate* best = nullptr;
  for (const Estimate& e : estimates_of(input))
    if (e.block <= 3 && (best == nullptr || e.bytes < best->bytes)) best = &e;
  const int window = best->block == 1 && !best->groups_alike() ? window_of_gathers(input.value_bytes()) : kWindow;
  return {{"block", best->block}, {"lanes", 1}, {"shift", best->shift}, {"window", window}};
}

bool packed_sums_in_order(ValueType, const Policy& layout, const Policy&) { return layout.at("lanes") == 1; }
bool packed_parts_in_order(ValueType, const Policy& layout, const Policy& policy) {
  return layout.at("lanes") == 1 && policy.at("parts") == 1;
}

double packed_stencil_cost(ConversionInput& input, const Policy& layout) {
  if (layout.at("block") != 1 || !estimate_of(input, layout).groups_alike()) return std::numeric_limits<double>::infinity();
  return effective_bytes(input, static_cast<double>(packed_estimate(input, layout)), {0.95, 32, 0.4});
}

double packed_small_cost(ConversionInput& input, const Policy& layout) {
  constexpr std::int64_t kMostRows = 1 << 19;  // beyond that, blocks of several slices fill every GPU evenly
  if (layout.at("lanes") != 1 || input.rows().rows > kMostRows) return std::numeric_limits<double>::infinity();
  return effective_bytes(input, static_cast<double>(packed_estimate(input, layout)), {0.92, 32, 0.4});
}

std::int64_t packed_estimate(ConversionInput& input, const Policy& layout) {
  const Estimate& sample = estimate_of(input, layout);
  if (sample.nnz == 0) return 0;
  return static_cast<std::int64_t>(sample.bytes / static_cast<double>(sample.nnz) * static_cast<double>(input.rows().nnz));
}

}  // namespace shardmat
