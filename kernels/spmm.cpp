#include "kernels/spmm.h"

#include <fmt/format.h>

#include "kernels/base/error.h"
#include "kernels/formats/csr_spmm.h"
#include "kernels/formats/packed_spmm.h"
#include "kernels/kernel_list.h"

namespace shardmat {
namespace {

std::vector<Policy> one_policy(const Storage&, const RightHandSides&) { return {Policy{}}; }
bool any_matrix(const Storage&, const RightHandSides&) { return true; }
#ifdef SHARDMAT_HAVE_CUDA
bool single_rows(const Storage& storage, const RightHandSides&) { return packed_stencil_supports(storage); }
#endif

constexpr Backend kHost = Backend::host;

// In the order of preference when nothing is measured.
constexpr SpmmKernel kKernels[] = {
#ifdef SHARDMAT_HAVE_CUDA
    {"packed", "packed", Backend::cuda, "lanes side by side on a row of X, values once for many columns",
     packed_spmm_policies, any_matrix, make_packed_spmm},
    {"packed_stencil", "packed", Backend::cuda, "rows of X once for four rows of a stencil", packed_stencil_spmm_policies,
     single_rows, make_packed_stencil_spmm},
    {"csr_balanced", "csr", Backend::cuda, "equal numbers of nonzeros, whatever their rows", csr_balanced_spmm_policies,
     any_matrix, make_csr_balanced_spmm},
    {"csr_cusparse", "csr", Backend::cuda, "cuSPARSE SpMM", csr_cusparse_spmm_policies, csr_cusparse_spmm_supports,
     make_csr_cusparse_spmm},
    {"csr_swa", "csr", Backend::cuda, "a sub-warp a row, lanes over the columns (Nagasaka et al.)", one_policy, any_matrix,
     make_csr_swa},
#endif
    {"csr_host", "csr", kHost, "threads over rows of equal nonzeros", one_policy, any_matrix, make_csr_spmm_host},
};

void require_span(std::int64_t leading, std::int64_t rows, std::int64_t columns, DenseOrder order, const char* what) {
  const bool by_rows = order == DenseOrder::row_major;
  const std::int64_t least = by_rows ? columns : rows;
  if (leading < least)
    throw Error(ErrorKind::usage, fmt::format("the leading dimension of {} is {}, but its {} have {} entries", what, leading,
                                              by_rows ? "rows" : "columns", least));
}

}  // namespace

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

std::unique_ptr<SpmmPlan> make_spmm_plan(const SpmmKernel& kernel, std::shared_ptr<Storage> storage,
                                         const RightHandSides& rhs, const Policy& policy, Stream& stream) {
  if (rhs.count < 1)
    throw Error(ErrorKind::usage, fmt::format("a product with {} right-hand sides; there must be at least 1", rhs.count));
  auto plan = kernel.make(std::move(storage), rhs, policy, stream);
  plan->kernel = kernel.name;
  plan->policy = policy;
  return plan;
}

}  // namespace shardmat
