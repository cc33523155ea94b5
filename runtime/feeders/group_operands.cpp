#include "runtime/feeders/group_operands.h"

#include <cstring>
#include <memory>
#include <utility>

#include "kernels/base/host_vector.h"
#include "kernels/vector.h"
#include "runtime/matrix/dense_copy.h"

namespace shardmat {
namespace {

std::size_t packed_bytes(const ConstDense& view) {
  return static_cast<std::size_t>(view.rows * view.columns) * size_of(view.type);
}

Dense packed_at(void* memory, const ConstDense& view) {
  return {memory, view.rows, view.columns, view.columns, DenseOrder::row_major, view.type, Device{}};
}

void copy(const ConstDense& from, const Dense& to) {
  const auto is_packed = [](const ConstDense& view) {
    return view.columns == 1 || (view.order == DenseOrder::row_major && view.leading == view.columns);
  };
  if (packed_bytes(from) == 0) return;
  if (is_packed(from) && is_packed(to)) {
    std::memcpy(to.data, from.data, packed_bytes(from));
    return;
  }
  Stream stream{Device{}};
  copy_matrix(from, to, stream);
}

}  // namespace

Operand operand_given(const ConstDense& view) {
  return {packed_bytes(view), [view](void* to) { copy(view, packed_at(to, view)); }, {}};
}

Operand operand_both(const Dense& view, bool give) {
  Operand made = give ? operand_given(view) : Operand{packed_bytes(view), {}, {}};
  made.take = [view](const void* from) { copy(packed_at(const_cast<void*>(from), view), view); };
  return made;
}

Operand doubles_given(const ConstDense& view, std::int64_t rows, std::int64_t columns, Stream& stream) {
  require_shape("the entries", view, rows, columns, Device{});
  const auto values = std::make_shared<const HostVector<double>>(to_host(view, stream));
  const std::size_t bytes = values->size() * sizeof(double);
  return {bytes,
          [values, bytes](void* to) {
            if (bytes > 0) std::memcpy(to, values->data(), bytes);
          },
          {}};
}

Operand doubles_both(const Dense& view, std::int64_t rows, std::int64_t columns, Stream& stream) {
  Operand made = doubles_given(view, rows, columns, stream);
  made.take = [view, &stream](const void* from) {
    const auto count = static_cast<std::size_t>(view.rows * view.columns);
    from_host({static_cast<const double*>(from), count}, view, stream);
  };
  return made;
}

Dense doubles_of(const GroupOperand& all, std::int64_t columns) {
  const auto entries = static_cast<std::int64_t>(all.bytes() / sizeof(double));
  return {all.data, entries / columns, columns, columns, DenseOrder::row_major, ValueType::f64, Device{}};
}

}  // namespace shardmat
