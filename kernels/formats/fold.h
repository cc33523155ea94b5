// Folding (Tomimori, Tanabe, Takata, Joe; after Tanabe, Ogawa, Takata, Joe). A row of n nonzeros is cut into ceil(n / width)
// pieces of a fixed width; the last piece is padded. Pieces are stored column by column, so that neighbouring threads read
// neighbouring memory even if row lengths vary. A second step adds the sums of each row's pieces.
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
  Buffer fold_ptr;  ///< rows + 1 offsets, counted in pieces; an empty row has no piece
  Buffer col_idx;   ///< int32, pieces × width column by column; -1 in padding
  Buffer values;    ///< likewise; 0 in padding

  std::int64_t pieces() const { return host_fold_ptr->back(); }
};

/// Widths: first the mean length of the nonempty rows, rounded up (width=0 means the same), then 8 and 32.
std::vector<Policy> fold_layouts(ConversionInput& input);
std::int64_t fold_bytes(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_fold(ConversionInput& input, const Policy& layout);
void update_fold(Storage& storage, ConversionInput& input);

std::unique_ptr<Plan> make_fold_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

/// Tunable threads_per_row: the number of threads that add the sums of a row's pieces.
std::vector<Policy> fold_policies(const RowStatistics& rows);
std::unique_ptr<Plan> make_fold(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

}  // namespace shardmat
