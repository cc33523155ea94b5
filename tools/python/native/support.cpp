#include "support.h"

#include <utility>

#include "dlpack.h"

namespace shardmat::python {

py::dtype dtype_of(int type) {
  switch (type) {
    case SHARDMAT_F32:
      return py::dtype::of<float>();
    case SHARDMAT_F64:
      return py::dtype::of<double>();
    case SHARDMAT_F16:
      return py::dtype("float16");
    default:
      throw Failure{SHARDMAT_USAGE, "NumPy has no type for bf16"};
  }
}

int type_of(const py::dtype& dtype) {
  if (dtype.kind() == 'f' && (dtype.byteorder() == '=' || dtype.byteorder() == '|')) {
    if (dtype.itemsize() == 8) return SHARDMAT_F64;
    if (dtype.itemsize() == 4) return SHARDMAT_F32;
    if (dtype.itemsize() == 2) return SHARDMAT_F16;
  }
  throw Failure{SHARDMAT_USAGE, "values of type " + py::str(py::object(dtype)).cast<std::string>() +
                                    " cannot be taken; convert them to float64, float32 or float16 in native byte order"};
}

std::size_t bytes_of(int type) { return type == SHARDMAT_F64 ? 8 : type == SHARDMAT_F32 ? 4 : 2; }

Place place_of(shardmat_context* context) {
  shardmat_context_info info{};
  info.size = sizeof info;
  call([&] { return shardmat_context_get_info(context, &info); });
  Place place{info.device, nullptr};
  call([&] { return shardmat_context_stream(context, &place.stream); });
  return place;
}

View::View(const py::object& array, const char* what, bool written, const Place& place, void* stream) {
  if (py::isinstance<py::array>(array)) {
    take_numpy(py::reinterpret_borrow<py::array>(array), what, written);
  } else if (py::hasattr(array, "__dlpack__")) {
    take_dlpack(array, what, place, stream == nullptr ? place.stream : stream);
  } else {
    throw Failure{SHARDMAT_USAGE, std::string(what) + " must be an array of NumPy, or one with __dlpack__"};
  }
}

View::View(View&& other) noexcept
    : dense_(other.dense_),
      dimensions_(other.dimensions_),
      keep_(std::move(other.keep_)),
      tensor_(std::exchange(other.tensor_, nullptr)) {}

View::~View() {
  auto* const tensor = static_cast<DLManagedTensor*>(tensor_);
  if (tensor != nullptr && tensor->deleter != nullptr) tensor->deleter(tensor);
}

void View::take_numpy(const py::array& array, const char* what, bool written) {
  keep_ = array;
  dense_.type = type_of(array.dtype());
  if (written && !array.writeable()) throw Failure{SHARDMAT_USAGE, std::string(what) + " is read-only"};
  dense_.data = const_cast<void*>(array.data());
  const auto bytes = static_cast<py::ssize_t>(bytes_of(dense_.type));
  py::ssize_t strides[2] = {0, 0};
  for (py::ssize_t i = 0; i < std::min<py::ssize_t>(array.ndim(), 2); ++i) {
    if (array.strides(i) % bytes != 0) throw Failure{SHARDMAT_USAGE, std::string(what) + " has odd strides; copy it first"};
    strides[i] = array.strides(i) / bytes;
  }
  shape(static_cast<int>(array.ndim()), array.shape(), strides, what);
}

void View::take_dlpack(const py::object& array, const char* what, const Place& place, void* stream) {
  const auto device = array.attr("__dlpack_device__")().cast<std::pair<int, int>>();
  const bool on_gpu = device.first == kDLCUDA || device.first == kDLCUDAManaged;
  if (!on_gpu && device.first != kDLCPU && device.first != kDLCUDAHost)
    throw Failure{SHARDMAT_USAGE, std::string(what) + " is neither in memory of the host nor of a CUDA device"};
  if (on_gpu && device.second != place.device)
    throw Failure{SHARDMAT_USAGE, std::string(what) + " is on GPU " + std::to_string(device.second) +
                                      ", but the matrix is on " +
                                      (place.device < 0 ? "the host" : "GPU " + std::to_string(place.device))};
  // A feeder's context has no stream; it waits for CUDA's legacy default stream, number 1 by DLPack.
  const auto number = stream == nullptr ? std::uintptr_t{1} : reinterpret_cast<std::uintptr_t>(stream);
  const py::object capsule = on_gpu ? array.attr("__dlpack__")(py::arg("stream") = number) : array.attr("__dlpack__")();
  auto* const tensor = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (tensor == nullptr) throw py::error_already_set();
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  tensor_ = tensor;
  const DLTensor& t = tensor->dl_tensor;
  dense_.type = -1;
  if (t.dtype.code == kDLFloat && t.dtype.lanes == 1)
    dense_.type = t.dtype.bits == 64   ? SHARDMAT_F64
                  : t.dtype.bits == 32 ? SHARDMAT_F32
                  : t.dtype.bits == 16 ? SHARDMAT_F16
                                       : -1;
  if (t.dtype.code == kDLBfloat && t.dtype.lanes == 1 && t.dtype.bits == 16) dense_.type = SHARDMAT_BF16;
  try {
    if (dense_.type < 0) throw Failure{SHARDMAT_USAGE, std::string(what) + " must have values of f64, f32, f16 or bf16"};
    dense_.data = static_cast<char*>(t.data) + t.byte_offset;
    dense_.on_device = on_gpu ? 1 : 0;
    py::ssize_t sizes[2] = {1, 1}, strides[2] = {1, 1};
    for (int i = 0; i < std::min(t.ndim, 2); ++i) {
      sizes[i] = t.shape[i];
      strides[i] = t.strides != nullptr ? t.strides[i] : i + 1 < t.ndim ? t.shape[i + 1] : 1;
    }
    shape(t.ndim, sizes, strides, what);
  } catch (...) {
    tensor->deleter(tensor);
    tensor_ = nullptr;
    throw;
  }
}

void View::shape(int ndim, const py::ssize_t* sizes, const py::ssize_t* strides, const char* what) {
  if (ndim != 1 && ndim != 2)
    throw Failure{SHARDMAT_USAGE,
                  std::string(what) + " has " + std::to_string(ndim) + " dimensions; it must have one or two"};
  dimensions_ = ndim;
  dense_.rows = sizes[0];
  dense_.columns = ndim == 2 ? sizes[1] : 1;
  const bool empty = dense_.rows == 0 || dense_.columns == 0;
  const py::ssize_t down = strides[0], across = ndim == 2 ? strides[1] : 1;
  if (empty || dense_.rows == 1 || (dense_.columns == 1 && down == 1)) {
    dense_.leading = std::max<std::int64_t>(1, dense_.columns);
    if (empty || dense_.columns == 1 || across == 1) return;
  }
  if ((across == 1 || dense_.columns == 1) && down >= dense_.columns && (ndim == 2 || down == 1)) {
    dense_.leading = down;
    return;
  }
  if (down == 1 && across >= dense_.rows) {
    dense_.column_major = 1;
    dense_.leading = across;
    return;
  }
  throw Failure{SHARDMAT_USAGE, std::string(what) + " must lie in memory by rows or by columns; copy it first"};
}

void* stream_of(const py::object& stream) {
  if (stream.is_none()) return nullptr;
  for (const char* attribute : {"cuda_stream", "ptr"})
    if (py::hasattr(stream, attribute)) return stream_of(stream.attr(attribute));
  const auto number = stream.cast<std::uintptr_t>();
  return reinterpret_cast<void*>(number == 0 ? std::uintptr_t{1} : number);  // 0 and 1 are CUDA's legacy default stream
}

}  // namespace shardmat::python
