// Eigenvalues, and the scores of PageRank.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "handles.h"

namespace shardmat::python {
namespace {

/// Ends what runs by Ctrl-C.
struct Interruptible {
  static int called(void* user, std::int64_t, const double*, std::int64_t) {
    if (ends_here()) return 1;
    const WithLock lock;
    if (PyErr_CheckSignals() == 0) return 0;
    static_cast<Interruptible*>(user)->error_.emplace();
    return 1;
  }
  /// Throws what a signal raised, or the error of a call that ended otherwise than by not converging.
  void check_end(int status) {
    if (error_) throw py::error_already_set(std::move(*error_));
    if (status != SHARDMAT_NOT_CONVERGED) check(status);
  }

 private:
  std::optional<py::error_already_set> error_;
};

/// The scores, and what came of it. `graph`: the name of a file, or (row_ptr, columns, values).
py::tuple pagerank(const NativeContext& context, const py::object& graph, std::int64_t vertices, const py::object& restarts,
                   double damping, double tolerance, std::int64_t max_iterations, bool unweighted, std::int64_t columns) {
  using Indices = py::array_t<std::int64_t, py::array::c_style>;
  using Numbers = py::array_t<double, py::array::c_style>;
  Interruptible monitor;
  shardmat_pagerank_options options{};
  options.size = sizeof options;
  options.damping = damping;
  options.tolerance = tolerance;
  options.max_iterations = max_iterations;
  options.unweighted = unweighted ? 1 : 0;
  options.columns = columns;
  options.monitor = &Interruptible::called;
  options.user = &monitor;
  shardmat_pagerank_result result{};
  result.size = sizeof result;
  Numbers scores({vertices, columns});
  const Numbers from = restarts.is_none() ? Numbers() : restarts.cast<Numbers>();
  const double* const of = restarts.is_none() ? nullptr : from.data();
  double* const to = scores.mutable_data();
  int status = SHARDMAT_OK;
  if (py::isinstance<py::str>(graph)) {
    const auto file = graph.cast<std::string>();
    status = unlocked([&] { return shardmat_pagerank_of_file(context.get(), file.c_str(), &options, of, to, &result); });
  } else {
    const auto arrays = graph.cast<py::tuple>();
    const auto row_ptr = arrays[0].cast<Indices>(), entries = arrays[1].cast<Indices>();
    const auto values = arrays[2].cast<py::array>();
    shardmat_rows rows{};
    rows.size = sizeof rows;
    rows.rows = rows.cols = vertices;
    rows.row_ptr = row_ptr.data();
    rows.columns = entries.data();
    rows.values = values.data();
    rows.value_type = type_of(values.dtype());
    status = unlocked([&] { return shardmat_pagerank_of_rows(context.get(), &rows, &options, of, to, &result); });
  }
  monitor.check_end(status);
  py::dict described;
  described["converged"] = result.converged != 0;
  described["iterations"] = result.iterations;
  described["dangling"] = result.dangling;
  described["change"] = result.change;
  described["seconds"] = result.seconds;
  return py::make_tuple(scores, described);
}

/// Values, vectors (own rows × values) or None, and what came of it.
py::tuple eigen(const NativeMatrix& k, const NativeMatrix* m, const std::string& method, const std::string& which,
                std::int64_t count, std::optional<double> shift, double tolerance, std::int64_t max_iterations,
                const py::object& x0, const py::object& coordinates, bool with_vectors, bool confirm,
                const std::string& inner, bool check_count) {
  using Numbers = py::array_t<double, py::array::c_style | py::array::forcecast>;
  Interruptible monitor;
  shardmat_matrix_info info{};
  info.size = sizeof info;
  check(shardmat_matrix_get_info(k.get(), &info));
  shardmat_eigen_options options{};
  options.size = sizeof options;
  options.count = count, options.tolerance = tolerance, options.max_iterations = max_iterations;
  options.method = method.c_str(), options.inner = inner.c_str(), options.check_count = check_count ? 1 : 0,
  options.which = which.c_str();
  options.has_shift = shift ? 1 : 0, options.shift = shift.value_or(0), options.no_confirm = confirm ? 0 : 1;
  const Numbers begin = x0.is_none() ? Numbers() : x0.cast<Numbers>();
  if (!x0.is_none()) options.x0 = begin.data(), options.x0_columns = begin.shape(1);
  const Numbers nodes = coordinates.is_none() ? Numbers() : coordinates.cast<Numbers>();
  if (!coordinates.is_none())
    options.coordinates = nodes.data(), options.nodes = nodes.shape(0),
    options.dimensions = static_cast<std::int32_t>(nodes.shape(1));
  options.monitor = &Interruptible::called;
  options.user = &monitor;
  shardmat_eigen_result result{};
  result.size = sizeof result;
  const std::int64_t most = which == "both" ? std::min(2 * count, info.rows) : count;
  Numbers values(most), vectors({with_vectors ? info.own_rows : 0, most});
  double *const to = values.mutable_data(), *const of = with_vectors ? vectors.mutable_data() : nullptr;
  const int status =
      unlocked([&] { return shardmat_eigen(k.get(), m == nullptr ? nullptr : m->get(), &options, to, of, &result); });
  monitor.check_end(status);
  py::dict described;
  described["converged"] = result.converged != 0;
  described["confirmed"] = result.confirmed != 0;
  described["iterations"] = result.iterations;
  described["zero_modes"] = result.zero_modes;
  described["missing"] = result.missing;
  described["residual"] = result.residual;
  described["orthogonality"] = result.orthogonality;
  described["setup_seconds"] = result.setup_seconds;
  described["seconds"] = result.seconds;
  return py::make_tuple(values, with_vectors ? py::object(vectors) : py::none(), described);
}

}  // namespace

void add_eigen(py::module_& module) {
  module.def("pagerank", &pagerank);
  module.def("eigen", &eigen);
}

}  // namespace shardmat::python
