// Conversion to column tiers on the host.
#include <algorithm>
#include <atomic>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/formats/tiers_build.h"
#include "kernels/matrix/rows.h"

namespace shardmat::tiers {
namespace {

constexpr std::int64_t kGrain = 1024;  // rows

std::vector<std::int32_t> count_columns(ConversionInput& input) {
  const Rows rows(input.matrix());
  std::vector<std::int32_t> counts(static_cast<std::size_t>(input.matrix().cols), 0);
  parallel_ranges(rows.count(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = rows.begin(begin); k < rows.end(end - 1); ++k)
      std::atomic_ref(counts[static_cast<std::size_t>(rows.column(k))]).fetch_add(1, std::memory_order_relaxed);
  });
  return counts;
}

/// The tier of each column, and its place there, from 1. Columns outside all tiers are of the rest.
struct Places {
  std::vector<std::uint8_t> tier;
  std::vector<std::uint16_t> local;

  Places(std::int64_t cols, const TiersPattern& p)
      : tier(static_cast<std::size_t>(cols), static_cast<std::uint8_t>(p.tiers())),
        local(static_cast<std::size_t>(cols), 0) {
    for (std::size_t t = 0; t + 1 < p.first_column.size(); ++t)
      for (std::int64_t i = p.first_column[t]; i < p.first_column[t + 1]; ++i) {
        const auto column = static_cast<std::size_t>(p.columns.as<std::int32_t>()[i]);
        tier[column] = static_cast<std::uint8_t>(t);
        local[column] = static_cast<std::uint16_t>(i - p.first_column[t] + 1);
      }
  }
};

/// How the nonzeros of a row divide among tiers and rest.
class RowCut {
 public:
  RowCut(const Rows& rows, const Places& places, const TiersPattern& p) : rows_(rows), places_(places), p_(p) {}

  void set_row(std::int64_t row) {
    count.assign(static_cast<std::size_t>(p_.tiers() + 1), 0);
    for (std::int64_t k = rows_.begin(row); k < rows_.end(row); ++k) ++count[of_column(k)];
    kept_.assign(count.size(), true);
    for (std::size_t t = 0; t + 1 < count.size(); ++t)
      if (count[t] < p_.least) {
        kept_[t] = false;
        count.back() += count[t];
        count[t] = 0;
      }
  }
  /// The tier of nonzero k of the row.
  std::size_t tier(std::int64_t k) const {
    const std::size_t t = of_column(k);
    return kept_[t] ? t : kept_.size() - 1;
  }

  std::vector<std::int32_t> count;  ///< nonzeros in each tier and in the rest

 private:
  std::size_t of_column(std::int64_t k) const { return places_.tier[static_cast<std::size_t>(rows_.column(k))]; }

  const Rows& rows_;
  const Places& places_;
  const TiersPattern& p_;
  std::vector<bool> kept_;
};

Buffer classify_pieces(ConversionInput& input, TiersPattern& p, std::vector<std::int32_t>& counts) {
  const Rows rows(input.matrix());
  const Places places(input.matrix().cols, p);
  const Device device = input.stream().device();
  p.first_piece = Buffer(device, static_cast<std::size_t>(rows.count() + 1) * sizeof(std::int32_t));
  auto* first = p.first_piece.as<std::int32_t>();
  first[0] = 0;
  const auto for_rows = [&](const auto& body) {
    parallel_ranges(rows.count(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      RowCut cut(rows, places, p);
      for (std::int64_t row = begin; row < end; ++row) {
        cut.set_row(row);
        body(row, cut);
      }
    });
  };
  for_rows([&](std::int64_t row, const RowCut& cut) {
    first[row + 1] = 0;
    for (const std::int32_t count : cut.count) first[row + 1] += cut_into_pieces(count).pieces;
  });
  for (std::int64_t row = 0; row < rows.count(); ++row) first[row + 1] += first[row];
  Buffer classes(device, static_cast<std::size_t>(first[rows.count()]) * sizeof(std::uint16_t));
  for_rows([&](std::int64_t row, const RowCut& cut) {
    auto* next = classes.as<std::uint16_t>() + first[row];
    for (std::size_t t = 0; t < cut.count.size(); ++t) {
      const PieceCut pieces = cut_into_pieces(cut.count[t]);
      for (std::int32_t i = 0; i < pieces.pieces; ++i)
        *next++ = static_cast<std::uint16_t>(
            class_of_piece(static_cast<int>(t), std::min(pieces.length, cut.count[t] - i * pieces.length)));
    }
  });
  for (std::int32_t i = 0; i < first[rows.count()]; ++i) ++counts[classes.as<std::uint16_t>()[i]];
  return classes;
}

void place_pieces(const Buffer& classes, const std::vector<std::int32_t>&, const std::vector<std::int32_t>& first,
                  TiersPattern& p, Stream&) {
  std::vector<std::int32_t> next = first;
  for (std::int64_t i = 0; i < p.pieces; ++i)
    p.piece.as<std::int32_t>()[next[classes.as<std::uint16_t>()[i]]++] = static_cast<std::int32_t>(i);
}

void fill(TiersStorage& a, ConversionInput& input, bool structure) {
  const TiersPattern& p = *a.pattern;
  const Rows rows(input.matrix());
  const Places places(input.matrix().cols, p);
  std::vector<std::int32_t> place_of(static_cast<std::size_t>(p.pieces));
  for (std::int64_t i = 0; i < p.slices() * kTierLanes; ++i)
    if (const std::int32_t piece = p.piece.as<std::int32_t>()[i]; piece >= 0)
      place_of[static_cast<std::size_t>(piece)] = static_cast<std::int32_t>(i);
  const std::int64_t before_rest = p.bundles_of_tiers() * kTierLanes * kSlotsOfBundle;
  dispatch(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_ranges(rows.count(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      RowCut cut(rows, places, p);
      for (std::int64_t row = begin; row < end; ++row) {
        cut.set_row(row);
        std::vector<std::int32_t> first_of(cut.count.size()), seen(cut.count.size(), 0);
        std::int32_t piece = p.first_piece.as<std::int32_t>()[row];
        for (std::size_t t = 0; t < cut.count.size(); ++t) {
          first_of[t] = piece;
          piece += cut_into_pieces(cut.count[t]).pieces;
        }
        for (std::int64_t k = rows.begin(row); k < rows.end(row); ++k) {
          const std::size_t t = cut.tier(k);
          const std::int32_t length = cut_into_pieces(cut.count[t]).length, nonzero = seen[t]++;
          const std::int32_t place = place_of[static_cast<std::size_t>(first_of[t] + nonzero / length)];
          const std::int64_t to =
              slot_of(p.first_bundle[static_cast<std::size_t>(place / kTierLanes)], place, nonzero % length);
          a.values.as<T>()[to] = static_cast<T>(rows.values()[k]);
          if (!structure) continue;
          a.slot_rows.as<std::int32_t>()[place] = static_cast<std::int32_t>(row);
          const auto column = static_cast<std::size_t>(rows.column(k));
          if (to >= before_rest) a.rest_columns.as<std::int32_t>()[to - before_rest] = static_cast<std::int32_t>(column);
          else a.local.as<std::uint16_t>()[to] = places.local[column];
        }
      }
    });
  });
}

}  // namespace

const Builder host_builder{count_columns, classify_pieces, place_pieces, fill};

}  // namespace shardmat::tiers
