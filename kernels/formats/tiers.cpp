#include "kernels/formats/tiers.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/narrow.h"
#include "kernels/formats/limits.h"
#include "kernels/formats/tiers_build.h"
#include "kernels/formats/upload.h"

namespace shardmat {
namespace {

constexpr std::int64_t kMostNonzeros = (std::int64_t{1} << 31) - (1 << 16);  ///< so that places of pieces fit int32
constexpr std::int64_t kLeastUse = 16;  ///< mean number of nonzeros of a column in a tier; below, x is loaded for too few

const tiers::Builder& builder_for([[maybe_unused]] const ConversionInput& input) {
#ifdef SHARDMAT_HAVE_CUDA
  if (input.stream().device().backend == Backend::cuda) return tiers::cuda_builder;
#endif
  return tiers::host_builder;
}

const std::vector<std::int32_t>& nonzeros_of_columns(ConversionInput& input) {
  return input.remember<std::vector<std::int32_t>>("nonzeros of columns",
                                                   [&] { return builder_for(input).count_columns(input); });
}

/// The `most` columns with the most nonzeros, in this order; columns with as many ascend. Without columns that have none.
std::vector<std::int32_t> sorted_columns(const std::vector<std::int32_t>& nonzeros, std::int64_t most) {
  if (nonzeros.empty()) return {};
  const auto longest = static_cast<std::size_t>(*std::max_element(nonzeros.begin(), nonzeros.end()));
  std::vector<std::int64_t> next(longest + 2, 0);  // columns with more nonzeros, later the place of the next column
  for (const std::int32_t count : nonzeros) ++next[static_cast<std::size_t>(count)];
  std::int64_t columns = 0;
  for (std::size_t count = longest; count >= 1; --count) columns += std::exchange(next[count], columns);
  std::vector<std::int32_t> sorted(static_cast<std::size_t>(std::min(columns, most)));
  for (std::size_t j = 0; j < nonzeros.size(); ++j)
    if (nonzeros[j] > 0)
      if (const std::int64_t place = next[static_cast<std::size_t>(nonzeros[j])]++; place < std::ssize(sorted))
        sorted[static_cast<std::size_t>(place)] = static_cast<std::int32_t>(j);
  return sorted;
}

/// Cuts columns into tiers that hold enough nonzeros.
void choose_tiers(const std::vector<std::int32_t>& nonzeros, int most_columns, int most_tiers, TiersPattern& p,
                  Stream& stream) {
  std::vector<std::int32_t> columns = sorted_columns(nonzeros, std::int64_t{most_columns} * most_tiers);
  p.first_column = {0};
  for (std::int64_t begin = 0; begin < std::ssize(columns);) {
    const std::int64_t end = std::min(begin + most_columns, std::ssize(columns));
    std::int64_t held = 0;
    for (std::int64_t i = begin; i < end; ++i)
      held += nonzeros[static_cast<std::size_t>(columns[static_cast<std::size_t>(i)])];
    if (held < kLeastUse * (end - begin)) break;
    p.first_column.push_back(begin = end);
  }
  columns.resize(static_cast<std::size_t>(p.first_column.back()));
  p.columns = upload(columns, stream);
}

/// Slices from the numbers of pieces of each class. Returns the place of the first piece of each class in p.piece.
std::vector<std::int32_t> make_slices(const std::vector<std::int32_t>& counts, TiersPattern& p) {
  std::vector<std::int32_t> first;
  std::int64_t place = 0;
  std::uint64_t bundles = 0;
  for (int tier = 0; tier <= p.tiers(); ++tier) {
    place = (place + kTierLanes - 1) / kTierLanes * kTierLanes;
    p.first_slice.push_back(place / kTierLanes);
    for (std::int32_t length = kMostOfPiece; length >= 1; --length) {
      first.push_back(narrow<std::int32_t>(place, "place of a piece"));
      place += counts[static_cast<std::size_t>(class_of_piece(tier, length))];
      for (; std::ssize(p.first_bundle) * kTierLanes < place;
           bundles += static_cast<std::uint64_t>((length + kSlotsOfBundle - 1) / kSlotsOfBundle))
        p.first_bundle.push_back(static_cast<std::uint32_t>(bundles));
    }
  }
  p.first_slice.push_back(std::ssize(p.first_bundle));
  p.first_bundle.push_back(narrow<std::uint32_t>(bundles, "bundles"));
  return first;
}

std::shared_ptr<const TiersPattern> make_pattern(ConversionInput& input, int most_columns, int most_tiers, int least) {
  require_int32_rows(input.matrix().rows, "tiers");
  if (input.rows().nnz > kMostNonzeros)
    throw Error(ErrorKind::resources, fmt::format("format tiers numbers pieces of rows with 32 bits, and this part of the "
                                                  "matrix has {} nonzeros; use more ranks or another kernel",
                                                  input.rows().nnz));
  Stream& stream = input.stream();
  const tiers::Builder& builder = builder_for(input);
  auto p = std::make_shared<TiersPattern>();
  p->least = least;
  choose_tiers(nonzeros_of_columns(input), most_columns, most_tiers, *p, stream);
  std::vector<std::int32_t> counts(static_cast<std::size_t>((p->tiers() + 1) * kMostOfPiece), 0);
  const Buffer classes = builder.classify_pieces(input, *p, counts);
  p->pieces = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const std::vector<std::int32_t> first = make_slices(counts, *p);
  p->piece = Buffer(stream.device(), static_cast<std::size_t>(p->slices() * kTierLanes) * sizeof(std::int32_t));
  fill_bytes(p->piece.data(), 0xff, p->piece.bytes(), stream);
  builder.place_pieces(classes, counts, first, *p, stream);
  stream.synchronize();
  return p;
}

std::shared_ptr<const TiersPattern> pattern_of(ConversionInput& input, const Policy& layout) {
  const int columns = layout.at("columns"), tiers = layout.at("tiers"), least = layout.at("least");
  if (columns < 1 || columns > kMostOfTier)
    throw Error(ErrorKind::usage, fmt::format("tiers: columns must be from 1 to {}", kMostOfTier));
  if (tiers < 1 || tiers > kMostTiers)
    throw Error(ErrorKind::usage, fmt::format("tiers: tiers must be from 1 to {}", kMostTiers));
  if (least < 1) throw Error(ErrorKind::usage, "tiers: least must be at least 1");
  return input.remember<std::shared_ptr<const TiersPattern>>("tiers " + layout.text(),
                                                             [&] { return make_pattern(input, columns, tiers, least); });
}

std::int64_t slots(std::int64_t bundles) { return bundles * kTierLanes * kSlotsOfBundle; }

}  // namespace

std::int64_t TiersPattern::widest() const {
  std::int64_t most = 0;
  for (std::size_t t = 0; t + 1 < first_column.size(); ++t) most = std::max(most, first_column[t + 1] - first_column[t]);
  return most;
}

std::int64_t TiersPattern::bytes(std::int64_t value_bytes) const {
  const std::int64_t rest = bundles() - bundles_of_tiers();
  return static_cast<std::int64_t>(columns.bytes() + first_piece.bytes() + piece.bytes()) +
         slices() * kTierLanes * std::int64_t{sizeof(std::int32_t)} +
         slots(bundles_of_tiers()) * std::int64_t{sizeof(std::uint16_t)} + slots(rest) * std::int64_t{sizeof(std::int32_t)} +
         slots(bundles()) * value_bytes;
}

std::vector<Policy> tiers_layouts(ConversionInput& input) {
  constexpr int kBytes = 128 * 1024;  // of shared memory; more would leave too little of the L1 cache for loads under way
  const auto value = static_cast<std::size_t>(input.value_bytes());
  [[maybe_unused]] const Device device = input.stream().device();
  int columns = kBytes / static_cast<int>(value) - 1;
#ifdef SHARDMAT_HAVE_CUDA
  if (device.backend == Backend::cuda) columns = std::min(columns, tiers_most_columns(device, value));
#endif
  return {Policy{{"columns", columns}, {"tiers", 12}, {"least", 3}}};
}

std::int64_t tiers_bytes(ConversionInput& input, const Policy& layout) {
  return pattern_of(input, layout)->bytes(input.value_bytes());
}

std::vector<Policy> tiers_policies(const RowStatistics&) { return {Policy{{"rest_warps", 16}}, Policy{{"rest_warps", 8}}}; }

double tiers_cost(ConversionInput& input, const Policy& layout) {
  constexpr double kNever = std::numeric_limits<double>::infinity(), kEfficiency = 0.85, kPadding = 1.05;
  constexpr double kSector = 24;              // bytes copied while the L2 cache reads a sector
  constexpr double kLeastLongRow = 100;       // times the mean: where rows are that long, columns mostly are, too
  constexpr double kLeastShare = 0.6;         // of the nonzeros that tiers must hold
  constexpr std::int64_t kLeast = 8'000'000;  // nonzeros; the entries of x of a tier would be loaded for too few
  const RowStatistics& rows = input.rows();
  const auto nnz = static_cast<double>(rows.nnz);
  if (rows.nnz < kLeast || rows.nnz > kMostNonzeros || static_cast<double>(rows.max_row) < kLeastLongRow * rows.mean_row)
    return kNever;
  const std::vector<std::int32_t>& nonzeros = nonzeros_of_columns(input);
  double held = 0;
  for (const std::int32_t column : sorted_columns(nonzeros, std::int64_t{layout.at("columns")} * layout.at("tiers")))
    held += nonzeros[static_cast<std::size_t>(column)];
  if (held < kLeastShare * nnz) return kNever;
  const auto value = static_cast<double>(input.value_bytes());
  const auto vectors = static_cast<double>(input.matrix().rows + input.matrix().cols);
  const double rest = nnz - held;
  return (kPadding * nnz * (value + 2) + rest * (2 + kSector) + vectors * value) / kEfficiency;
}

std::shared_ptr<Storage> convert_tiers(ConversionInput& input, const Policy& layout) {
  Stream& stream = input.stream();
  auto a = std::make_shared<TiersStorage>();
  a->describe(input, tiers_bytes(input, layout));
  a->pattern = pattern_of(input, layout);
  const TiersPattern& p = *a->pattern;
  const auto buffer = [&](std::int64_t count, std::size_t bytes, unsigned char padding) {
    Buffer made(a->device, static_cast<std::size_t>(count) * bytes);
    fill_bytes(made.data(), padding, made.bytes(), stream);
    return made;
  };
  a->slot_rows = buffer(p.slices() * kTierLanes, sizeof(std::int32_t), 0xff);
  a->local = buffer(slots(p.bundles_of_tiers()), sizeof(std::uint16_t), 0);
  a->rest_columns = buffer(slots(p.bundles() - p.bundles_of_tiers()), sizeof(std::int32_t), 0xff);
  a->values = buffer(slots(p.bundles()), size_of(a->type), 0);
  builder_for(input).fill(*a, input, true);
  return a;
}

void update_tiers(Storage& storage, ConversionInput& input) {
  builder_for(input).fill(static_cast<TiersStorage&>(storage), input, false);
}

}  // namespace shardmat
