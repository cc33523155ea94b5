// Memory of a context's device as an array that other libraries take by DLPack.
#include <utility>
#include <vector>

#include "dlpack.h"
#include "handles.h"

namespace shardmat::python {
namespace {

class NativeArray {
 public:
  NativeArray(const NativeContext& context, std::vector<std::int64_t> shape, const py::dtype& dtype)
      : context_(context.share()), shape_(std::move(shape)), type_(type_of(dtype)) {
    const py::dict info = context.info();
    if (!info["device"].is_none()) device_ = {kDLCUDA, info["device"].cast<std::int32_t>()};
    std::size_t bytes = bytes_of(type_);
    for (const std::int64_t length : shape_) {
      if (length < 0) throw Failure{SHARDMAT_USAGE, "the shape of an array has a negative length"};
      if (length > 0 && bytes > SIZE_MAX / static_cast<std::size_t>(length))
        throw Failure{SHARDMAT_RESOURCES, "an array of this shape has more bytes than there are addresses"};
      bytes *= static_cast<std::size_t>(length);
    }
    call([&] { return shardmat_context_allocate(context_.get(), bytes, &data_); });
  }
  ~NativeArray() {
    if (left_calls_behind()) return;
    const WithoutLock without;
    shardmat_context_free(context_.get(), data_);
  }
  NativeArray(const NativeArray&) = delete;
  NativeArray& operator=(const NativeArray&) = delete;

  const std::vector<std::int64_t>& shape() const { return shape_; }
  py::dtype dtype() const { return dtype_of(type_); }
  std::pair<int, int> device() const { return {device_.device_type, device_.device_id}; }

  /// A capsule "dltensor" that keeps `self` alive.
  static py::capsule dlpack(const py::object& self, const py::object&) {
    auto& array = self.cast<NativeArray&>();
    struct Shared {
      DLManagedTensor tensor;
      py::object keep;
    };
    auto* const shared = new Shared{{}, self};
    shared->tensor.dl_tensor = {array.data_,
                                array.device_,
                                static_cast<std::int32_t>(array.shape_.size()),
                                {kDLFloat, static_cast<std::uint8_t>(8 * bytes_of(array.type_)), 1},
                                array.shape_.data(),
                                nullptr,
                                0};
    shared->tensor.manager_ctx = shared;
    shared->tensor.deleter = [](DLManagedTensor* tensor) {
      const WithLock lock;
      delete static_cast<Shared*>(tensor->manager_ctx);
    };
    return py::capsule(&shared->tensor, "dltensor", [](PyObject* capsule) {
      if (PyCapsule_IsValid(capsule, "dltensor") == 0) return;  // somebody took it, and deletes it
      auto* const tensor = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
      tensor->deleter(tensor);
    });
  }

 private:
  std::shared_ptr<shardmat_context> context_;
  std::vector<std::int64_t> shape_;
  int type_;
  DLDevice device_{kDLCPU, 0};
  void* data_ = nullptr;
};

}  // namespace

void add_array(py::module_& module) {
  py::class_<NativeArray>(module, "Array")
      .def(py::init<const NativeContext&, std::vector<std::int64_t>, const py::dtype&>())
      .def_property_readonly("shape", [](const NativeArray& array) { return py::tuple(py::cast(array.shape())); })
      .def_property_readonly("ndim", [](const NativeArray& array) { return array.shape().size(); })
      .def_property_readonly("dtype", &NativeArray::dtype)
      .def("__dlpack__", &NativeArray::dlpack, py::arg("stream") = py::none())
      .def("__dlpack_device__", &NativeArray::device);
}

}  // namespace shardmat::python
