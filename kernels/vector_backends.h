// The two implementations behind vector.h. Internal to kernels/.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"
#include "kernels/base/types.h"
#include "kernels/spmm_plan.h"
#include "kernels/vector.h"

namespace shardmat {

constexpr int kDotBlocks = 1024;  ///< partial sums of a dot product of any length, so the order of sums is fixed

constexpr int kDotColumns = 256;  ///< columns that a thread block sums at a time

/// from[i + j·from_apart] becomes to[i·to_apart + j], for i < rows and j < columns. Strides count entries.
struct Transposition {
  std::int64_t rows, columns;
  const void* from;
  std::int64_t from_apart;
  void* to;
  std::int64_t to_apart;
};

struct VectorBackend {
  /// `partial`: 2·kDotBlocks sums, then 8 bytes that are 0 before and after the call.
  void (*dots)(ValueType type, std::int64_t n, const void* x, const void* y, double* partial, double* result,
               Stream& stream);
  void (*fill)(ValueType type, std::int64_t n, double value, void* x, Stream& stream);
  /// `partial`: kDotBlocks·columns sums, then for each kDotColumns columns 8 bytes that are 0 before and after the call.
  void (*column_dots)(ValueType type, std::int64_t n, std::int64_t columns, const void* x, const void* y, double* partial,
                      double* result, Stream& stream);
  void (*combine)(ValueType type, std::int64_t n, std::int64_t columns, Factor a, const void* x, Factor b, void* y,
                  Stream& stream);
  void (*square_roots)(std::int64_t n, double* values, Stream& stream);
  Magnitudes (*magnitudes)(ValueType type, std::int64_t n, const void* x, Stream& stream);
  void (*normalise)(ValueType type, std::int64_t n, const void* y, const double* norm_squared, void* x, Stream& stream);
  void (*gather)(std::size_t entry_bytes, std::int64_t n, const std::int32_t* places, const void* from, void* to,
                 Stream& stream);
  void (*add_entries)(ValueType type, std::int64_t n, std::int64_t columns, const std::int32_t* places, const void* from,
                      void* to, DenseStrides to_strides, Stream& stream);
  void (*copy_rows)(std::size_t row_bytes, std::int64_t n, const void* from, std::size_t from_apart, void* to,
                    std::size_t to_apart, Stream& stream);
  void (*transpose)(std::size_t entry_bytes, const Transposition& entries, Stream& stream);
  /// `lines` times `length` entries, where each line begins `apart` entries after the one before.
  void (*scale_lines)(ValueType type, std::int64_t lines, std::int64_t length, std::int64_t apart, double factor, void* y,
                      Stream& stream);
};

extern const VectorBackend host_vector_backend;
extern const VectorBackend cuda_vector_backend;

}  // namespace shardmat
