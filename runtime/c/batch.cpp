#include <fmt/format.h>

#include <memory>

#include "kernels/batched/batched_tuner.h"
#include "kernels/batched/check.h"
#include "runtime/c/handles.h"
#include "runtime/context/context_scope.h"

struct shardmat_batch_product {
  shardmat::c::Tag<shardmat::c::Kind::batch_product> tag;
  std::shared_ptr<shardmat::c::ContextState> context;
  shardmat::Buffer memory;  ///< of the batch
  std::shared_ptr<const shardmat::DeviceBatch> batch;
  std::unique_ptr<shardmat::BatchedPlan> plan;
  shardmat::Buffer given_x, given_y;  ///< grown on demand
};

namespace shardmat::c {
namespace {

/// The arrays of the batch in one block of device memory.
struct Placer {
  std::byte* memory = nullptr;
  Stream* stream = nullptr;
  std::size_t bytes = 0;

  /// Copies an array behind the others; without memory, counts it.
  template <class T>
  const T* operator()(const T* array, std::size_t count, std::size_t each) {
    if (array == nullptr) return nullptr;
    const std::size_t place = bytes;
    bytes += aligned(count * each);
    if (memory == nullptr) return nullptr;
    copy_to_device(memory + place, array, count * each, *stream);
    return reinterpret_cast<const T*>(memory + place);
  }
  const void* operator()(const void* array, std::size_t count, std::size_t each) {
    return (*this)(static_cast<const std::byte*>(array), count, each);
  }
};

DeviceBatch place(const DeviceBatch& given, Placer& placer) {
  DeviceBatch placed = given;
  const auto rows = static_cast<std::size_t>(given.at.rows()), nnz = static_cast<std::size_t>(given.at.nnz());
  placed.row_ptr = placer(given.row_ptr, rows + 1, sizeof(std::int32_t));
  placed.row_idx = placer(given.row_idx, nnz, sizeof(std::int32_t));
  placed.col_idx = placer(given.col_idx, nnz, sizeof(std::int32_t));
  placed.values = placer(given.values, nnz, size_of(given.type));
  return placed;
}

std::unique_ptr<shardmat_batch_product> make(const std::shared_ptr<ContextState>& context, const shardmat_batch* given,
                                             std::int64_t columns, const char* kernel) {
  shardmat_batch on_host{};
  if (given != nullptr) on_host = *given, on_host.device = -1;
  if (shardmat_batched_check(given == nullptr ? nullptr : &on_host, nullptr) != SHARDMAT_OK)
    throw Error(ErrorKind::input, kept_error());
  DeviceBatch batch;
  const auto matrices = static_cast<std::size_t>(given->count) + 1;
  batch.type = value_type_of_c(given->type, "the batch");
  batch.at = BatchOffsets({given->first_row, matrices}, {given->first_col, matrices}, {given->first_entry, matrices});
  batch.format = given->row_idx != nullptr ? BatchFormat::coo : BatchFormat::csr;
  batch.row_ptr = given->row_ptr, batch.row_idx = given->row_idx, batch.col_idx = given->col_idx;
  batch.values = given->values;

  auto made = std::make_unique<shardmat_batch_product>();
  made->context = context;
  const Device device = context->own().device();
  Placer counting;
  place(batch, counting);
  require_memory(device, static_cast<std::int64_t>(counting.bytes), "a batch");
  made->memory = Buffer(device, counting.bytes);
  Placer placer{made->memory.as<std::byte>(), &context->own().stream(), 0};
  batch.device = device;
  made->batch = std::make_shared<const DeviceBatch>(place(batch, placer));
  BatchedRequest request;
  if (kernel != nullptr) request.kernel = kernel;
  const BatchedCandidate best = batched_candidates(*made->batch, columns, request).front();
  made->plan = make_batched_plan(*best.kernel, made->batch, columns, best.policy);
  made->plan->place(context->own().stream());
  context->own().stream().synchronize();
  return made;
}

void require_stacked(const Dense& view, const char* what, std::int64_t rows, std::int64_t columns, ValueType type) {
  require_dense(what, view, rows, columns, type, view.device);
  if (columns > 1 && view.order == DenseOrder::column_major)
    throw Error(ErrorKind::usage, fmt::format("{} is column-major; batches take row-major matrices", what));
}

void* here(const Dense& view, Device device, Buffer& buffer, bool read, Stream& stream) {
  if (view.device == device) return view.data;
  const auto bytes = static_cast<std::size_t>(view.rows * view.leading) * size_of(view.type);
  if (buffer.bytes() < bytes) buffer = Buffer(), buffer = Buffer(device, bytes);
  if (read) copy_to_device(buffer.data(), view.data, bytes, stream);
  return buffer.data();
}

/// In place of an X that alpha = 0 leaves unread.
void* zeros(const Dense& view, Device device, Buffer& buffer, Stream& stream) {
  const auto bytes = static_cast<std::size_t>(view.rows * view.leading) * size_of(view.type);
  if (buffer.bytes() < bytes) buffer = Buffer(), buffer = Buffer(device, bytes);
  fill_bytes(buffer.data(), 0, bytes, stream);
  return buffer.data();
}

void multiply_batch(shardmat_batch_product& with, double alpha, const Dense& x, double beta, const Dense& y, Stream& stream,
                    bool wait) {
  const BatchOffsets& at = with.batch->at;
  const std::int64_t columns = with.plan->columns();
  require_stacked(x, "X", at.cols(), columns, with.batch->type);
  require_stacked(y, "Y", at.rows(), columns, sum_type(with.batch->type));
  const Device device = with.batch->device;
  const std::int64_t ldx = columns == 1 ? 1 : x.leading, ldy = columns == 1 ? 1 : y.leading;
  Dense from = x, to = y;
  from.leading = ldx, to.leading = ldy;
  const bool gaps = ldy > columns;  // which stay as they are
  const void* const given_x =
      alpha == 0 ? zeros(from, device, with.given_x, stream) : here(from, device, with.given_x, true, stream);
  void* const given_y = here(to, device, with.given_y, beta != 0 || gaps, stream);
  with.plan->multiply(given_x, ldx, given_y, ldy, {alpha, beta, nullptr, false}, stream);
  if (!(y.device == device))
    copy_to_host(y.data, given_y, static_cast<std::size_t>(to.rows * ldy) * size_of(to.type), stream);
  if (wait) stream.synchronize();
}

}  // namespace
}  // namespace shardmat::c

