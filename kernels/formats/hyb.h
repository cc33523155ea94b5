// Hybrid: the first `width` entries of every row are stored as ELL, where neighbouring threads read neighbouring entries.
// The other entries of long rows are stored as COO, so that a few long rows do not pad all rows.
//
// Width. The first layout follows the classical rule (Bell and Garland): the widest ELL part in which at least a third of
// the rows use the last column, because a COO entry takes about three times as long as an ELL entry. The second layout, if
// it differs, takes the fewest bytes: a further ELL column costs 4 + value bytes a row and saves 8 + value bytes for each
// row that uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/conversion.h"
#include "kernels/formats/coo.h"
#include "kernels/formats/ell.h"
#include "kernels/plan.h"

namespace shardmat {

struct HybStorage final : Storage {
  std::vector<const Buffer*> value_arrays() const override { return {&ell.values, &rest.values}; }

  EllArrays ell;
  CooEntries rest;
};

/// Tunable width ≥ 0, at most the length of the longest row; 0 stores all entries as COO.
std::vector<Policy> hyb_layouts(ConversionInput& input);
/// (4 + value)·rows·width + (8 + value)·rest. Throws Error(resources) from 2^31 rows on if there is a rest.
std::int64_t hyb_bytes(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_hyb(ConversionInput& input, const Policy& layout);
void update_hyb(Storage& storage, ConversionInput& input);

std::unique_ptr<Plan> make_hyb_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
std::unique_ptr<Plan> make_hyb(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

}  // namespace shardmat
