#include "kernels/spmm.h"

#include <fmt/format.h>

#include "kernels/base/error.h"
#include "kernels/formats/csr_spmm.h"
#include "kernels/kernel_list.h"

namespace shardmat {
namespace {

std::vector<Policy> one_policy(const RowStatistics&, const RightHandSides&) { return {Policy{}}; }
bool any_matrix(const Storage&, const RightHandSides&) { return true; }

constexpr Backend kHost = Backend::host;

// In the order of preference when nothing is measured.
constexpr SpmmKernel kKernels[] = {
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
