// Folding (Tomimori, Tanabe, Takata, Joe; after Tanabe, Ogawa, Takata, Joe): rows are cut into pieces of a fixed width, a
// row of n nonzeros into ceil(n / width) of them, the last one padded, and the pieces are stored transposed, so that
// neighbouring threads read neighbouring memory however uneven the rows are. The sums of a row's pieces are added in a
// second step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

struct FoldStorage final : Storage {
  std::vector<const Buffer*> value_arrays() const override { return {&values}; }

  std::int64_t width = 0;
  bool wide_offsets = false;                                      ///< fold_ptr holds int64 instead of int32
  std::shared_ptr<const HostVector<std::int64_t>> host_fold_ptr;  ///< on the host, for new values
  Buffer fold_ptr;  ///< rows + 1 offsets, counted in pieces; none for an empty row
  Buffer col_idx;   ///< int32, pieces × width column by column; -1 in padding
  Buffer values;    ///< likewise; 0 in padding

  std::int64_t pieces() const { return host_fold_ptr->back(); }
};

/// First the mean length of the rows that are not empty, rounded up (also what width=0 stands for), then 8 and 32.
std::vector<Policy> fold_layouts(ConversionInput& input);
std::int64_t fold_bytes(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_fold(ConversionInput& input, const Policy& layout);
void update_fold(Storage& storage, ConversionInput& input);

std::unique_ptr<Plan> make_fold_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

/// threads_per_row add the sums of a row's pieces.
std::vector<Policy> fold_policies(const RowStatistics& rows);
std::unique_ptr<Plan> make_fold(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

}  // namespace shardmat
