#include "kernels/batched/shardmat_batched.h"

#include <limits>
#include <memory>
#include <string>

#include "kernels/base/error.h"
#include "kernels/batched/batched_tuner.h"
#include "kernels/batched/c_status.h"
#include "kernels/batched/check.h"
#include "kernels/batched/features.h"
#include "kernels/batched/transpose.h"

/// One of the two.
struct shardmat_batched_plan {
  std::unique_ptr<shardmat::BatchedPlan> plan;
  std::unique_ptr<shardmat::FeaturePlan> features;

  shardmat::WorkLists& lists() const {
    if (plan) return *plan;
    return *features;
  }
  const shardmat::DeviceBatch& batch() const { return plan ? plan->batch() : features->batch(); }
};

namespace {

using namespace shardmat;

void require(bool condition, const char* what) {
  if (!condition) throw Error(ErrorKind::usage, what);
}

bool aligned_memory(const void* memory) { return memory != nullptr && reinterpret_cast<std::uintptr_t>(memory) % 256 == 0; }

Device device_of(const shardmat_batch& batch) {
  if (batch.device < 0) return Device{};
  if (batch.device >= cuda_device_count())
    throw Error(ErrorKind::usage, "there is no CUDA device " + std::to_string(batch.device) + " among " +
                                      std::to_string(cuda_device_count()) + " " + why_no_cuda_device());
  return Device{Backend::cuda, batch.device};
}

DeviceBatch device_batch(const shardmat_batch* batch) {
  require(batch != nullptr, "the batch is NULL");
  require(batch->count >= 0 && batch->first_row != nullptr && batch->first_col != nullptr && batch->first_entry != nullptr,
          "a batch needs a count and where its rows, columns and entries begin");
  require(batch->count <= std::numeric_limits<std::int32_t>::max(), "a batch has at most 2147483647 matrices");
  const std::span<const std::int64_t> rows(batch->first_row, static_cast<std::size_t>(batch->count) + 1);
  DeviceBatch of;
  of.device = device_of(*batch);
  of.type = value_type_of_c(batch->type, "the batch");
  of.at = BatchOffsets(rows, {batch->first_col, rows.size()}, {batch->first_entry, rows.size()});
  of.format = batch->row_idx != nullptr ? BatchFormat::coo : BatchFormat::csr;
  require(batch->row_ptr == nullptr || batch->row_idx == nullptr, "a batch has row_ptr or row_idx, not both");
  require(of.at.nnz() == 0 || (batch->col_idx != nullptr && batch->values != nullptr &&
                               (batch->row_ptr != nullptr || batch->row_idx != nullptr)),
          "a batch with entries needs row_ptr or row_idx, col_idx and values");
  require(of.at.rows() == 0 || of.at.nnz() > 0 || batch->row_ptr != nullptr || batch->row_idx != nullptr,
          "a batch with rows needs row_ptr or row_idx");
  of.row_ptr = batch->row_ptr;
  of.row_idx = batch->row_idx;
  of.col_idx = batch->col_idx;
  of.values = batch->values;
  return of;
}

/// Works on the batch's device and the caller's stream.
template <class F>
void on_stream(Device device, void* native, const F& f) {
  const DeviceGuard guard(device);
  Stream stream = Stream::borrowed(device, static_cast<CUstream_st*>(native));
  f(stream);
}

/// Entries of an X whose rows begin `ldx` entries apart. Throws Error(usage) for more than a process has addresses.
std::int64_t entries_of_x(std::int64_t rows, std::int64_t ldx) {
  require(ldx >= 0, "the leading dimension of X is negative");
  constexpr std::int64_t kAddresses = std::int64_t{1} << 47;
  if (rows > 0 && ldx > kAddresses / 8 / rows)
    throw Error(ErrorKind::usage, "the leading dimension of X is " + std::to_string(ldx) +
                                      ", more than there are addresses for " + std::to_string(rows) + " rows");
  return rows * ldx;
}

/// Runs multiply(X). Where alpha = 0 leaves X unread, X is zeros: kernels multiply by it, and 0 · NaN would be NaN.
template <class F>
void with_read_x(double alpha, const void* x, std::int64_t entries, ValueType type, Stream& stream, const F& multiply) {
  if (alpha != 0) return multiply(x);
  const Buffer zeros(stream.device(), static_cast<std::size_t>(entries) * size_of(type));
  fill_bytes(zeros.data(), 0, zeros.bytes(), stream);
  multiply(zeros.bytes() > 0 ? zeros.data() : x);
  stream.synchronize();  // `zeros` is read until then
}

}  // namespace

int shardmat_batched_plan_create(const shardmat_batch* batch, int64_t columns, const char* kernel, const char* policy,
                                 shardmat_batched_plan** plan) {
  return c_status([&] {
    require(plan != nullptr, "there is nowhere to put the plan");
    *plan = nullptr;
    const auto of = std::make_shared<const DeviceBatch>(device_batch(batch));
    auto made = std::make_unique<shardmat_batched_plan>();
    BatchedRequest request;
    if (kernel != nullptr) request.kernel = kernel;
    if (policy != nullptr) request.policy = policy;
    const BatchedCandidate best = batched_candidates(*of, columns, request).front();
    made->plan = make_batched_plan(*best.kernel, of, columns, best.policy);
    *plan = made.release();
  });
}

