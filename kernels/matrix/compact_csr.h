// A matrix on the host that takes as little memory as its CSR storage: 32-bit columns where they fit, and f32 values of a
// matrix in f32. A storage in format csr may share its arrays.
//
// Threads: one thread at a time changes a matrix; several may read it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "kernels/base/device.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/types.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

/// Owning CSR: row_ptr[0] = 0; a row has its columns in any order. Move-only.
class CompactCsr {
 public:
  CompactCsr() = default;
  /// Uninitialised columns and values for these rows. Columns are 64-bit if `cols` is above 2^31. Values are f32 if `type`
  /// is, else f64.
  CompactCsr(std::int64_t cols, HostVector<std::int64_t> offsets, ValueType type);
  /// A copy. REQUIRES: the values are in the type's range.
  CompactCsr(const CsrView& matrix, ValueType type);
  CompactCsr(const CompactCsr&) = delete;
  CompactCsr& operator=(const CompactCsr&) = delete;
  CompactCsr(CompactCsr&&) = default;
  CompactCsr& operator=(CompactCsr&&) = default;

  std::int64_t rows = 0;
  std::int64_t cols = 0;
  HostVector<std::int64_t> row_ptr{0};  ///< rows + 1 entries

  std::int64_t nnz() const { return row_ptr.back(); }
  ColumnView columns() const;
  ValueView values() const;
  CsrView view() const { return {rows, cols, row_ptr, columns(), values(), nullptr}; }
  /// A view from which a storage may keep columns and values: after this call they must not be changed.
  CsrView shared_view() const { return {rows, cols, row_ptr, columns(), values(), arrays_}; }
  bool has_narrow_columns() const { return !wide_columns_; }
  bool has_narrow_values() const { return !wide_values_; }

  /// Returns use(span) with the columns (std::int32_t or std::int64_t), to be changed.
  template <class Use>
  decltype(auto) change_columns(const Use& use) {
    const auto count = static_cast<std::size_t>(nnz());
    if (wide_columns_) return use(std::span(column_data<std::int64_t>(), count));
    return use(std::span(column_data<std::int32_t>(), count));
  }
  /// Returns use(span) with the values (float or double), to be changed.
  template <class Use>
  decltype(auto) change_values(const Use& use) {
    const auto count = static_cast<std::size_t>(nnz());
    if (wide_values_) return use(std::span(value_data<double>(), count));
    return use(std::span(value_data<float>(), count));
  }

  /// Bytes of all arrays.
  std::int64_t bytes() const;
  /// Bytes of a nonzero.
  static std::int64_t entry_bytes(std::int64_t cols, ValueType type);
  /// Frees the arrays, or leaves them to storages that share them.
  void clear();

 private:
  struct Arrays {
    Buffer columns, values;
  };
  template <class T>
  T* column_data() const {
    return arrays_ == nullptr ? nullptr : arrays_->columns.as<T>();
  }
  template <class T>
  T* value_data() const {
    return arrays_ == nullptr ? nullptr : arrays_->values.as<T>();
  }

  bool wide_columns_ = false, wide_values_ = true;
  std::shared_ptr<const Arrays> arrays_;
};

}  // namespace shardmat
