// Which pieces to take, judged by a sample of the rows: the layout with the fewest bytes.
#include <algorithm>
#include <array>

#include "kernels/formats/packed.h"
#include "kernels/formats/packed_pieces.h"

namespace shardmat {
namespace {

constexpr std::int64_t kChunks = 32, kRowsOfChunk = 96;  ///< of the sample
constexpr int kWindow = 4096;                            ///< groups sorted together

/// What a sample says about a shape.
struct Estimate {
  PackedShape shape;
  double bytes = 0;  ///< of values and indices of the sample
};

/// Bytes of the pieces of groups [begin, end). A piece as far from its row as the previous group's is taken to be shared.
template <int B, int W>
double bytes_of_groups(const packed::Source<std::int64_t>& a, const PackedShape& shape, int value_bytes, std::int64_t begin,
                       std::int64_t end) {
  double bytes = 0;
  std::vector<std::int64_t> before, deltas;
  for (std::int64_t g = begin; g < end; ++g) {
    const std::int64_t row = g * B - shape.shift;
    packed::PieceReader<B, W, std::int64_t> reader(a, row);
    deltas.clear();
    for (std::int64_t start; (start = reader.find_piece()) >= 0; reader.template skip<W>(start)) deltas.push_back(start - row);
    const std::size_t pieces = deltas.size();
    if constexpr (B == 1 && W > 1) {
      packed::PieceReader<B, W, std::int64_t> singles(a, row);
      for (std::int64_t start; (start = singles.find_single()) >= 0; singles.template skip<1>(start)) deltas.push_back(start - row);
    }
    for (std::size_t k = 0; k < deltas.size(); ++k) {
      const bool shared = k < before.size() && before[k] == deltas[k];
      bytes += (k < pieces ? B * W : 1) * value_bytes + (shared ? 0 : 2);
    }
    before.swap(deltas);
  }
  return bytes;
}

Estimate estimate(const ConversionInput& input, PackedShape shape) {
  const CsrView& m = input.matrix();
  const packed::Source<std::int64_t> a{m.rows, m.cols, nullptr, m.row_ptr.data(), m.col_idx.data(), m.rows == 0 ? 0 : m.row_ptr[0]};
  Estimate result{shape};
  packed::with_shape(shape, [&](auto tag) {
    constexpr int B = tag.B, W = tag.W;
    const std::int64_t groups = shape.groups(m.rows), size = kRowsOfChunk / B;
    for (std::int64_t c = 0; c < kChunks; ++c) {
      const std::int64_t begin = groups / kChunks * c, end = std::min({groups, begin + size, groups / kChunks * (c + 1)});
      result.bytes += bytes_of_groups<B, W>(a, shape, static_cast<int>(input.value_bytes()), begin,
                                            c + 1 == kChunks ? std::min(groups, begin + size) : end);
    }
  });
  return result;
}

}  // namespace

std::vector<Policy> packed_layouts(ConversionInput& input) {
  constexpr std::array<std::array<int, 2>, 8> kShapes{{{3, 3}, {6, 6}, {4, 4}, {2, 2}, {1, 1}, {1, 2}, {1, 3}, {1, 4}}};
  std::vector<Estimate> estimates;
  for (const auto& [rows, width] : kShapes) {
    if (width > 1 && width > input.matrix().cols) continue;
    for (int shift = 0; shift < rows; ++shift) estimates.push_back(estimate(input, {rows, width, width, shift, kWindow}));
  }
  // Of shapes with nearly the same bytes the first is taken: node blocks save loads of x.
  constexpr double kNearly = 1.02;
  const auto least = std::min_element(estimates.begin(), estimates.end(),
                                      [](const Estimate& e, const Estimate& f) { return e.bytes < f.bytes; });
  const auto first = std::find_if(estimates.begin(), estimates.end(), [&](const Estimate& e) { return e.bytes <= kNearly * least->bytes; });
  std::iter_swap(estimates.begin(), first);
  const PackedShape& s = estimates.front().shape;
  return {Policy{{"rows", s.rows}, {"width", s.width}, {"lanes", s.lanes}, {"shift", s.shift}, {"window", s.window}}};
}

}  // namespace shardmat
