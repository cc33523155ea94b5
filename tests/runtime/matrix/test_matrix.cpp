#include "tests/runtime/matrix/test_matrix.h"

#include <gtest/gtest.h>

#include "runtime/matrix/vectors.h"

namespace shardmat::test {

HostVector<double> multiply_once(const Product& product, Stream& stream) {
  const Buffer y(stream.device(), product.y_bytes());
  fill_bytes(y.data(), 0xff, y.bytes(), stream);  // NaN: a row nobody writes shows
  fill_x(product, stream);
  product.multiply(1, 0, product.y_view(y.data()), stream);
  product.wait(stream);
  return to_host(y.data(), product.matrix().local_rows() * product.columns(), sum_type(product.matrix().type()), stream);
}

void expect_product(const Product& product, const HostCsr& a, const HostVector<double>& y) {
  const DistributedMatrix& matrix = product.matrix();
  const auto columns = static_cast<std::size_t>(product.columns());
  for (std::size_t i = 0; i < matrix.y_rows()->ids().size(); ++i) {
    const auto row = static_cast<std::size_t>(matrix.y_rows()->ids()[i]);
    for (std::size_t j = 0; j < columns; ++j) {
      double sum = 0, absolute = 0;
      for (auto k = static_cast<std::size_t>(a.row_ptr[row]); k < static_cast<std::size_t>(a.row_ptr[row + 1]); ++k) {
        const double term = rounded(matrix.type(), a.values[k]) * x_at(a.col_idx[k], static_cast<std::int64_t>(j));
        sum += term, absolute += std::abs(term);
      }
      const double bound = 2 * unit_roundoff(sum_type(matrix.type())) *
                           static_cast<double>(a.row_ptr[row + 1] - a.row_ptr[row] + 1) * absolute;
      ASSERT_LE(std::abs(y[i * columns + j] - sum), bound) << "row " << row << ", right-hand side " << j;
    }
  }
}

}  // namespace shardmat::test