using namespace shardmat;
using namespace shardmat::c;

int shardmat_batch_product_create(shardmat_context* context, const shardmat_batch* batch, int64_t columns,
                                  const char* kernel, shardmat_batch_product** product) {
  if (product != nullptr) *product = nullptr;
  if (!is_handle(context)) return no_handle(context, "the context");
  if (product == nullptr) return c_status([] { require(false, "there is nowhere to put the product"); });
  return in_context(context->state, [&] {
    const ContextScope scope(context->state->own());
    *product = make(context->state, batch, columns, kernel).release();
  });
}

void shardmat_batch_product_destroy(shardmat_batch_product* product) {
  if (is_handle(product)) destroy(product, product->context);
}

int shardmat_batch_product_multiply(shardmat_batch_product* product, double alpha, const shardmat_dense* x, double beta,
                                    const shardmat_dense* y, void* stream) {
  if (!is_handle(product)) return no_handle(product, "the product");
  return in_context(product->context, [&] {
    const ContextScope scope(product->context->own());
    const Dense from = dense(x, "X", *product->context), to = dense(y, "Y", *product->context);
    on_stream(*product->context, stream,
              [&](Stream& on, bool wait) { multiply_batch(*product, alpha, from, beta, to, on, wait); });
  });
}

const char* shardmat_batch_product_kernel(const shardmat_batch_product* product) {
  return is_handle(product) ? product->plan->kernel.c_str() : "";
}
