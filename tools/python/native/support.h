// What the parts of the native module share: errors as Python exceptions, and arrays of NumPy and DLPack as dense matrices.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>

#include "python_lock.h"
#include "shardmat.h"

namespace py = pybind11;

namespace shardmat::python {

/// A status of the C interface; the module's translator makes the exception of shardmat.errors from it.
struct Failure {
  int status;
  std::string message;
};

inline void check(int status) {
  if (status != SHARDMAT_OK) throw Failure{status, shardmat_last_error()};
}
/// Calls the C interface without Python's lock, and returns the status. All calls go this way: each waits for other calls of
/// its context, and a solve that another thread has begun wants Python's lock for its monitor. `work` must not touch Python
/// objects.
template <class F>
int unlocked(F&& work) {
  const WithoutLock without;
  return work();
}
/// The same, and checks the status.
template <class F>
void call(F&& work) {
  check(unlocked(work));
}

template <class Handle, void (*destroy)(Handle*)>
struct Destroyer {
  void operator()(Handle* handle) const {
    if (left_calls_behind()) return;  // which may never leave their locks; the process ends anyway
    if (PyGILState_Check() == 0) return destroy(handle);
    const WithoutLock without;  // another thread may be in a call of the same context
    destroy(handle);
  }
};
template <class Handle, void (*destroy)(Handle*)>
using Owned = std::unique_ptr<Handle, Destroyer<Handle, destroy>>;

py::dtype dtype_of(int type);
/// SHARDMAT_F64 …; throws Failure for a type that matrices cannot have.
int type_of(const py::dtype& dtype);
std::size_t bytes_of(int type);

/// Where a context works.
struct Place {
  int device = -1;         ///< as CUDA numbers them; -1: the host
  void* stream = nullptr;  ///< of the context
};
Place place_of(shardmat_context* context);

/// An array of the caller as a dense matrix, which stays valid as long as this object.
class View {
 public:
  /// `stream`: where an array on a GPU will be used; null: on that of the context. Throws Failure for arrays with more than
  /// two dimensions, with gaps that no leading dimension describes, of types that are not numbers of ours, or on another
  /// GPU.
  View(const py::object& array, const char* what, bool written, const Place& place, void* stream = nullptr);
  View(View&& other) noexcept;
  View& operator=(View&&) = delete;
  ~View();

  const shardmat_dense& dense() const { return dense_; }
  int dimensions() const { return dimensions_; }

 private:
  void take_numpy(const py::array& array, const char* what, bool written);
  void take_dlpack(const py::object& array, const char* what, const Place& place, void* stream);
  void shape(int ndim, const py::ssize_t* sizes, const py::ssize_t* strides, const char* what);

  shardmat_dense dense_{};
  int dimensions_ = 1;
  py::object keep_;
  void* tensor_ = nullptr;  ///< DLManagedTensor
};

/// The caller's stream: None, the number of a cudaStream_t, or an object with cuda_stream (PyTorch) or ptr (CuPy).
void* stream_of(const py::object& stream);

/// The end of the interpreter gives up the waits of this context. REQUIRES: Python's lock.
void note_context(const std::shared_ptr<shardmat_context>& context);

void add_ending(py::module_& module);
void add_array(py::module_& module);
void add_batch(py::module_& module);
void add_eigen(py::module_& module);
void add_context(py::module_& module);
void add_matrix(py::module_& module);
void add_solver(py::module_& module);

}  // namespace shardmat::python
