// ELLPACK: every row is padded to the same width, and entries are stored column by column, so that neighbouring threads (one
// for each row) read neighbouring entries. ell marks padding in the columns; ell_r (ELLPACK-R) stores row lengths, too, and
// does not read padding. Sizes: formulas (2) and (3) of Kawamura, Yoneda, Iwamura, Watanabe and Inoguchi.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/base/device.h"
#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

/// The first `width` entries of every row; entry k of row i lies at k·rows + i.
struct EllArrays {
  std::int64_t width = 0;
  Buffer col_idx;  ///< width·rows int32; -1 is padding, which is never multiplied with x (x may be infinite)
  Buffer values;   ///< width·rows values of the storage's type; 0 in the padding
};

/// (4 + value)·rows·width, at most 2^60.
std::int64_t ell_array_bytes(const ConversionInput& input, std::int64_t width);
EllArrays convert_ell_arrays(ConversionInput& input, std::int64_t width);
void update_ell_arrays(const EllArrays& ell, ConversionInput& input);

struct EllStorage final : Storage {
  std::vector<const Buffer*> value_arrays() const override { return {&ell.values}; }

  EllArrays ell;       ///< as wide as the longest row
  Buffer row_lengths;  ///< ell_r: rows int32; ell: none
};

/// (4 + value)·rows·K, K the longest row.
std::int64_t ell_bytes(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_ell(ConversionInput& input, const Policy& layout);
/// (4 + value)·rows·K + 4·rows.
std::int64_t ell_r_bytes(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_ell_r(ConversionInput& input, const Policy& layout);
/// For ell and ell_r.
void update_ell(Storage& storage, ConversionInput& input);

std::unique_ptr<Plan> make_ell_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
std::unique_ptr<Plan> make_ell_r_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
std::unique_ptr<Plan> make_ell(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
std::unique_ptr<Plan> make_ell_r(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

}  // namespace shardmat
