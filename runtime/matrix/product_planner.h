// Makes the products of a matrix: chooses how x moves, how many right-hand sides at a time, and the kernels.
//
// Threads: as DistributedMatrix. Everything is collective.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "comm/exchange/exchange.h"
#include "runtime/maps/row_map.h"
#include "runtime/matrix/boundary_rows.h"
#include "runtime/matrix/matrix_options.h"
#include "runtime/matrix/matrix_rows.h"

namespace shardmat {

class DistributedMatrix;
class Product;
class Schedule;

class ProductPlanner {
 public:
  /// Maps the columns of the rows to places in x, and makes the exchange of the first product. Keeps the references.
  ProductPlanner(MatrixRows& rows, const Boundary& boundary, const RowMap& x_rows, const MatrixOptions& options,
                 Context& context);

  const std::shared_ptr<const ColumnMap>& column_map() const { return map_; }
  /// See DistributedMatrix::product().
  std::unique_ptr<Product> product(const DistributedMatrix& matrix, const ProductOptions& wanted);

 private:
  struct Widths {
    std::int64_t all, at_a_time;
    std::string why;  ///< why at_a_time is less than all; else empty
  };

  void map_columns();
  void require(const ProductOptions& wanted) const;
  std::int64_t bytes_besides_x(const ProductOptions& wanted) const;
  template <class Entries>
  Widths choose_widths(const ProductOptions& wanted, const Entries& entries_held) const;
  ExchangeContext exchange_context(const ProductOptions& wanted, const Widths& widths) const;
  std::unique_ptr<Schedule> make_schedule(const ProductOptions& wanted, const Widths& widths);
  std::vector<RowPlan> plan_rows(const ProductOptions& wanted, const Schedule& schedule, const Widths& widths);
  std::string why_rows_wait(const ProductOptions& wanted, const Schedule& schedule, const std::vector<RowPlan>& plans,
                            bool overlapped) const;
  std::optional<Buffer> memory_for_y(const ProductOptions& wanted) const;

  MatrixRows& rows_;
  Boundary boundary_;
  const RowMap& x_rows_;
  const MatrixOptions& options_;
  Context& context_;
  std::shared_ptr<const ColumnMap> map_;
  std::optional<Widths> first_widths_;
  std::unique_ptr<Exchange> first_exchange_;  ///< the first product takes it
};

}  // namespace shardmat
