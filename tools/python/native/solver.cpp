
#include <utility>
#include <vector>

#include "handles.h"

namespace shardmat::python {
namespace {

class NativeSolver {
 public:
  NativeSolver(const NativeMatrix& matrix, const py::dict& settings)
      : place_(matrix.place()), monitor_(std::make_unique<Monitor>()) {
    shardmat_solver_options options{};
    options.size = sizeof options;
    std::string texts;
    py::array_t<double> coordinates, vectors;
    for (const auto& [key, value] : settings) {
      const auto name = key.cast<std::string>();
      if (name == "monitor") monitor_->call = py::reinterpret_borrow<py::object>(value);
      else if (name == "columns") options.columns = value.cast<std::int64_t>();
      else if (name == "coordinates") coordinates = py::reinterpret_borrow<py::array_t<double>>(value);
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
    options.monitor = &Monitor::called;
    options.user = monitor_.get();
    columns_ = options.columns == 0 ? 1 : options.columns;
    shardmat_solver* made = nullptr;
    call([&] { return shardmat_solver_create(matrix.get(), &options, &made); });
    handle_.reset(made);
  }

  void refresh() const {
    call([&] { return shardmat_solver_refresh(handle_.get()); });
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
    described["setup_seconds"] = info.setup_seconds;
    described["memory_bytes"] = info.memory_bytes;
    return described;
  }

  /// Solves in x; returns what each column came to.
  py::list solve(const py::object& b, const py::object& x) {
    const View from(b, "b", false, place_), to(x, "x", true, place_);
    std::vector<shardmat_solve_result> results(static_cast<std::size_t>(columns_));
    for (auto& result : results) result.size = sizeof result;
    monitor_->error.reset();
    const int status =
        unlocked([&] { return shardmat_solver_solve(handle_.get(), &from.dense(), &to.dense(), results.data()); });
    if (monitor_->error) {
      py::error_already_set error = std::move(*monitor_->error);
      monitor_->error.reset();
      throw error;
    }
    if (status != SHARDMAT_NOT_CONVERGED) check(status);
    py::list columns;
    for (std::int64_t j = 0; j < columns_; ++j) columns.append(describe(results[static_cast<std::size_t>(j)], j));
    return columns;
  }

 private:
  /// Called by the library without Python's lock. Also where Ctrl-C ends a solve.
  struct Monitor {
    static int called(void* user, std::int64_t iterations, const double* norms, std::int64_t columns) {
      if (ends_here()) return 1;
      auto& self = *static_cast<Monitor*>(user);
      const WithLock lock;
      if (self.error) return 1;
      try {
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        if (!self.call) return 0;
        const py::object wish = self.call(iterations, std::vector<double>(norms, norms + columns));
        return !wish.is_none() && wish.cast<bool>() ? 1 : 0;
      } catch (py::error_already_set& error) {
        self.error.emplace(std::move(error));
      } catch (const py::cast_error&) {
        PyErr_SetString(PyExc_TypeError, "a monitor returns None, or True to end the solve");
        self.error.emplace();
      }
      return 1;
    }
    py::object call;
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
  std::int64_t columns_ = 1;
  Owned<shardmat_solver, shardmat_solver_destroy> handle_;
};

}  // namespace

void add_solver(py::module_& module) {
  py::class_<NativeSolver>(module, "Solver")
      .def(py::init<const NativeMatrix&, const py::dict&>())
      .def("refresh", &NativeSolver::refresh)
      .def("multigrid", &NativeSolver::multigrid)
      .def("solve", &NativeSolver::solve);
}

}  // namespace shardmat::python
