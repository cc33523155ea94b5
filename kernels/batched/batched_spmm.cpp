#include "kernels/batched/batched_spmm.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/batched/kernels.h"
#include "kernels/kernel_list.h"
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
    {"csr_host", BatchFormat::csr, kHost, "threads over matrices", true, batched_host_policies, compulsory,
     make_batched_host},
    {"coo_host", BatchFormat::coo, kHost, "threads over matrices", true, batched_host_policies, compulsory,
     make_batched_host},
};

void require_leading(std::int64_t leading, std::int64_t columns, const char* what) {
  if (leading < columns)
    throw Error(ErrorKind::usage,
                fmt::format("the leading dimension of {} is {}, but its rows have {} entries", what, leading, columns));
}

}  // namespace

void BatchedPlan::multiply(const void* x, std::int64_t ldx, void* y, std::int64_t ldy, const Epilogue& epilogue,
                           Stream& stream) const {
  require_leading(ldx, columns_, "X");
  require_leading(ldy, columns_, "Y");
  if (!placed_) throw Error(ErrorKind::internal, "a batched plan runs before its lists are in place");
  if (batch_->at.rows() > 0) run(x, ldx, y, ldy, epilogue, stream);
}

void BatchedPlan::place(void* work, void* staging, Stream& stream) {
  work_ = work;
  placed_ = true;
  if (!descriptor_.empty()) cuda::place_descriptor(descriptor_, shifts_, work, staging, stream);
}

void BatchedPlan::place(Stream& stream) {
  require_memory(stream.device(), static_cast<std::int64_t>(work_bytes()), "the lists of a batched product");
  own_ = Buffer(stream.device(), work_bytes());
  std::vector<std::byte> staging(staging_bytes());
  place(own_.data(), staging.data(), stream);
  stream.synchronize();
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
