
#include <algorithm>
#include <utility>
#include <vector>

#include "handles.h"

namespace shardmat::python {
namespace {

class NativeSolver {
 public:
  NativeSolver(const NativeMatrix& matrix, const py::dict& settings)
      : place_(matrix.place()), monitor_(std::make_unique<Monitor>()), own_(std::make_unique<Own>()) {
    shardmat_solver_options options{};
    options.size = sizeof options;
    std::string texts;
    py::array_t<double> coordinates, vectors, null_vectors;
    for (const auto& [key, value] : settings) {
      const auto name = key.cast<std::string>();
      if (name == "monitor") monitor_->call = py::reinterpret_borrow<py::object>(value);
      else if (name == "watch")
        monitor_->watch = py::reinterpret_borrow<py::object>(value), options.watch = &Monitor::watched;
      else if (name == "apply") own_->call = py::reinterpret_borrow<py::object>(value), options.apply = &Own::called;
      else if (name == "apply_is_linear") options.apply_is_linear = value.cast<bool>() ? 1 : 0;
      else if (name == "columns") options.columns = value.cast<std::int64_t>();
      else if (name == "coordinates") coordinates = py::reinterpret_borrow<py::array_t<double>>(value);
      else if (name == "null_vectors") null_vectors = py::reinterpret_borrow<py::array_t<double>>(value);
      else if (name == "near_null_vectors") vectors = py::reinterpret_borrow<py::array_t<double>>(value);
      else texts += (texts.empty() ? "" : " ") + name + "=" + value.cast<std::string>();
    }
    options.settings = texts.c_str();
    if (coordinates.ndim() == 2) {
      options.coordinates = coordinates.data();
      options.nodes = coordinates.shape(0), options.dimensions = static_cast<std::int32_t>(coordinates.shape(1));
    }
    if (vectors.ndim() == 2) {
      options.near_null_vectors = vectors.data();
      options.near_null_count = static_cast<std::int32_t>(vectors.shape(1));
    }
    if (null_vectors.ndim() == 2) {
      options.null_vectors = null_vectors.data();
      options.null_count = static_cast<std::int32_t>(null_vectors.shape(1));
    }
    options.monitor = &Monitor::called;
    options.user = monitor_.get();
    options.apply_user = own_.get();
    columns_ = options.columns == 0 ? 1 : options.columns;
    shardmat_solver* made = nullptr;
    call([&] { return shardmat_solver_create(matrix.get(), &options, &made); });
    handle_.reset(made);
  }

  void refresh() const {
    call([&] { return shardmat_solver_refresh(handle_.get()); });
  }

  void precondition(const py::object& r, const py::object& z) const {
    const View from(r, "r", false, place_), to(z, "z", true, place_);
    own_->error.reset();
    const int status = unlocked([&] { return shardmat_solver_precondition(handle_.get(), &from.dense(), &to.dense()); });
    raise(own_->error);
    check(status);
  }

  /// This rank's rows of the prolongation to a level: where they begin, columns, values.
  py::tuple prolongation(std::int64_t level) const {
    shardmat_multigrid_level about{};
    about.size = sizeof about;
    call([&] { return shardmat_solver_get_level(handle_.get(), level, &about); });
    py::array_t<std::int64_t> starts(about.prolongation_rows + 1), columns(about.prolongation_entries);
    py::array_t<double> values(about.prolongation_entries);
    std::int64_t *const to_starts = starts.mutable_data(), *const to_columns = columns.mutable_data();
    double* const to_values = values.mutable_data();
    call([&] { return shardmat_solver_get_prolongation(handle_.get(), level, to_starts, to_columns, to_values); });
    return py::make_tuple(starts, columns, values);
  }

  /// The levels of multigrid; None of another preconditioner.
  py::object multigrid() const {
    shardmat_multigrid_info info{};
    info.size = sizeof info;
    call([&] { return shardmat_solver_get_multigrid(handle_.get(), &info); });
    if (info.levels == 0) return py::none();
    py::list levels;
    for (std::int64_t l = 0; l < info.levels; ++l) {
      shardmat_multigrid_level level{};
      level.size = sizeof level;
      call([&] { return shardmat_solver_get_level(handle_.get(), l, &level); });
      py::dict described;
      described["unknowns"] = level.unknowns;
      described["nonzeros"] = level.nonzeros;
      described["radius"] = level.radius > 0 ? py::object(py::float_(level.radius)) : py::object(py::none());
      levels.append(described);
    }
    py::dict described;
    described["levels"] = levels;
    described["operator_complexity"] = info.operator_complexity;
    described["near_null_space"] = info.near_null_space;
    described["cycle"] = info.cycle;
    described["smoother"] = info.smoother;
    described["setup_seconds"] = info.setup_seconds;
    described["memory_bytes"] = info.memory_bytes;
    return described;
  }

  /// Solves in x; returns what each column came to.
  py::list solve(const py::object& b, const py::object& x) {
    const View from(b, "b", false, place_), to(x, "x", true, place_);
    std::vector<shardmat_solve_result> results(static_cast<std::size_t>(columns_));
    for (auto& result : results) result.size = sizeof result;
    monitor_->error.reset(), own_->error.reset();
    const int status =
        unlocked([&] { return shardmat_solver_solve(handle_.get(), &from.dense(), &to.dense(), results.data()); });
    raise(monitor_->error), raise(own_->error);
    if (status != SHARDMAT_NOT_CONVERGED) check(status);
    py::list columns;
    for (std::int64_t j = 0; j < columns_; ++j) columns.append(describe(results[static_cast<std::size_t>(j)], j));
    return columns;
  }

