// Packed rows with many right-hand sides: the policies and the plan. The kernels are in packed_spmm_kernels.h.
#include "kernels/cuda/packed_spmm.h"

#include "kernels/base/error.h"
#include "kernels/cuda/row_major_plan.h"
#include "kernels/formats/packed_pieces.h"
#include "kernels/formats/packed_spmm.h"

namespace shardmat {
namespace {

/// Slices of a block: as many as a large block can take at once, so that few multiprocessors are idle at the end, or twice
/// as many, which wins where slices differ. Small matrices of single rows have too few slices for that.
constexpr int kOneSlice = 1, kFewSlices = 2, kSlices = 4;

}  // namespace

std::vector<Policy> packed_spmm_policies(const Storage& storage, const RightHandSides& rhs) {
  const std::int64_t wide = dense::lanes_of_row(rhs.count, size_of(storage.type));
  const auto policy = [](int lanes, int passes, int slices = kSlices) {
    return Policy{{"lanes", lanes}, {"passes", passes}, {"slices", slices}};
  };
  if (wide == 1) return {policy(1, 1)};
  if (wide <= 2) return {policy(2, 1)};
  if (wide <= 4) return {policy(2, 2), policy(4, 1), policy(4, 1, kFewSlices)};
  if (wide <= 8) return {policy(4, 2), policy(4, 2, kFewSlices)};
  const bool single_rows = static_cast<const PackedStorage&>(storage).shape.block == 1;
  if (wide <= 16 && single_rows) return {policy(8, 2), policy(4, 2), policy(4, 2, kFewSlices), policy(8, 2, kOneSlice)};
  if (wide <= 16) return {policy(8, 2, kFewSlices), policy(8, 2), policy(4, 2, kFewSlices)};
  if (single_rows) return {policy(8, 2), policy(8, 1), policy(8, 2, kFewSlices), policy(8, 2, kOneSlice)};
  return {policy(8, 2, kFewSlices), policy(8, 2), policy(8, 1)};
}

std::unique_ptr<SpmmPlan> make_packed_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs, const Policy& policy,
                                           Stream&) {
  const packed::SpmmShape shape{policy.at("lanes"), policy.at("passes"), policy.at("slices")};
  if (!shape.exists())
    throw Error(ErrorKind::usage, "packed: lanes must be 1, 2, 4 or 8, and passes 1, or 2 with 2, 4 or 8 lanes");
  if (shape.slices < 1) throw Error(ErrorKind::usage, "packed: a block has at least one slice");
  return cuda::row_major_plan<PackedStorage>(
      std::move(storage), rhs,
      [shape]<class T>(const PackedStorage& a, const dense::Rows<T>& v, Stream& on) {
        packed::with_shape(a.shape, [&]<class S>(S) { packed::multiply_many<T, S>(a, v, shape, on); });
      },
      0, true);
}

}  // namespace shardmat
