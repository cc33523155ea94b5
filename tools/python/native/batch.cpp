#include <utility>
#include <vector>

#include "handles.h"

namespace shardmat::python {
namespace {

class NativeBatch {
 public:
  using Offsets = py::array_t<std::int64_t, py::array::c_style>;
  using Indices = py::array_t<std::int32_t, py::array::c_style>;

  NativeBatch(const NativeContext& context, Offsets first_row, Offsets first_col, Offsets first_entry, Indices row_ptr,
              Indices columns, py::array values, std::int64_t width, const std::optional<std::string>& kernel)
      : place_(place_of(context.get())) {
    shardmat_batch batch{};
    batch.device = -1;
    batch.type = type_of(values.dtype());
    batch.count = first_row.size() - 1;
    batch.first_row = first_row.data();
    batch.first_col = first_col.data();
    batch.first_entry = first_entry.data();
    batch.row_ptr = row_ptr.data();
    batch.col_idx = columns.data();
    batch.values = values.data();
    shardmat_batch_product* made = nullptr;
    const char* const name = kernel ? kernel->c_str() : nullptr;
    call([&] { return shardmat_batch_product_create(context.get(), &batch, width, name, &made); });
    handle_.reset(made);
  }

  void multiply(const py::object& x, const py::object& y, double alpha, double beta, const py::object& stream) const {
    void* const on = stream_of(stream);
    const View from(x, "X", false, place_, on), to(y, "out", true, place_, on);
    call([&] { return shardmat_batch_product_multiply(handle_.get(), alpha, &from.dense(), beta, &to.dense(), on); });
  }
  std::string kernel() const { return shardmat_batch_product_kernel(handle_.get()); }

 private:
  Place place_;
  Owned<shardmat_batch_product, shardmat_batch_product_destroy> handle_;
};

}  // namespace

void add_batch(py::module_& module) {
  py::class_<NativeBatch>(module, "Batch")
      .def(
          py::init<const NativeContext&, NativeBatch::Offsets, NativeBatch::Offsets, NativeBatch::Offsets,
                   NativeBatch::Indices, NativeBatch::Indices, py::array, std::int64_t, const std::optional<std::string>&>())
      .def("multiply", &NativeBatch::multiply)
      .def("kernel", &NativeBatch::kernel);
}

}  // namespace shardmat::python
