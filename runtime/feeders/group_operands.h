// Dense matrices of the caller as operands of a group's call.
#pragma once

#include <cstdint>

#include "comm/feeders/rank_group.h"
#include "kernels/base/dense.h"
#include "kernels/base/device.h"

namespace shardmat {

/// Handed over row by row without gaps, in its own type. REQUIRES: host memory, as long as the call.
Operand operand_given(const ConstDense& view);
/// The same, and taken back; `give`: its entries are handed over.
Operand operand_both(const Dense& view, bool give);

/// Handed over as f64, row by row. Throws Error(usage) for another number of rows or columns. REQUIRES: host memory.
Operand doubles_given(const ConstDense& view, std::int64_t rows, std::int64_t columns, Stream& stream);
/// The same, and taken back; Error(input) then for values beyond the range of its type.
Operand doubles_both(const Dense& view, std::int64_t rows, std::int64_t columns, Stream& stream);
/// Doubles of the whole group.
Dense doubles_of(const GroupOperand& all, std::int64_t columns);

}  // namespace shardmat
