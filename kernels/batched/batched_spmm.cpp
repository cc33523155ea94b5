#include "kernels/batched/batched_spmm.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/batched/kernels.h"
#include "kernels/batched/operands.h"
#include "kernels/choose/kernel_list.h"
#include "kernels/spmm_plan.h"

namespace shardmat {
namespace {

double compulsory(const DeviceBatch& batch, std::int64_t columns, const Policy&) {
  return static_cast<double>(batch.compulsory_bytes(columns));
}

constexpr Backend kHost = Backend::host;

// In the order of preference when nothing is measured.
constexpr BatchedKernel kKernels[] = {
#ifdef SHARDMAT_HAVE_CUDA
    {.name = "staged",
     .format = BatchFormat::csr,
     .backend = Backend::cuda,
     .help = "a block takes a few whole matrices, X in shared memory",
     .automatic = true,
     .policies = staged_policies,
     .estimate = staged_estimate,
     .make = make_staged},
    {.name = "rows",
     .format = BatchFormat::csr,
     .backend = Backend::cuda,
     .help = "a sub-warp a row, whatever its matrix, wide loads",
     .automatic = true,
     .policies = rows_policies,
     .estimate = rows_estimate,
     .make = make_rows},
    {.name = "swa",
     .format = BatchFormat::csr,
     .backend = Backend::cuda,
     .help = "a sub-warp a row, sums in shared memory (Nagasaka et al.)",
     .policies = swa_policies,
     .estimate = compulsory,
     .make = make_swa},
    {.name = "coo_swa",
     .format = BatchFormat::coo,
     .backend = Backend::cuda,
     .help = "a sub-warp a nonzero, sums in shared memory (Nagasaka et al.)",
     .automatic = true,
     .policies = coo_swa_policies,
     .estimate = compulsory,
     .make = make_coo_swa},
    {.name = "coo_tensorflow",
     .format = BatchFormat::coo,
     .backend = Backend::cuda,
     .help = "a thread a nonzero and column, one launch a matrix (TensorFlow)",
     .policies = coo_tensorflow_policies,
     .estimate = compulsory,
     .make = make_coo_tensorflow},
#endif
    {.name = "csr_host",
     .format = BatchFormat::csr,
     .backend = kHost,
     .help = "threads over rows, columns in vectors",
     .automatic = true,
     .policies = batched_host_policies,
     .estimate = compulsory,
     .make = make_batched_host},
    {.name = "coo_host",
     .format = BatchFormat::coo,
     .backend = kHost,
     .help = "threads over matrices, whose entries are put into rows",
     .automatic = true,
     .policies = batched_host_policies,
     .estimate = compulsory,
     .make = make_batched_host},
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
