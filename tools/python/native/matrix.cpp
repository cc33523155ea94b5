
#include <chrono>
#include <utility>
#include <vector>

#include "handles.h"

namespace shardmat::python {
namespace {

/// Options of a matrix from keyword arguments, with the texts that they point to.
struct Options {
  explicit Options(const py::dict& given) {
    value.size = sizeof value;
    for (const auto& [key, setting] : given) {
      const auto name = key.cast<std::string>();
      if (setting.is_none()) continue;
      if (const char** const text = text_of(name)) {
        *text = (texts[name] = setting.cast<std::string>()).c_str();
      } else if (int* const flag = flag_of(name)) {
        *flag = setting.cast<bool>() ? 1 : 0;
      } else if (name == "columns") {
        value.columns = setting.cast<std::int64_t>();
      } else if (name == "node_block_size") {
        value.node_block_size = setting.cast<int>();
      } else if (name == "products") {
        value.products = setting.cast<double>();
      } else {
        throw py::type_error("there is no option '" + name + "' of a matrix");
      }
    }
  }
  const char** text_of(const std::string& name) {
    if (name == "type") return &value.type;
    if (name == "method") return &value.method;
    if (name == "kernel") return &value.kernel;
    if (name == "policy") return &value.policy;
    if (name == "exchange") return &value.exchange;
    if (name == "storage") return &value.storage;
    return nullptr;
  }
  int* flag_of(const std::string& name) {
    if (name == "updatable") return &value.updatable;
    if (name == "reproducible") return &value.reproducible;
    if (name == "drop_rows") return &value.drop_rows;
    if (name == "transposed") return &value.transposed;
    return nullptr;
  }
  shardmat_matrix_options value{};
  std::map<std::string, std::string> texts;
};

using Indices = py::array_t<std::int64_t, py::array::c_style>;

std::unique_ptr<NativeMatrix> from_rows(const NativeContext& context, std::int64_t first_row, std::int64_t cols,
                                        const Indices& row_ptr, const Indices& columns, const py::array& values,
                                        const py::dict& settings) {
  const Options options(settings);
  shardmat_rows rows{};
  rows.size = sizeof rows;
  rows.first_row = first_row;
  rows.rows = row_ptr.size() - 1;
  rows.cols = cols;
  rows.row_ptr = row_ptr.data();
  rows.columns = columns.data();
  rows.values = values.data();
  rows.value_type = type_of(values.dtype());
  shardmat_matrix* made = nullptr;
  call([&] { return shardmat_matrix_from_rows(context.get(), &rows, &options.value, &made); });
  return std::make_unique<NativeMatrix>(made, context);
}

std::unique_ptr<NativeMatrix> from_triplets(const NativeContext& context, std::int64_t first_row, std::int64_t rows,
                                            std::int64_t cols, const Indices& row, const Indices& column,
                                            const py::array& values, const py::dict& settings) {
  const Options options(settings);
  shardmat_triplets triplets{};
  triplets.size = sizeof triplets;
  triplets.first_row = first_row;
  triplets.rows = rows;
  triplets.cols = cols;
  triplets.count = values.size();
  triplets.row = row.data();
  triplets.column = column.data();
  triplets.values = values.data();
  triplets.value_type = type_of(values.dtype());
  shardmat_matrix* made = nullptr;
  call([&] { return shardmat_matrix_from_triplets(context.get(), &triplets, &options.value, &made); });
  return std::make_unique<NativeMatrix>(made, context);
}

std::unique_ptr<NativeMatrix> from_file(const NativeContext& context, const std::string& file, const py::dict& settings) {
  const Options options(settings);
  shardmat_matrix* made = nullptr;
  call([&] { return shardmat_matrix_from_file(context.get(), file.c_str(), &options.value, &made); });
  return std::make_unique<NativeMatrix>(made, context);
}

py::tuple file_shape(const NativeContext& context, const std::string& file) {
  std::int64_t rows = 0, cols = 0;
  call([&] { return shardmat_file_shape(context.get(), file.c_str(), &rows, &cols); });
  return py::make_tuple(rows, cols);
}

/// "f64", as NumPy names it.
const char* type_name(int type) {
  return type == SHARDMAT_F64 ? "float64" : type == SHARDMAT_F32 ? "float32" : type == SHARDMAT_F16 ? "float16" : "bfloat16";
}

}  // namespace

NativeProduct::NativeProduct(const NativeMatrix& matrix, std::int64_t columns, const std::optional<std::string>& kernel,
                             const std::optional<std::string>& exchange, bool transposed)
    : place_(matrix.place()) {
  shardmat_product_options options{};
  options.size = sizeof options;
  if (kernel) options.kernel = kernel->c_str();
  if (exchange) options.exchange = exchange->c_str();
  options.transposed = transposed ? 1 : 0;
  shardmat_product* made = nullptr;
  call([&] { return shardmat_product_create(matrix.get(), columns, &options, &made); });
  handle_.reset(made);
}

void NativeProduct::multiply(double alpha, const View& x, double beta, const View& y, void* stream) const {
  call([&] { return shardmat_product_multiply(handle_.get(), alpha, &x.dense(), beta, &y.dense(), stream); });
}

py::array_t<double> NativeProduct::seconds(const View& x, const View& y, std::int64_t count) const {
  py::array_t<double> seconds(count);
  double* const to = seconds.mutable_data();
  call([&] {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      const int status = shardmat_product_multiply(handle_.get(), 1, &x.dense(), 0, &y.dense(), nullptr);
      if (status != SHARDMAT_OK) return status;
      to[i] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    return static_cast<int>(SHARDMAT_OK);
  });
  return seconds;
}

py::dict NativeProduct::info() const {
  shardmat_product_info info{};
  info.size = sizeof info;
  call([&] { return shardmat_product_get_info(handle_.get(), &info); });
  py::dict result;
  result["columns"] = info.columns;
  result["kernel"] = info.kernel;
  result["why"] = info.why;
  result["exchange"] = info.exchange;
  result["device_bytes"] = info.device_bytes;
  result["bytes_received"] = info.bytes_received;
  return result;
}

NativeMatrix::NativeMatrix(shardmat_matrix* handle, const NativeContext& context)
    : place_(place_of(context.get())), handle_(handle) {
  sizes_.size = sizeof sizes_;
  call([&] { return shardmat_matrix_get_info(get(), &sizes_); });
  x_dtype_ = sizes_.type == SHARDMAT_BF16 ? py::object(py::none()) : py::object(dtype_of(sizes_.type));
  y_dtype_ = dtype_of(sizes_.sum_type);
}

py::dict NativeMatrix::info() const {
  shardmat_matrix_info info{};
  info.size = sizeof info;
  call([&] { return shardmat_matrix_get_info(get(), &info); });
  py::dict result;
  result["shape"] = py::make_tuple(info.rows, info.cols);
  result["nnz"] = info.nnz;
  result["type"] = type_name(info.type);
  result["sum_type"] = type_name(info.sum_type);
  result["own_rows"] = info.own_rows;
  result["own_cols"] = info.own_cols;
  result["own_values"] = info.own_values;
  result["updatable"] = info.updatable != 0;
  result["device_bytes"] = info.device_bytes;
  result["host_bytes"] = info.host_bytes;
  result["node_block_size"] = info.node_block_size;
  return result;
}

py::array_t<std::int64_t> NativeMatrix::row_ids() const {
  py::array_t<std::int64_t> ids(sizes_.own_rows);
  std::int64_t* const to = ids.mutable_data();
  call([&] { return shardmat_matrix_row_ids(get(), to); });
  return ids;
}
py::array_t<std::int64_t> NativeMatrix::col_ids() const {
  py::array_t<std::int64_t> ids(sizes_.own_cols);
  std::int64_t* const to = ids.mutable_data();
  call([&] { return shardmat_matrix_col_ids(get(), to); });
  return ids;
}

void NativeMatrix::update_values(const py::object& values, const py::object& stream) const {
  void* const on = stream_of(stream);
  const View view(values, "the values", false, place_, on);
  const shardmat_dense& d = view.dense();
  if (view.dimensions() != 1 || d.leading != 1)
    throw Failure{SHARDMAT_USAGE, "the values must be an array of one dimension without gaps"};
  call([&] { return shardmat_matrix_update_values(get(), d.data, d.rows, d.type, d.on_device, on); });
}

void NativeMatrix::zero_rows_columns(const py::array_t<std::int64_t, py::array::c_style>& rows, double diagonal,
                                     const py::object& x, const py::object& b) const {
  const auto own = [&](const py::object& given, const char* what, bool written) -> void* {
    if (given.is_none()) return nullptr;
    const View view(given, what, written, place_);
    const shardmat_dense& d = view.dense();
    if (view.dimensions() != 1 || d.rows != sizes_.own_rows || d.leading != 1 || d.type != sizes_.sum_type ||
        d.on_device != 0)
      throw Failure{SHARDMAT_USAGE, std::string(what) + " must be an array of one dimension in host memory, with " +
                                        std::to_string(sizes_.own_rows) + " values of " + type_name(sizes_.sum_type)};
    return d.data;
  };
  const void* const known = own(x, "x", false);
  void* const right = own(b, "b", true);
  const std::int64_t count = rows.size();
  const std::int64_t* const named = rows.data();
  call([&] { return shardmat_matrix_zero_rows_columns(get(), named, count, diagonal, known, right); });
}

NativeProduct& NativeMatrix::product(std::int64_t columns, bool transposed) {
  const std::pair key(columns, transposed);
  const auto found = products_.find(key);
  if (found != products_.end()) return found->second;
  return products_.try_emplace(key, *this, columns, std::nullopt, std::nullopt, transposed).first->second;
}

py::object NativeMatrix::matmul(const py::object& given, bool transposed) {
  if (!py::isinstance<py::array>(given)) return py::none();
  const auto array = py::reinterpret_borrow<py::array>(given);
  if (!array.dtype().is(x_dtype_) || (array.flags() & py::array::c_style) == 0) return py::none();
  const View x(given, "x", false, place_);
  const std::int64_t columns = x.dense().columns;
  const std::int64_t x_rows = transposed ? sizes_.own_rows : sizes_.own_cols,
                     y_rows = transposed ? sizes_.own_cols : sizes_.own_rows;
  std::vector<py::ssize_t> shape{y_rows};
  if (x.dimensions() == 2) shape.push_back(columns);
  py::array y(y_dtype_, shape);
  if (columns == 0 && x.dense().rows == x_rows) return y;
  product(columns, transposed).multiply(1, x, 0, View(y, "y", true, place_), nullptr);
  return y;
}

void NativeMatrix::multiply(const py::object& given, const py::object& out, bool transposed) {
  const View x(given, "x", false, place_);
  product(x.dense().columns, transposed).multiply(1, x, 0, View(out, "out", true, place_), nullptr);
}

void add_matrix(py::module_& module) {
  py::class_<NativeProduct>(module, "Product")
      .def(py::init([](const NativeMatrix& matrix, std::int64_t columns, const std::optional<std::string>& kernel,
                       const std::optional<std::string>& exchange,
                       bool transposed) { return NativeProduct(matrix, columns, kernel, exchange, transposed); }))
      .def("multiply",
           [](const NativeProduct& product, const py::object& x, const py::object& y, double alpha, double beta,
              const py::object& stream) {
             void* const on = stream_of(stream);
             product.multiply(alpha, View(x, "x", false, product.place(), on), beta,
                              View(y, "out", true, product.place(), on), on);
           })
      .def("seconds",
           [](const NativeProduct& product, const py::object& x, const py::object& y, std::int64_t count) {
             return product.seconds(View(x, "x", false, product.place()), View(y, "y", true, product.place()), count);
           })
      .def("info", &NativeProduct::info);
  module.def("file_shape", &file_shape);
  py::class_<NativeMatrix>(module, "Matrix")
      .def_static("from_rows", &from_rows)
      .def_static("from_triplets", &from_triplets)
      .def_static("from_file", &from_file)
      .def("matmul", &NativeMatrix::matmul)
      .def("multiply", &NativeMatrix::multiply)
      .def("update_values", &NativeMatrix::update_values)
      .def("zero_rows_columns", &NativeMatrix::zero_rows_columns)
      .def("row_ids", &NativeMatrix::row_ids)
      .def("col_ids", &NativeMatrix::col_ids)
      .def("info", &NativeMatrix::info);
}

}  // namespace shardmat::python
