// The few vector operations that iterations and exchanges need beside the product; one call for both backends.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"
#include "kernels/base/types.h"

namespace shardmat {

/// Dot products of vectors with f64 accumulation in a fixed order, so results are bit-identical from run to run.
class DotProducts {
 public:
  explicit DotProducts(Device device);

  /// Puts sum_i x[i]·y[i] and sum_i y[i]·y[i] into result[0] and result[1] (f64, memory of the device), in stream order.
  void compute(ValueType type, std::int64_t n, const void* x, const void* y, double* result, Stream& stream);

 private:
  Buffer partial_;
};

/// x[i] = y[i] / sqrt(*norm_squared), in stream order; norm_squared is f64 in memory of the device. All zero if it is 0.
void normalise(ValueType type, std::int64_t n, const void* y, const double* norm_squared, void* x, Stream& stream);

/// Every one of n entries becomes `value`, in stream order.
void fill_vector(ValueType type, std::int64_t n, double value, void* x, Stream& stream);

/// Dot products of `columns` pairs of vectors at once, which lie next to each other: row-major, `columns` entries a row. f64
/// accumulation in a fixed order, so results are bit-identical from run to run. Work by one stream at a time.
class ColumnDots {
 public:
  /// Throws Error(resources) if there is no room for partial sums (8 kB a column).
  ColumnDots(Device device, std::int64_t columns);

  /// result[j] = sum_i x[i, j]·y[i, j] over n rows, f64 in memory of the device, in stream order.
  void compute(ValueType type, std::int64_t n, const void* x, const void* y, double* result, Stream& stream);

 private:
  std::int64_t columns_;
  Buffer partial_;
};

/// A factor for each column: value · per_column[j], or value alone.
struct Factor {
  double value = 1;
  const double* per_column = nullptr;  ///< f64 in memory of the device, as ColumnDots gives them
};

/// Y = a·X + b·Y, each column with its factors, in stream order; n rows of `columns` entries. Covers axpy (b = 1), xpay
/// (a = 1), copy (a = 1, b = 0) and scale (without X). With b = 0, Y is only written.
void combine(ValueType type, std::int64_t n, std::int64_t columns, Factor a, const void* x, Factor b, void* y,
             Stream& stream);

/// values[i] becomes its square root, f64 in memory of the device, in stream order.
void square_roots(std::int64_t n, double* values, Stream& stream);

/// to[i] = from[places[i]] for n entries of so many bytes, in stream order.
void gather_entries(std::size_t entry_bytes, std::int64_t n, const std::int32_t* places, const void* from, void* to,
                    Stream& stream);

/// n rows of `row_bytes` bytes from one matrix to another, whose rows begin so many bytes apart, in stream order. All are
/// multiples of the size of a value.
void copy_rows(std::size_t row_bytes, std::int64_t n, const void* from, std::size_t from_apart, void* to,
               std::size_t to_apart, Stream& stream);

}  // namespace shardmat
