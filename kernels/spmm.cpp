#include "kernels/spmm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"
#include "kernels/choose/kernel_list.h"
#include "kernels/choose/registry.h"
#include "kernels/formats/bcsr.h"
#include "kernels/formats/bcsr_spmm.h"
#include "kernels/formats/csr_spmm.h"
#include "kernels/formats/packed_spmm.h"
#include "kernels/formats/symmetric.h"

namespace shardmat {
namespace {

std::vector<Policy> one_policy(const Storage&, const RightHandSides&) { return {Policy{}}; }
bool any_matrix(const Storage&, const RightHandSides&) { return true; }
#ifdef SHARDMAT_HAVE_CUDA
bool not_half(const Storage& storage, const RightHandSides&) { return !is_half(storage.type); }
/// Single rows, and columns that fill 16 bytes: two of f32 do not.
bool stencil_takes(const Storage& storage, const RightHandSides& rhs) {
  return packed_stencil_supports(storage) && (rhs.count != 2 || storage.type == ValueType::f64);
}
#endif

/// Lanes walk along a row from end to end, so a row far longer than the others would keep the device waiting.
[[maybe_unused]] bool rows_are_even(ConversionInput& input, const Policy&) {
  const RowStatistics& rows = input.rows();
  return static_cast<double>(rows.max_row) <= std::max(256.0, 16 * rows.mean_row);
}
bool any_input(ConversionInput&, const Policy&) { return true; }
bool always(ValueType, const Policy&, const Policy&) { return true; }
#ifdef SHARDMAT_HAVE_CUDA
bool rows_are_alike(ConversionInput& input, const Policy& layout) {
  return std::isfinite(packed_stencil_cost(input, layout));
}
#endif

constexpr Backend kHost = Backend::host;

// In the order of preference when nothing is measured.
constexpr SpmmKernel kKernels[] = {
#ifdef SHARDMAT_HAVE_CUDA
    {"packed", "packed", Backend::cuda, "lanes side by side on a row of X, values once for many columns",
     packed_spmm_policies, any_matrix, make_packed_spmm, rows_are_even, packed_sums_in_order},
    {"packed_stencil", "packed", Backend::cuda, "rows of X once for four rows of a stencil", packed_stencil_spmm_policies,
     stencil_takes, make_packed_stencil_spmm, rows_are_alike, packed_sums_in_order},
    {"csr_balanced", "csr", Backend::cuda, "equal numbers of nonzeros, whatever their rows", csr_balanced_spmm_policies,
     any_matrix, make_csr_balanced_spmm, any_input, csr_balanced_spmm_in_order},
    {"csr_segmented", "csr", Backend::cuda, "warps over equal stretches of nonzeros, for few right-hand sides",
     csr_segmented_spmm_policies, csr_segmented_spmm_supports, make_csr_segmented_spmm, any_input,
     csr_segmented_spmm_in_order},
    {"csr_cusparse", "csr", Backend::cuda, "cuSPARSE SpMM", csr_cusparse_spmm_policies, csr_cusparse_spmm_supports,
     make_csr_cusparse_spmm, any_input},
    {"csr_swa", "csr", Backend::cuda, "a sub-warp a row, lanes over the columns (Nagasaka et al.)", one_policy, not_half,
     make_csr_swa, nullptr},
#endif
    {"bcsr_host", "bcsr", kHost, "threads over block rows", one_policy, any_matrix, make_bcsr_spmm_host, bcsr_is_full,
     always},
    {"packed_host", "packed", kHost, "threads over slices", one_policy, packed_spmm_host_supports, make_packed_spmm_host,
     any_input, always},
    {"csr_host", "csr", kHost, "threads over rows of equal nonzeros", one_policy, any_matrix, make_csr_spmm_host, any_input,
     always},
    {"symmetric_host", "symmetric", kHost, "threads over block rows of the lower triangle", one_policy, any_matrix,
     make_symmetric_spmm_host, any_input, always},
};

void require_span(std::int64_t leading, std::int64_t rows, std::int64_t columns, DenseOrder order, const char* what) {
  const bool by_rows = order == DenseOrder::row_major;
  const std::int64_t least = by_rows ? columns : rows;
  if (leading < least)
    throw Error(ErrorKind::usage, fmt::format("the leading dimension of {} is {}, but its {} have {} entries", what, leading,
                                              by_rows ? "rows" : "columns", least));
}

}  // namespace

void require_count(std::int64_t count) {
  constexpr std::int64_t kMost = 1 << 20;
  if (count < 1 || count > kMost)
    throw Error(ErrorKind::usage, fmt::format("a product with {} right-hand sides; there must be 1 to {}", count, kMost));
}

void SpmmPlan::multiply(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy,
                        Stream& stream) const {
  require_span(ldx, storage_->cols, rhs_.count, rhs_.x, "X");
  require_span(ldy, storage_->rows, rhs_.count, rhs_.y, "Y");
  if (storage_->rows > 0 && rhs_.count > 0) run(alpha, x, ldx, beta, y, ldy, stream);
}

std::span<const SpmmKernel> spmm_kernels() { return kKernels; }

const SpmmKernel& find_spmm_kernel(std::string_view name, Backend backend) {
  return find_in(kKernels, "kernel for several right-hand sides", name, backend);
}

void require_kernel(std::string_view name, Backend backend) {
  struct Named {
    std::string_view name;
    Backend backend;
  };
  if (name == "auto") return;
  std::vector<Named> all;
  for (const Kernel& kernel : kernels()) all.push_back({kernel.name, kernel.backend});
  for (const SpmmKernel& kernel : spmm_kernels()) {
    const auto same = [&](const Named& one) { return one.name == kernel.name && one.backend == kernel.backend; };
    if (std::none_of(all.begin(), all.end(), same)) all.push_back({kernel.name, kernel.backend});
  }
  find_in(all, "kernel", name, backend);
}

std::unique_ptr<SpmmPlan> make_spmm_plan(const SpmmKernel& kernel, std::shared_ptr<Storage> storage,
                                         const RightHandSides& rhs, const Policy& policy, Stream& stream) {
  require_count(rhs.count);
  auto plan = kernel.make(std::move(storage), rhs, policy, stream);
  plan->kernel = kernel.name;
  plan->policy = policy;
  return plan;
}

}  // namespace shardmat
