#include "runtime/matrix/dense_copy.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "kernels/base/error.h"
#include "kernels/vector.h"
#include "runtime/matrix/vectors.h"

namespace shardmat {
namespace {

std::string place(Device device) {
  return device.backend == Backend::host ? "the host" : fmt::format("GPU {}", device.ordinal);
}

bool is_packed(const ConstDense& view) { return view.order == DenseOrder::row_major && view.leading == view.columns; }

/// The same matrix row by row, without gaps, in other memory.
Dense packed_as(const ConstDense& view, void* memory) {
  return {memory, view.rows, view.columns, view.columns, DenseOrder::row_major, view.type, view.device};
}

Buffer packed_memory(const ConstDense& view) {
  const auto bytes = static_cast<std::size_t>(view.rows * view.columns) * size_of(view.type);
  require_memory(view.device, static_cast<std::int64_t>(bytes), "a copy of the entries row by row");
  return Buffer(view.device, bytes);
}

/// The caller's stream, or one of the host for memory of the host.
class StreamOf {
 public:
  StreamOf(Device device, Stream& given) : given_(given) {
    if (!(device == given.device())) host_.emplace(Device{});
  }
  Stream& operator*() { return host_ ? *host_ : given_; }

 private:
  Stream& given_;
  std::optional<Stream> host_;
};

}  // namespace

void require_shape(std::string_view what, const ConstDense& view, std::int64_t rows, std::int64_t columns, Device device) {
  if (view.rows != rows || view.columns != columns)
    throw Error(ErrorKind::usage, fmt::format("{} are {} × {}, but this rank has {} rows of {} columns", what, view.rows,
                                              view.columns, rows, columns));
  if (view.device.backend != Backend::host && !(view.device == device))
    throw Error(ErrorKind::usage,
                fmt::format("{} are on {}, but the vector is on {}", what, place(view.device), place(device)));
  const bool by_rows = view.order == DenseOrder::row_major;
  const std::int64_t length = by_rows ? columns : rows;
  if (view.leading < length)
    throw Error(ErrorKind::usage, fmt::format("{} have a leading dimension of {}, but their {} have {} entries", what,
                                              view.leading, by_rows ? "rows" : "columns", length));
  if (view.data == nullptr && rows > 0) throw Error(ErrorKind::usage, fmt::format("{} have no memory (null pointer)", what));
}

HostVector<double> to_host(const ConstDense& view, Stream& given) {
  StreamOf stream(view.device, given);
  const std::int64_t entries = view.rows * view.columns;
  if (is_packed(view)) return to_host(view.data, entries, view.type, *stream);
  const Buffer packed = packed_memory(view);
  copy_matrix(view, packed_as(view, packed.data()), *stream);
  return to_host(packed.data(), entries, view.type, *stream);
}

void from_host(std::span<const double> values, const Dense& view, Stream& given) {
  require_in_range(view.type, values, "the entries of the vector");
  StreamOf stream(view.device, given);
  if (is_packed(view)) return to_device(view.data, values, view.type, *stream);
  const Buffer packed = packed_memory(view);
  to_device(packed.data(), values, view.type, *stream);
  copy_matrix(packed_as(view, packed.data()), view, *stream);
  (*stream).synchronize();  // `packed` is read until then
}

}  // namespace shardmat
