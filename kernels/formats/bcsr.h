// Blocked CSR: dense b×b blocks, padded with zeros, with one column index for each block. Blocks at the right and lower edge
// may extend beyond the matrix; entries beyond it are zero and never multiplied. Zeros inside the matrix are multiplied, so
// a non-finite entry of x spreads to all rows of its blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

struct BcsrStorage final : Storage {
  std::vector<const Buffer*> value_arrays() const override { return {&values}; }

  std::int64_t block_rows = 0;                                     ///< rows / b, rounded up
  std::int64_t block_cols = 0;                                     ///< cols / b, rounded up
  std::shared_ptr<const HostVector<std::int64_t>> host_block_ptr;  ///< on the host, for new values
  bool wide_offsets = false;                                       ///< block_ptr holds int64 instead of int32
  Buffer block_ptr;                                                ///< block_rows + 1 offsets, counted in blocks
  Buffer block_col;                                                ///< int32 a block: its first column / b
  Buffer values;                                                   ///< b·b a block, row by row

  int block() const { return layout.at("block"); }
  std::int64_t blocks() const { return host_block_ptr->back(); }
};

/// Block sizes 2 to 6; first the size with the fewest bytes, as a sample of the rows tells.
std::vector<Policy> bcsr_layouts(ConversionInput& input);
/// An estimate of bcsr_bytes() from the sample, without a pass over the matrix.
std::int64_t bcsr_estimate(ConversionInput& input, const Policy& layout);
/// True if the blocks of the sample hold few zeros beside the nonzeros.
bool bcsr_is_full(ConversionInput& input, const Policy& layout);
std::int64_t bcsr_bytes(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_bcsr(ConversionInput& input, const Policy& layout);
void update_bcsr(Storage& storage, ConversionInput& input);

std::unique_ptr<Plan> make_bcsr_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

std::vector<Policy> bcsr_policies(const RowStatistics& rows);
std::unique_ptr<Plan> make_bcsr(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

/// False for wide offsets, and if blocks extend beyond the matrix, where the library would access x and y out of bounds.
bool bcsr_cusparse_supports(const Storage& storage);
std::unique_ptr<Plan> make_bcsr_cusparse(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

}  // namespace shardmat
