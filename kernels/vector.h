// Vector operations for iterations and exchanges, the same calls for both backends.
//
// Threads: any thread, one at a time on a stream. Work on the host takes the calling thread's thread_count().
#pragma once

#include <cstdint>

#include "kernels/base/dense.h"
#include "kernels/base/device.h"
#include "kernels/base/types.h"

namespace shardmat {

struct DenseStrides;

/// Dot products of vectors with f64 accumulation in a fixed order, so results are bit-identical from run to run.
class DotProducts {
 public:
  explicit DotProducts(Device device);

  /// result[0] = sum_i x[i]·y[i] and result[1] = sum_i y[i]·y[i] (f64 in device memory), in stream order.
  void compute(ValueType type, std::int64_t n, const void* x, const void* y, double* result, Stream& stream);

 private:
  Buffer partial_;
};

/// x[i] = y[i] / sqrt(*norm_squared), in stream order; norm_squared is f64 in device memory. If it is 0, x becomes 0.
void normalise(ValueType type, std::int64_t n, const void* y, const double* norm_squared, void* x, Stream& stream);

/// Sets n entries to `value`, in stream order.
void fill_vector(ValueType type, std::int64_t n, double value, void* x, Stream& stream);

/// Dot products of the columns of two row-major matrices with `columns` columns. f64 accumulation in a fixed order, so
/// results are bit-identical from run to run. Used by one stream at a time.
class ColumnDots {
 public:
  /// Throws Error(resources) if there is no memory for partial sums (8 kB a column).
  ColumnDots(Device device, std::int64_t columns);

  /// result[j] = sum_i x[i, j]·y[i, j] over n rows, f64 in device memory, in stream order.
  void compute(ValueType type, std::int64_t n, const void* x, const void* y, double* result, Stream& stream);

 private:
  std::int64_t columns_;
  Buffer partial_;
};

/// Y = a·X + b·Y in stream order, each column with its own factors; n rows of `columns` entries. Covers axpy (b = 1), xpay
/// (a = 1), copy (a = 1, b = 0) and scale (X null). With b = 0, Y is only written.
void combine(ValueType type, std::int64_t n, std::int64_t columns, Factor a, const void* x, Factor b, void* y,
             Stream& stream);

/// values[i] = sqrt(values[i]), f64 in device memory, in stream order.
void square_roots(std::int64_t n, double* values, Stream& stream);

/// The least and the largest magnitude of n entries in f32 or f64; NaN counts as neither. Infinity and 0 without entries.
/// Waits for the stream.
struct Magnitudes {
  double least, largest;
};
Magnitudes magnitudes(ValueType type, std::int64_t n, const void* x, Stream& stream);

/// to[i] = from[places[i]] for n entries of `entry_bytes` bytes, in stream order.
void gather_entries(std::size_t entry_bytes, std::int64_t n, const std::int32_t* places, const void* from, void* to,
                    Stream& stream);

/// to[places[i]·to_strides.row + j·to_strides.column] += from[i·columns + j] for n entries of `columns` values, in stream
/// order. Without places, entry i goes to place i. REQUIRES: all places differ; f64 or f32.
void add_entries(ValueType type, std::int64_t n, std::int64_t columns, const std::int32_t* places, const void* from,
                 void* to, DenseStrides to_strides, Stream& stream);

/// Copies n rows of `row_bytes` bytes between two matrices, in stream order. The rows of `from` begin `from_apart` bytes
/// apart, those of `to` begin `to_apart` bytes apart. All three are multiples of the size of a value.
void copy_rows(std::size_t row_bytes, std::int64_t n, const void* from, std::size_t from_apart, void* to,
               std::size_t to_apart, Stream& stream);

/// Copies a matrix, each side in its order and with its leading dimension, in stream order; gaps stay as they are. Between
/// two orders the copy transposes, by tiles. REQUIRES: the same sizes and type, memory of the stream's device, no overlap.
void copy_matrix(const ConstDense& from, const Dense& to, Stream& stream);

}  // namespace shardmat
