// A matrix that every test rank knows whole, and products of it by a plain loop.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "partition/generators/generator.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/contexts.h"

namespace shardmat::test {

/// All rows of a generator's matrix.
inline HostCsr whole_matrix(const std::string& specification) {
  const auto source = make_generator(specification);
  return source->read_rows(0, source->rows());
}

/// A matrix of this case's type, whose x moves by its exchange.
inline LoadOptions options_for(const Case& c, LocalSort sort = LocalSort::as_file) {
  LoadOptions options;
  options.type = c.type, options.exchange = c.exchange, options.sort = sort;
  return options;
}

/// A generator's matrix on all ranks, and the context that it works in.
struct TestMatrix {
  Context& context;
  DistributedMatrix matrix;
  TestMatrix(const Case& c, const std::string& specification, LocalSort sort)
      : context(context_of(c)), matrix(open_matrix(specification, world()), context, options_for(c, sort)) {}
};

/// Column j of x at index i, exact in f16.
inline double x_at(std::int64_t i, std::int64_t j) { return static_cast<double>((i * 7 + j * 13) % 17 - 8) / 8; }

/// X of a product, filled with x_at() of each original index.
inline void fill_x(const Product& product, Stream& stream) {
  const HostVector<std::int64_t>& ids = product.matrix().x_rows()->ids();
  HostVector<double> x;
  for (const std::int64_t id : ids)
    for (std::int64_t j = 0; j < product.columns(); ++j) x.push_back(x_at(id, j));
  const Dense slot = product.x();
  dispatch_operands(slot.type, [&](auto tag, auto) {
    using T = typename decltype(tag)::type;
    HostVector<T> converted(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) converted[i] = static_cast<T>(x[i]);
    copy_to_device(slot.data, converted.data(), converted.size() * sizeof(T), stream);
  });
}

/// Y = A·X by the product, this rank's rows as f64.
HostVector<double> multiply_once(const Product& product, Stream& stream);

/// Each row of this rank is that of A·X within the rounding of the type, A in original order.
void expect_product(const Product& product, const HostCsr& a, const HostVector<double>& y);

}  // namespace shardmat::test
