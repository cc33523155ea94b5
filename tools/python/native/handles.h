// The Python objects of the native module. shardmat/*.py wraps them; nothing else uses them.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "support.h"

namespace shardmat::python {

class NativeContext {
 public:
  NativeContext(const std::string& backend, int threads, double timeout, std::optional<std::int32_t> communicator,
                int owners, bool feeders);
  shardmat_context* get() const { return handle_.get(); }
  std::shared_ptr<shardmat_context> share() const { return handle_; }
  py::dict info() const;

 private:
  std::shared_ptr<shardmat_context> handle_;
};

class NativeMatrix;

class NativeProduct {
 public:
  NativeProduct(const NativeMatrix& matrix, std::int64_t columns, const std::optional<std::string>& kernel,
                const std::optional<std::string>& exchange, bool transposed = false);
  /// Y = alpha·A·X + beta·Y. REQUIRES: the Python lock, which it releases meanwhile.
  void multiply(double alpha, const View& x, double beta, const View& y, void* stream) const;
  /// Times of products that C++ makes one after another, for what Python adds to them.
  py::array_t<double> seconds(const View& x, const View& y, std::int64_t count) const;
  py::dict info() const;
  const Place& place() const { return place_; }

 private:
  Place place_;
  Owned<shardmat_product, shardmat_product_destroy> handle_;
};

class NativeMatrix {
 public:
  NativeMatrix(shardmat_matrix* handle, const NativeContext& context);

  shardmat_matrix* get() const { return handle_.get(); }
  const Place& place() const { return place_; }
  py::dict info() const;
  py::array_t<std::int64_t> row_ids() const;
  py::array_t<std::int64_t> col_ids() const;
  void update_values(const py::object& values, const py::object& stream) const;
  void zero_rows_columns(const py::array_t<std::int64_t, py::array::c_style>& rows, double diagonal, const py::object& x,
                         const py::object& b) const;
  /// A·x, or Aᵀ·x, in a new array; None if x is not an array of NumPy of the matrix's type that lies row by row. Makes a
  /// product for its number of columns by the first call, and keeps it.
  py::object matmul(const py::object& x, bool transposed);
  /// The same into `out`, wherever x and out lie.
  void multiply(const py::object& x, const py::object& out, bool transposed);
  NativeProduct& product(std::int64_t columns, bool transposed);

 private:
  Place place_;
  Owned<shardmat_matrix, shardmat_matrix_destroy> handle_;
  shardmat_matrix_info sizes_{};
  py::object x_dtype_;  ///< None for bf16, which NumPy does not have
  py::dtype y_dtype_;
  std::map<std::pair<std::int64_t, bool>, NativeProduct> products_;  ///< by columns, and transposed or not; go first
};

}  // namespace shardmat::python
