// Row block packing (Kawamura, Yoneda, Iwamura, Watanabe, Inoguchi): for a run of two or more nonzeros in consecutive
// columns, only the first and the last column are stored. Runs are stored as CSR (rbp_csr), as ELL (rbp_ell), or as ELL with
// row lengths (rbp_ell_r). Single nonzeros are stored in a separate CSR part.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/conversion.h"
#include "kernels/matrix/runs.h"
#include "kernels/plan.h"

namespace shardmat {

/// The common part of the three formats. The paper's names are in parentheses.
struct RbpStorage : Storage {
  std::vector<const Buffer*> value_arrays() const override { return {&run_values, &single_values}; }

  std::shared_ptr<const Runs> runs;  ///< on the host, for new values
  bool wide_offsets = false;         ///< offsets are int64 instead of int32
  Buffer run_values;                 ///< (Comp_Values, ValuesELL)
  Buffer run_bounds;                 ///< int32, first and last column of each run (Comp_Columns, ColumnsELL)
  Buffer single_ptr;                 ///< rows + 1 offsets (RowPtr)
  Buffer single_columns;             ///< int32 (ColumnsCSR)
  Buffer single_values;              ///< (ValuesCSR)
};

struct RbpCsrStorage final : RbpStorage {
  Buffer value_ptr;  ///< rows + 1 offsets into run_values (Val_ptr)
  Buffer bound_ptr;  ///< rows + 1 offsets into run_bounds (Col_ptr)
};

/// run_values is rows × K_v and run_bounds rows × K_c, both column by column and padded with 0.
struct RbpEllStorage final : RbpStorage {
  Buffer lengths;  ///< rbp_ell_r: int32 for each row, its nonzeros in runs; rbp_ell: empty
};

/// Formulas (4), (5) and (6) of the paper.
std::int64_t rbp_csr_bytes(ConversionInput& input, const Policy& layout);
std::int64_t rbp_ell_bytes(ConversionInput& input, const Policy& layout);
std::int64_t rbp_ell_r_bytes(ConversionInput& input, const Policy& layout);

/// Algorithms 2 and 3 of the paper.
std::shared_ptr<Storage> convert_rbp_csr(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_rbp_ell(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_rbp_ell_r(ConversionInput& input, const Policy& layout);
void update_rbp_csr(Storage& storage, ConversionInput& input);
void update_rbp_ell(Storage& storage, ConversionInput& input);

std::unique_ptr<Plan> make_rbp_csr_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
std::unique_ptr<Plan> make_rbp_ell_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

/// With paper=1, one thread multiplies a row: its runs, then its single nonzeros (Algorithms 4 and 5 of the paper).
std::vector<Policy> rbp_policies(const RowStatistics& rows);
std::unique_ptr<Plan> make_rbp_csr(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
/// For rbp_ell and rbp_ell_r.
std::unique_ptr<Plan> make_rbp_ell(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

}  // namespace shardmat
