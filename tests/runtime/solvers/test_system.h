// A matrix with its b and x, and the methods, for tests of solvers.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "partition/source/row_source.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/direct/factors.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/solver.h"
#include "tests/runtime/matrix/test_matrix.h"

namespace shardmat::test {

/// A matrix with its b and x.
struct System {
  TestMatrix at;
  DistributedVector b, x;
  System(const Case& c, const std::string& specification, std::int64_t columns, LocalSort sort = LocalSort::none)
      : at(c, specification, sort),
        b(at.matrix, VectorLayout::rows, c.type, columns),
        x(at.matrix, VectorLayout::rows, c.type, columns) {
    HostVector<double> values;
    for (const std::int64_t id : b.ids())
      for (std::int64_t j = 0; j < columns; ++j) values.push_back(x_at(id, j) + 0.25);
    to_device(b.view().data, values, c.type, at.context.stream());
    x.fill(0, at.context.stream());
  }
  Stream& stream() { return at.context.stream(); }

  /// ‖b − A·x‖ of column j, by a sequential loop over all rows on every rank.
  double residual(const HostCsr& a, std::int64_t j) {
    HostVector<double> xs = x.gather(stream()), bs = b.gather(stream());
    xs.resize(static_cast<std::size_t>(x.rows() * x.columns()));
    bs.resize(xs.size());
    world().broadcast(std::span<double>(xs), 0);
    world().broadcast(std::span<double>(bs), 0);
    const auto at_of = [&](std::int64_t i) { return static_cast<std::size_t>(i * x.columns() + j); };
    double squares = 0;
    for (std::int64_t i = 0; i < a.rows; ++i) {
      double r = bs[at_of(i)];
      const auto row = static_cast<std::size_t>(i);
      for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k)
        r -= a.values[static_cast<std::size_t>(k)] * xs[at_of(a.col_idx[static_cast<std::size_t>(k)])];
      squares += r * r;
    }
    return std::sqrt(squares);
  }
};

/// Where the nodes of this rank's rows lie, as a generator tells, by the place of the rows.
inline std::shared_ptr<const NodeCoordinates> coordinates_of(const RowSource& source, const DistributedMatrix& matrix,
                                                             int size) {
  auto found = std::make_shared<NodeCoordinates>();
  const HostVector<std::int64_t> ids = matrix.y_rows()->ids_by_place();
  for (std::size_t i = 0; i < ids.size(); i += static_cast<std::size_t>(size)) {
    const HostVector<double> one = source.coordinates(ids[i] / size, ids[i] / size + 1);
    found->of_own.insert(found->of_own.end(), one.begin(), one.end());
  }
  return found;
}

/// Whether a method takes a preconditioner.
inline bool is_taken(std::string_view preconditioner, std::string_view method) {
  return preconditioner != "ilu" || find_method(method).demands == Demands::nothing;
}

/// Whether a preconditioner can be made here.
inline bool is_available(std::string_view preconditioner) {
  if (preconditioner == "field_split") return false;  // it is for saddle points
  return preconditioner != "direct" || direct::can_factorise(world());
}

/// A method, or one of its variants.
struct Form {
  std::string_view method;
  CgVariant variant;
  std::string text() const { return std::string(method) + " " + std::string(name(variant)); }
};

inline std::vector<Form> forms() {
  std::vector<Form> all;
  for (const MethodEntry& method : methods()) {
    if (!method.preconditioner.empty()) continue;  // it takes no other
    if (!method.variants) all.push_back({method.name, CgVariant::automatic});
    else
      for (const CgVariant variant : {CgVariant::classic, CgVariant::single_reduction, CgVariant::flexible})
        all.push_back({method.name, variant});
  }
  return all;
}

inline SolverOptions options_of(const Form& form, std::string_view preconditioner, const Case& c) {
  SolverOptions options;
  options.solver = form.method, options.variant = form.variant, options.preconditioner = preconditioner;
  options.rtol = c.type == ValueType::f64 ? 1e-9 : 1e-3;
  options.max_iterations = 2000;
  return options;
}

inline SolverOptions options_of(std::string_view method, std::string_view preconditioner, const Case& c) {
  return options_of(Form{method, CgVariant::automatic}, preconditioner, c);
}

}  // namespace shardmat::test
