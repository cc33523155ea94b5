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
  py::register_exception_translator([](std::exception_ptr error) {
    try {
      if (error) std::rethrow_exception(error);
    } catch (const shardmat::python::Failure& failure) {
      raise(failure);
    }
  });
  module.def("version", &shardmat_version);
  shardmat::python::add_array(module);
  shardmat::python::add_batch(module);
  shardmat::python::add_context(module);
  shardmat::python::add_matrix(module);
  shardmat::python::add_solver(module);
}
