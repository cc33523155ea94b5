// The native module shardmat._shardmat: the C interface as Python objects. shardmat/*.py loads it when a matrix is made.
#include "support.h"

namespace {

/// shardmat.errors names the exception of each status.
void raise(const shardmat::python::Failure& failure) {
  const py::object exception = py::module_::import("shardmat.errors").attr("exception_of")(failure.status);
  PyErr_SetString(exception.ptr(), failure.message.c_str());
}

}  // namespace

PYBIND11_MODULE(_shardmat, module) {
#if PYBIND11_VERSION_HEX < 0x020C0000
  const auto numpy = py::module_::import("numpy").attr("__version__").cast<std::string>();
  if (std::stoi(numpy) >= 2)
    throw py::import_error(
        "shardmat was built with pybind11 " PYBIND11_TOSTRING(PYBIND11_VERSION_MAJOR) "." PYBIND11_TOSTRING(
            PYBIND11_VERSION_MINOR) ", which does not know arrays of NumPy " +
        numpy + "; build it with pybind11 2.12 or later, or take NumPy 1");
#endif
  py::register_exception_translator([](std::exception_ptr error) {
    try {
      if (error) std::rethrow_exception(error);
    } catch (const shardmat::python::Failure& failure) {
      raise(failure);
    }
  });
  module.def("version", &shardmat_version);
  module.def("solver_settings", &shardmat_solver_settings);
  shardmat::python::add_ending(module);
  shardmat::python::add_array(module);
  shardmat::python::add_batch(module);
  shardmat::python::add_eigen(module);
  shardmat::python::add_context(module);
  shardmat::python::add_matrix(module);
  shardmat::python::add_solver(module);
}
