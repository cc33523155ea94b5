#include "kernels/batched/batched_spmm.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/batched/kernels.h"
#include "kernels/batched/operands.h"
#include "kernels/choose/kernel_list.h"
#include "kernels/spmm.h"

namespace shardmat {
namespace {

double compulsory(const DeviceBatch& batch, std::int64_t columns, const Policy&) {
  return static_cast<double>(batch.compulsory_bytes(columns));
}

constexpr Backend kHost = Backend::host;

// In the order of preference when nothing is measured.
constexpr BatchedKernel kKernels[] = {
#ifdef SHARDMAT_HAVE_CUDA
    {"staged", BatchFormat::csr, Backend::cuda, "a block takes a few whole matrices, X in shared memory", true,
     staged_policies, staged_estimate, make_staged},
    {"rows", BatchFormat::csr, Backend::cuda, "a sub-warp a row, whatever its matrix, wide loads", true, rows_policies,
     rows_estimate, make_rows},
    {"swa", BatchFormat::csr, Backend::cuda, "a sub-warp a row, sums in shared memory (Nagasaka et al.)", false,
     swa_policies, compulsory, make_swa},
    {"coo_swa", BatchFormat::coo, Backend::cuda, "a sub-warp a nonzero, sums in shared memory (Nagasaka et al.)", true,
     coo_swa_policies, compulsory, make_coo_swa},
    {"coo_tensorflow", BatchFormat::coo, Backend::cuda, "a thread a nonzero and column, one launch a matrix (TensorFlow)",
     false, coo_tensorflow_policies, compulsory, make_coo_tensorflow},
#endif
    {"csr_host", BatchFormat::csr, kHost, "threads over rows, columns in vectors", true, batched_host_policies, compulsory,
     make_batched_host},
    {"coo_host", BatchFormat::coo, kHost, "threads over matrices, whose entries are put into rows", true,
     batched_host_policies, compulsory, make_batched_host},
};

}  // namespace

void BatchedPlan::multiply(const void* x, std::int64_t ldx, void* y, std::int64_t ldy, const Epilogue& epilogue,
                           Stream& stream) const {
  batched::require_leading(ldx, columns_, "X");
  batched::require_leading(ldy, columns_, "Y");
  require_placed();
  if (batch_->at.rows() > 0) run(x, ldx, y, ldy, epilogue, stream);
}

std::span<const BatchedKernel> batched_kernels() { return kKernels; }

const BatchedKernel& find_batched_kernel(std::string_view name, Backend backend) {
  return find_in(kKernels, "kernel for batches", name, backend);
}

std::unique_ptr<BatchedPlan> make_batched_plan(const BatchedKernel& kernel, std::shared_ptr<const DeviceBatch> batch,
                                               std::int64_t columns, const Policy& policy) {
  require_count(columns);
  if (kernel.backend != batch->device.backend || kernel.format != batch->format)
    throw Error(ErrorKind::usage,
                fmt::format("kernel {} multiplies batches in {} on the {} backend; this one is in {} on {}", kernel.name,
                            name(kernel.format), name(kernel.backend), name(batch->format), name(batch->device.backend)));
  auto plan = kernel.make(std::move(batch), columns, policy);
  plan->kernel = kernel.name;
  plan->policy = policy;
  return plan;
}

}  // namespace shardmat
