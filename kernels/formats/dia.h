// Diagonals: each diagonal with a nonzero is stored in full, without column indices. Neighbouring threads (one for each row)
// read neighbouring values and neighbouring entries of x. For matrices with a few full diagonals. Other entries of a stored
// diagonal are stored as 0 and multiplied, so an infinite entry of x can turn such a row into NaN.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/base/device.h"
#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

struct DiaStorage final : Storage {
  std::vector<const Buffer*> value_arrays() const override { return {&values}; }

  std::int64_t diagonals = 0;
  Buffer offsets;  ///< diagonals int64, ascending: column - row
  Buffer values;   ///< diagonals·rows values of `type`: row i of diagonal d at d·rows + i; 0 outside the matrix
};

/// 8·D + value·rows·D for D occupied diagonals, which are counted in a bitmap of rows + cols - 1 bits.
std::int64_t dia_bytes(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_dia(ConversionInput& input, const Policy& layout);
void update_dia(Storage& storage, ConversionInput& input);

std::unique_ptr<Plan> make_dia_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
std::unique_ptr<Plan> make_dia(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

}  // namespace shardmat