 private:
  static void raise(std::optional<py::error_already_set>& kept) {
    if (!kept) return;
    py::error_already_set error = std::move(*kept);
    kept.reset();
    throw error;
  }

  static std::vector<py::ssize_t> shape_of(const shardmat_dense& v) {
    return v.columns == 1 ? std::vector<py::ssize_t>{v.rows} : std::vector<py::ssize_t>{v.rows, v.columns};
  }
  static py::array copy_of(const shardmat_dense& v) { return {dtype_of(v.type), shape_of(v), v.data}; }

  /// A preconditioner of the program. Called by the library without Python's lock.
  struct Own {
    static int called(void* user, const shardmat_dense* r, const shardmat_dense* z, char* problem) {
      if (ends_here()) return SHARDMAT_INTERNAL;
      auto& self = *static_cast<Own*>(user);
      const WithLock lock;
      try {
        return self.apply(*r, *z);
      } catch (py::error_already_set& error) {
        const std::string text =
            py::str(error.type().attr("__name__")).cast<std::string>() + ": " + py::str(error.value()).cast<std::string>();
        std::copy_n(text.data(), std::min<std::size_t>(text.size(), 255), problem);
        const int status = error.matches(PyExc_MemoryError)  ? SHARDMAT_RESOURCES
                           : error.matches(PyExc_ValueError) ? SHARDMAT_USAGE
                                                             : SHARDMAT_INTERNAL;
        self.error.emplace(std::move(error));
        return status;
      }
    }
    int apply(const shardmat_dense& r, const shardmat_dense& z) const {
      const py::array given = copy_of(r);
      const py::object numpy = py::module_::import("numpy"), found = numpy.attr("asarray")(call(given));
      if (!found.attr("shape").equal(given.attr("shape")))
        throw_value_error("a preconditioner gave an array of shape " + py::str(found.attr("shape")).cast<std::string>() +
                          " for one of shape " + py::str(given.attr("shape")).cast<std::string>());
      const py::array to(dtype_of(z.type), shape_of(z), z.data, py::none());  // a view
      numpy.attr("copyto")(to, found, "same_kind");
      return SHARDMAT_OK;
    }
    [[noreturn]] static void throw_value_error(const std::string& text) {
      PyErr_SetString(PyExc_ValueError, text.c_str());
      throw py::error_already_set();
    }
    py::object call;
    std::optional<py::error_already_set> error;
  };

  /// Called by the library without Python's lock. Also where Ctrl-C ends a solve.
  struct Monitor {
    static int called(void* user, std::int64_t iterations, const double* norms, std::int64_t columns) {
      auto& self = *static_cast<Monitor*>(user);
      return self.asks([&] {
        return self.call ? self.call(iterations, std::vector<double>(norms, norms + columns)) : py::object(py::none());
      });
    }
    static int watched(void* user, std::int64_t, const shardmat_dense* x) {
      auto& self = *static_cast<Monitor*>(user);
      return self.asks([&] { return self.watch(copy_of(*x)); });
    }
    template <class F>
    int asks(F&& program) {
      if (ends_here()) return 1;
      const WithLock lock;
      if (error) return 1;
      try {
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        const py::object wish = program();
        return !wish.is_none() && wish.cast<bool>() ? 1 : 0;
      } catch (py::error_already_set& thrown) {
        error.emplace(std::move(thrown));
      } catch (const py::cast_error&) {
        PyErr_SetString(PyExc_TypeError, "a monitor returns None, or True to end the solve");
        error.emplace();
      }
      return 1;
    }
    py::object call, watch;
    std::optional<py::error_already_set> error;
  };

  py::dict describe(const shardmat_solve_result& result, std::int64_t column) const {
    py::dict described;
    described["converged"] = result.converged != 0;
    described["reason"] = result.reason;
    described["explanation"] = result.explanation;
    described["iterations"] = result.iterations;
    described["residual"] = result.residual;
    described["true_residual"] = result.true_residual;
    described["norm_of_b"] = result.norm_of_b;
    described["removed_from_b"] = result.removed_from_b;
    described["penalty_rows"] = result.penalty_rows;
    described["penalty_ratio"] = result.penalty_ratio;
    described["floor"] = result.floor;
    described["backward_error"] = result.backward_error;
    described["condition"] = result.condition;
    described["error_bound"] = result.error_bound;
    described["normal_residual"] = result.normal_residual;
    described["breakdowns"] = result.breakdowns;
    described["seconds"] = result.seconds;
    std::int64_t count = 0;
    call([&] { return shardmat_solver_history(handle_.get(), column, nullptr, 0, &count); });
    py::array_t<double> norms(count);
    double* const to = norms.mutable_data();
    call([&] { return shardmat_solver_history(handle_.get(), column, to, count, &count); });
    described["history"] = norms;
    return described;
  }

  Place place_;
  std::unique_ptr<Monitor> monitor_;
  std::unique_ptr<Own> own_;
  std::int64_t columns_ = 1;
  Owned<shardmat_solver, shardmat_solver_destroy> handle_;
};

}  // namespace

void add_solver(py::module_& module) {
  py::class_<NativeSolver>(module, "Solver")
      .def(py::init<const NativeMatrix&, const py::dict&>())
      .def("refresh", &NativeSolver::refresh)
      .def("multigrid", &NativeSolver::multigrid)
      .def("precondition", &NativeSolver::precondition)
      .def("prolongation", &NativeSolver::prolongation)
      .def("solve", &NativeSolver::solve);
}

}  // namespace shardmat::python
