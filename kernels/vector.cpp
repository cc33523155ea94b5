#include "kernels/vector.h"

#include "kernels/base/error.h"
#include "kernels/base/zeros.h"
#include "kernels/scale_matrix.h"
#include "kernels/vector_backends.h"

namespace shardmat {
namespace {

const VectorBackend& backend_of(const Stream& stream) {
#ifdef SHARDMAT_HAVE_CUDA
  if (stream.device().backend == Backend::cuda) return cuda_vector_backend;
#else
  (void)stream;
#endif
  return host_vector_backend;
}

}  // namespace

DotProducts::DotProducts(Device device) : partial_(zeros(device, (2 * kDotBlocks + 1) * sizeof(double))) {}

void DotProducts::compute(ValueType type, std::int64_t n, const void* x, const void* y, double* result, Stream& stream) {
  backend_of(stream).dots(type, n, x, y, partial_.as<double>(), result, stream);
}

void fill_vector(ValueType type, std::int64_t n, double value, void* x, Stream& stream) {
  backend_of(stream).fill(type, n, value, x, stream);
}

ColumnDots::ColumnDots(Device device, std::int64_t columns) : columns_(columns) {
  const std::int64_t chunks = (columns + kDotColumns - 1) / kDotColumns,
                     bytes = (kDotBlocks * columns + chunks) * static_cast<std::int64_t>(sizeof(double));
  require_memory(device, bytes, "partial sums of dot products");
  partial_ = zeros(device, static_cast<std::size_t>(bytes));
}

void ColumnDots::compute(ValueType type, std::int64_t n, const void* x, const void* y, double* result, Stream& stream) {
  backend_of(stream).column_dots(type, n, columns_, x, y, partial_.as<double>(), result, stream);
}

void combine(ValueType type, std::int64_t n, std::int64_t columns, Factor a, const void* x, Factor b, void* y,
             Stream& stream) {
  backend_of(stream).combine(type, n, columns, a, x, b, y, stream);
}

void square_roots(std::int64_t n, double* values, Stream& stream) { backend_of(stream).square_roots(n, values, stream); }

Magnitudes magnitudes(ValueType type, std::int64_t n, const void* x, Stream& stream) {
  return backend_of(stream).magnitudes(type, n, x, stream);
}

void normalise(ValueType type, std::int64_t n, const void* y, const double* norm_squared, void* x, Stream& stream) {
  backend_of(stream).normalise(type, n, y, norm_squared, x, stream);
}

void gather_entries(std::size_t entry_bytes, std::int64_t n, const std::int32_t* places, const void* from, void* to,
                    Stream& stream) {
  backend_of(stream).gather(entry_bytes, n, places, from, to, stream);
}

void add_entries(ValueType type, std::int64_t n, std::int64_t columns, const std::int32_t* places, const void* from,
                 void* to, DenseStrides to_strides, Stream& stream) {
  backend_of(stream).add_entries(type, n, columns, places, from, to, to_strides, stream);
}

void copy_rows(std::size_t row_bytes, std::int64_t n, const void* from, std::size_t from_apart, void* to,
               std::size_t to_apart, Stream& stream) {
  backend_of(stream).copy_rows(row_bytes, n, from, from_apart, to, to_apart, stream);
}

void copy_matrix(const ConstDense& from, const Dense& to, Stream& stream) {
  const std::size_t value = size_of(to.type);
  const bool by_rows = from.order == DenseOrder::row_major;
  const std::int64_t lines = by_rows ? from.rows : from.columns, length = by_rows ? from.columns : from.rows;
  if (lines == 0 || length == 0) return;
  if (from.order != to.order)
    return backend_of(stream).transpose(value, {length, lines, from.data, from.leading, to.data, to.leading}, stream);
  const auto bytes = [&](std::int64_t entries) { return static_cast<std::size_t>(entries) * value; };
  if (from.leading == length && to.leading == length)
    return copy_on_device(to.data, from.data, bytes(lines * length), stream);
  constexpr std::int64_t kFewLines = 16;
  if (lines > kFewLines || lines >= length)
    return copy_rows(bytes(length), lines, from.data, bytes(from.leading), to.data, bytes(to.leading), stream);
  for (std::int64_t line = 0; line < lines; ++line)
    copy_on_device(static_cast<char*>(to.data) + bytes(line * to.leading),
                   static_cast<const char*>(from.data) + bytes(line * from.leading), bytes(length), stream);
}

void scale_matrix(double factor, const Dense& y, Stream& stream) {
  const bool by_rows = y.order == DenseOrder::row_major;
  const std::int64_t lines = by_rows ? y.rows : y.columns, length = by_rows ? y.columns : y.rows;
  if (lines == 0 || length == 0) return;
  if (lines == 1 || y.leading == length) return combine(y.type, lines * length, 1, {}, nullptr, {factor}, y.data, stream);
  backend_of(stream).scale_lines(y.type, lines, length, y.leading, factor, y.data, stream);
}

}  // namespace shardmat