void shardmat_batched_plan_destroy(shardmat_batched_plan* plan) { delete plan; }
const char* shardmat_batched_plan_kernel(const shardmat_batched_plan* plan) {
  return plan == nullptr || !plan->plan ? "" : plan->plan->kernel.c_str();
}
size_t shardmat_batched_plan_work_bytes(const shardmat_batched_plan* plan) {
  return plan == nullptr ? 0 : plan->lists().work_bytes();
}
size_t shardmat_batched_plan_staging_bytes(const shardmat_batched_plan* plan) {
  return plan == nullptr ? 0 : plan->lists().staging_bytes();
}

int shardmat_batched_plan_place(shardmat_batched_plan* plan, void* work, void* staging, void* stream) {
  return c_status([&] {
    require(plan != nullptr, "the plan is NULL");
    WorkLists& lists = plan->lists();
    require(lists.work_bytes() == 0 || aligned_memory(work), "the plan's memory must begin at a multiple of 256 bytes");
    require(lists.staging_bytes() == 0 || staging != nullptr, "the plan's host memory is NULL");
    on_stream(plan->batch().device, stream, [&](Stream& s) { lists.place(work, staging, s); });
  });
}

int shardmat_batched_multiply(const shardmat_batched_plan* plan, double alpha, const void* x, int64_t ldx, double beta,
                              void* y, int64_t ldy, const void* bias, int relu, void* stream) {
  return c_status([&] {
    require(plan != nullptr, "the plan is NULL");
    require(plan->plan != nullptr, "the plan is of shardmat_batched_features_create; use shardmat_batched_features");
    const BatchOffsets& at = plan->plan->batch().at;
    require(x != nullptr || at.cols() == 0, "X is NULL");
    require(y != nullptr || at.rows() == 0, "Y is NULL");
    on_stream(plan->plan->batch().device, stream, [&](Stream& s) {
      with_read_x(alpha, x, entries_of_x(at.cols(), ldx), plan->batch().type, s, [&](const void* from) {
        plan->plan->multiply(from, ldx, y, ldy, {alpha, beta, bias, relu != 0}, s);
      });
    });
  });
}

int shardmat_batched_features_create(const shardmat_batch* batch, int64_t in, int64_t out, shardmat_batched_plan** plan) {
  return c_status([&] {
    require(plan != nullptr, "there is nowhere to put the plan");
    *plan = nullptr;
    auto made = std::make_unique<shardmat_batched_plan>();
    made->features = make_feature_plan(std::make_shared<const DeviceBatch>(device_batch(batch)), in, out);
    *plan = made.release();
  });
}

int shardmat_batched_features(const shardmat_batched_plan* plan, double alpha, const void* x, int64_t ldx, const void* w,
                              int64_t ldw, double beta, void* y, int64_t ldy, const void* bias, int relu, void* stream) {
  return c_status([&] {
    require(plan != nullptr, "the plan is NULL");
    require(plan->features != nullptr, "the plan is of shardmat_batched_plan_create; use shardmat_batched_multiply");
    const BatchOffsets& at = plan->batch().at;
    require(x != nullptr || at.cols() == 0, "X is NULL");
    require(w != nullptr, "W is NULL");
    require(y != nullptr || at.rows() == 0, "Y is NULL");
    on_stream(plan->batch().device, stream, [&](Stream& s) {
      with_read_x(alpha, x, entries_of_x(at.cols(), ldx), plan->batch().type, s, [&](const void* from) {
        plan->features->multiply(from, ldx, w, ldw, y, ldy, {alpha, beta, bias, relu != 0}, s);
      });
    });
  });
}

int shardmat_batched_transpose_work_bytes(const shardmat_batch* batch, size_t* bytes) {
  return c_status([&] {
    require(bytes != nullptr, "there is nowhere to put the number of bytes");
    const DeviceBatch of = device_batch(batch);
    const DeviceGuard guard(of.device);
    *bytes = transpose_work_bytes(of);
  });
}

int shardmat_batched_transpose(const shardmat_batch* batch, const int32_t* offsets, int32_t* row_ptr, int32_t* col_idx,
                               void* values, void* work, void* stream) {
  return c_status([&] {
    const DeviceBatch of = device_batch(batch);
    require(row_ptr != nullptr && (of.at.nnz() == 0 || (col_idx != nullptr && values != nullptr)), "the result is NULL");
    require(of.device.backend == Backend::host || (offsets != nullptr && aligned_memory(work)),
            "a transposition on a GPU needs the offsets, and memory that begins at a multiple of 256 bytes");
    on_stream(of.device, stream, [&](Stream& s) { transpose_into(of, offsets, {row_ptr, col_idx, values}, work, s); });
  });
}

int shardmat_batched_check(const shardmat_batch* batch, void* stream) {
  return c_status([&] {
    const DeviceBatch of = device_batch(batch);
    on_stream(of.device, stream, [&](Stream& s) { require_valid(of, s); });
  });
}

const char* shardmat_last_error(void) { return shardmat::kept_error(); }
