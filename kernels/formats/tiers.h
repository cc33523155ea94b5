// Column tiers, for power-law matrices on GPUs: a few hundred thousand columns hold most nonzeros. They are sorted by their
// number of nonzeros and cut into tiers. The entries of x of a tier fit in the shared memory of a multiprocessor, where
// gathers are cheap. Thread blocks therefore take nonzeros by tiers, not by rows. All other kernels gather x through the L2
// cache, a sector of 32 bytes for each nonzero, and this limits them.
//
//   tier    columns with about as many nonzeros; the first tier has the columns with the most
//   rest    nonzeros outside all tiers, and those of a row that has fewer than `least` in a tier
//   piece   up to 128 nonzeros that a row has in a tier or in the rest; a row's pieces are numbered one after another
//   slice   32 pieces of a tier or of the rest, of similar length, one for each lane of a warp
//   bundle  two slots for each lane of a slice; a slot is a nonzero or padding
//
// A product sums each piece and adds it to y atomically: bits vary from run to run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/host_device.h"
#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

constexpr int kTierLanes = 32;       ///< lanes of a warp
constexpr int kMostOfPiece = 128;    ///< nonzeros
constexpr int kSlotsOfBundle = 2;    ///< for each lane
constexpr int kMostTiers = 31;       ///< lane t of a warp counts tier t, and the next lane the rest
constexpr int kMostOfTier = 65'535;  ///< columns: local columns take 16 bits, and 0 is padding

/// Everything but columns and values of slots.
struct TiersPattern {
  int least = 1;                            ///< nonzeros that a row must have in a tier; fewer go to the rest
  std::vector<std::int64_t> first_column;   ///< of each tier in `columns`, and their number
  std::vector<std::int64_t> first_slice;    ///< of each tier, of the rest, and the number of slices
  std::vector<std::uint32_t> first_bundle;  ///< of each slice, and the number of bundles
  std::int64_t pieces = 0;
  Buffer columns;      ///< int32: the columns of all tiers
  Buffer first_piece;  ///< int32: of each row, and the number of pieces
  Buffer piece;        ///< int32: 32 for each slice, the piece of each lane, or -1

  int tiers() const { return static_cast<int>(first_column.size()) - 1; }
  std::int64_t slices() const { return first_slice.back(); }
  std::int64_t bundles() const { return first_bundle.back(); }
  std::int64_t bundles_of_tiers() const {
    return first_bundle[static_cast<std::size_t>(first_slice[first_slice.size() - 2])];
  }
  std::int64_t widest() const;  ///< columns of the tier with the most
  std::int64_t bytes(std::int64_t value_bytes) const;
};

struct TiersStorage final : Storage {
  std::vector<const Buffer*> value_arrays() const override { return {&values}; }

  std::shared_ptr<const TiersPattern> pattern;
  Buffer slot_rows;     ///< int32: 32 for each slice, the row of each lane's piece, or -1
  Buffer local;         ///< uint16: place of the column in its tier, from 1; 0 is padding
  Buffer rest_columns;  ///< int32: of slots of the rest; -1 is padding
  Buffer values;        ///< slot s of lane l in bundle b is at (b·32 + l)·2 + s, also in `local` and `rest_columns`
};

/// A row's nonzeros in a tier or in the rest are cut into pieces of equal length; the last may be shorter.
struct PieceCut {
  std::int32_t pieces, length;
};
SHARDMAT_HOST_DEVICE inline PieceCut cut_into_pieces(std::int32_t count) {
  if (count == 0) return {0, 1};
  const std::int32_t least = (count + kMostOfPiece - 1) / kMostOfPiece, length = (count + least - 1) / least;
  return {(count + length - 1) / length, length};
}
/// Where nonzero `k` of the piece at `place` lies in the arrays of slots; `bundle`: the first of the place's slice.
SHARDMAT_HOST_DEVICE inline std::int64_t slot_of(std::uint32_t bundle, std::int32_t place, std::int32_t k) {
  return (std::int64_t{bundle} + k / kSlotsOfBundle) * (kTierLanes * kSlotsOfBundle) + place % kTierLanes * kSlotsOfBundle +
         k % kSlotsOfBundle;
}
/// Pieces of a tier are sorted by their class: long ones first.
SHARDMAT_HOST_DEVICE constexpr int class_of_piece(int tier, std::int32_t length) {
  return tier * kMostOfPiece + (kMostOfPiece - static_cast<int>(length));
}

std::vector<Policy> tiers_layouts(ConversionInput& input);
std::int64_t tiers_bytes(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_tiers(ConversionInput& input, const Policy& layout);
void update_tiers(Storage& storage, ConversionInput& input);

/// The cost of the kernel (cost_model.h); infinite unless a few columns hold most nonzeros.
double tiers_cost(ConversionInput& input, const Policy& layout);
/// The most columns of a tier on this GPU.
int tiers_most_columns(Device device, std::size_t value_bytes);
std::vector<Policy> tiers_policies(const RowStatistics& rows);
bool tiers_supports(const Storage& storage);
std::unique_ptr<Plan> make_tiers(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

}  // namespace shardmat
