// Symmetric storage: of two equal entries that mirror each other across the diagonal, one is stored. Blocks of b×b values (b
// = 1: single values) hold the lower triangle with the diagonal blocks in full. Entries without an equal mirror image are in
// a CSR rest: those in columns of other ranks, and any in a matrix that is not symmetric. So every matrix can be stored, and
// a symmetric one takes about half the memory.
//
// The diagonal begins at column CsrView::diagonal of row 0. On the host only. A stored matrix takes no new values.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/conversion.h"
#include "kernels/formats/csr.h"
#include "kernels/plan.h"
#include "kernels/spmm_plan.h"

namespace shardmat {

struct SymmetricStorage final : Storage {
  std::vector<const Buffer*> value_arrays() const override { return {&values, &rest->values}; }

  std::int64_t first_column = 0;     ///< of the diagonal
  std::int64_t block_rows = 0;       ///< rows / b, rounded up
  bool wide_offsets = false;         ///< block_ptr holds int64 instead of int32
  Buffer block_ptr;                  ///< block_rows + 1 offsets, counted in blocks
  Buffer block_col;                  ///< int32 a block: its first column / b, counted from first_column; ascending in a row
  Buffer values;                     ///< b·b a block, row by row
  std::shared_ptr<CsrStorage> rest;  ///< entries without an equal mirror image

  int block() const { return layout.at("block"); }
};

/// Block sizes 1 to 6; first the size of full blocks, or 1.
std::vector<Policy> symmetric_layouts(ConversionInput& input);
std::int64_t symmetric_bytes(ConversionInput& input, const Policy& layout);
/// Throws Error(usage) for a device that is not the host.
std::shared_ptr<Storage> convert_symmetric(ConversionInput& input, const Policy& layout);

std::unique_ptr<Plan> make_symmetric_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
std::unique_ptr<SpmmPlan> make_symmetric_spmm_host(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                                   const Policy& policy, Stream& stream);

}  // namespace shardmat
