// Jagged diagonals: rows are sorted by descending length (equal lengths keep their order), and row_index holds their
// original rows. So neighbouring threads have rows of about equal length, without padding. jds stores the sorted rows one
// after the other. jds_t stores them column by column: the first entries of all rows, the second entries of all rows that
// have one …, so that neighbouring threads also read neighbouring entries. For triangular matrices and others whose row
// lengths are spread evenly.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/base/device.h"
#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

struct JdsStorage final : Storage {
  std::vector<const Buffer*> value_arrays() const override { return {&values}; }

  bool transposed = false;     ///< jds_t
  std::int64_t diagonals = 0;  ///< length of the longest row
  Buffer row_index;            ///< rows int32: the original row of each sorted row
  Buffer starts;               ///< int64 offsets; jds: rows + 1, of sorted rows; jds_t: diagonals + 1, of jagged diagonals
  Buffer col_idx;              ///< nnz int32; jds_t: entry d of sorted row i lies at starts[d] + i
  Buffer values;               ///< nnz values of `type`, in the same order
};

/// 4·rows + 8·(rows + 1) + (4 + value)·nnz. Like jds_t_bytes(), throws Error(resources) for 2^31 or more rows.
std::int64_t jds_bytes(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_jds(ConversionInput& input, const Policy& layout);
/// 4·rows + 8·(diagonals + 1) + (4 + value)·nnz.
std::int64_t jds_t_bytes(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_jds_t(ConversionInput& input, const Policy& layout);
/// For jds and jds_t.
void update_jds(Storage& storage, ConversionInput& input);

std::unique_ptr<Plan> make_jds_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
std::unique_ptr<Plan> make_jds_t_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
std::unique_ptr<Plan> make_jds(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
std::unique_ptr<Plan> make_jds_t(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

}  // namespace shardmat
