// Rows and columns of a distributed matrix that become those of a diagonal matrix, for boundary values that are known.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "comm/exchange/exchange.h"
#include "comm/same_on_all_ranks.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "runtime/matrix/matrix_values.h"
#include "runtime/matrix/named_rows.h"
#include "runtime/matrix/product.h"
#include "runtime/matrix/vectors.h"

namespace shardmat {
void MatrixValues::require_zeroable(std::span<const std::int64_t> zeroed, double diagonal, const DistributedVector* x,
                                    const DistributedVector* b) const {
  if (y_rows_.size() != x_rows_.size())
    throw Error(ErrorKind::usage, fmt::format("rows and columns of the same numbers are zeroed in square matrices; this one "
                                              "is {} × {}",
                                              y_rows_.size(), x_rows_.size()));
  require_updatable(options_.values);
  if (is_half(options_.type))
    throw Error(ErrorKind::usage, fmt::format("rows and columns of a matrix in {} cannot be zeroed; store it in f64 or f32",
                                              name(options_.type)));
  if (!rows_.on_host())
    throw Error(ErrorKind::usage, "rows and columns are zeroed in the host rows, which were dropped; zero them before");
  for (const std::int64_t row : zeroed)
    if (row < 0 || row >= y_rows_.size())
      throw Error(ErrorKind::usage,
                  fmt::format("row {} cannot be zeroed; the matrix has rows 0 to {}", row, y_rows_.size() - 1));
  if (!std::isfinite(diagonal)) throw Error(ErrorKind::input, "the value of the diagonal is NaN or infinity");
  require_in_range(options_.type, std::span<const double>(&diagonal, 1), "the value of the diagonal");
  if ((x == nullptr) != (b == nullptr)) throw Error(ErrorKind::usage, "give both x and b, or none of them");
  for (const DistributedVector* vector : {x, b})
    if (vector != nullptr) vector->require_like(y_rows_, 1, sum_type(options_.type), vector == x ? "x" : "b");
}

void MatrixValues::zero_rows_columns(std::span<const std::int64_t> rows_to_zero, double diagonal, const DistributedVector* x,
                                     DistributedVector* b, const std::function<std::unique_ptr<Product>()>& make_product,
                                     Stream& stream) {
  Communicator& ranks = context_.communicator();
  ranks.run_agreed([&] { require_zeroable(rows_to_zero, diagonal, x, b); });
  require_same_on_all_ranks(ranks, {given_number("diagonal", diagonal)});
  if (ranks.all_reduce(x != nullptr ? 1 : 0, Reduction::sum) % ranks.size() != 0)
    ranks.run_agreed([] { throw Error(ErrorKind::usage, "some ranks give x and b, and some do not"); });
  const HostVector<std::int64_t> zeroed = named_on_all_ranks(rows_to_zero, ranks);
  const std::unique_ptr<Product> of_one = make_product();

  // 1 for each entry of x that is zeroed, also for those of other ranks that the rows of this rank read.
  HostVector<double> mine, all;
  ranks.run_agreed([&] {
    require_host_memory(8 * (2 * rows_.nnz() + 3 * y_rows_.local_rows() + columns_.length()), "the zeroed matrix");
    mine.resize(static_cast<std::size_t>(y_rows_.local_rows()));
    for (std::size_t i = 0; i < mine.size(); ++i)
      mine[i] = std::binary_search(zeroed.begin(), zeroed.end(), y_rows_.ids()[i]) ? 1 : 0;
    to_device(of_one->x().data, mine, options_.type, stream);
  });
  of_one->move_x(stream);
  of_one->wait(stream);
  ranks.run_agreed([&] { all = to_host(of_one->exchange().x(), columns_.length(), options_.type, stream); });

  HostVector<double> values;
  ranks.run_agreed([&] {
    rows_.on_host_now(stream);
    values = zeroed_values(mine, all, diagonal);
  });
  if (x != nullptr) move_known_values(*of_one, mine, diagonal, *x, *b, stream);
  ConstDense of_nonzeros;
  of_nonzeros.data = values.data(), of_nonzeros.rows = rows_.nnz();
  update_nonzeros(of_nonzeros, stream);
  stream.synchronize();  // `values` is read until then on the host
}

/// b -= A·x of the zeroed entries of x, with the old values of A; then diagonal·x in the zeroed rows.
void MatrixValues::move_known_values(const Product& of_one, const HostVector<double>& mine, double diagonal,
                                     const DistributedVector& x, DistributedVector& b, Stream& stream) const {
  Communicator& ranks = context_.communicator();
  HostVector<double> known;
  ranks.run_agreed([&] {
    known = to_host(x.view().data, y_rows_.local_rows(), x.type(), stream);
    HostVector<double> moved(known.size());
    for (std::size_t i = 0; i < known.size(); ++i) moved[i] = mine[i] != 0 ? known[i] : 0;
    to_device(of_one.x().data, moved, options_.type, stream);
  });
  of_one.multiply(-1, 1, b.view(), stream);
  of_one.wait(stream);
  ranks.run_agreed([&] {
    HostVector<double> right = to_host(b.view().data, y_rows_.local_rows(), b.type(), stream);
    for (std::size_t i = 0; i < right.size(); ++i)
      if (mine[i] != 0) right[i] = diagonal * known[i];
    to_device(b.view().data, right, b.type(), stream);
  });
}

/// The values of this rank's nonzeros, in the order of update_nonzeros(). `mine`: 1 for each zeroed row; `all`: for each
/// column.
HostVector<double> MatrixValues::zeroed_values(const HostVector<double>& mine, const HostVector<double>& all,
                                               double diagonal) const {
  const CsrView csr = rows_.view();
  HostVector<double> values(static_cast<std::size_t>(rows_.nnz()));
  for (std::size_t i = 0; i < static_cast<std::size_t>(csr.rows); ++i) {
    const std::int64_t on_diagonal = columns_.first_own() + static_cast<std::int64_t>(i);
    bool has_diagonal = false;
    for (std::int64_t k = csr.row_ptr[i]; k < csr.row_ptr[i + 1]; ++k) {
      const std::int64_t column = csr.col_idx[static_cast<std::size_t>(k)];
      double value = csr.values[static_cast<std::size_t>(k)];
      if (mine[i] != 0 || all[static_cast<std::size_t>(column)] != 0) value = 0;
      if (mine[i] != 0 && column == on_diagonal) value = diagonal, has_diagonal = true;
      values[static_cast<std::size_t>(rows_.value_starts()[i] + k - csr.row_ptr[i])] = value;
    }
    if (mine[i] != 0 && !has_diagonal && diagonal != 0)
      throw Error(ErrorKind::input,
                  fmt::format("row {} stores no entry on its diagonal, which cannot become {:g}; store a 0 "
                              "there when the matrix is made",
                              y_rows_.ids()[i], diagonal));
  }
  return values;
}

}  // namespace shardmat
