#include "kernels/formats/jds.h"

#include "kernels/formats/limits.h"
#include "kernels/formats/upload.h"
#include "kernels/matrix/ordering.h"

namespace shardmat {
namespace {

/// The order of the rows and where the stored runs start: sorted rows, or jagged diagonals.
struct Shape {
  bool transposed;
  HostVector<std::int64_t> order;
  HostVector<std::int64_t> starts;
};

Shape shape_of(ConversionInput& input, bool transposed) {
  const CsrView& m = input.matrix();
  Shape shape{transposed, order_by_row_length(m.row_ptr), {0}};
  const auto length = [&](std::size_t i) {
    const auto row = static_cast<std::size_t>(shape.order[i]);
    return m.row_ptr[row + 1] - m.row_ptr[row];
  };
  if (!transposed) {
    for (std::size_t i = 0; i < shape.order.size(); ++i) shape.starts.push_back(shape.starts.back() + length(i));
    return shape;
  }
  std::size_t longer = shape.order.size();  // rows with more than d entries
  for (std::int64_t d = 0; d < input.rows().max_row; ++d) {
    while (longer > 0 && length(longer - 1) <= d) --longer;
    shape.starts.push_back(shape.starts.back() + static_cast<std::int64_t>(longer));
  }
  return shape;
}

/// Writes the entries of a CSR array in the order of the shape.
template <class To, class From>
void fill_shape(const Buffer& buffer, const Shape& shape, ConversionInput& input, From from) {
  const std::int64_t* row_ptr = input.matrix().row_ptr.data();
  const std::int64_t* order = shape.order.data();
  const auto entry = [=](std::int64_t i, std::int64_t k) { return from[row_ptr[order[i]] - row_ptr[0] + k]; };
  if (shape.transposed)
    fill_runs<To>(buffer, shape.starts, input.stream(), [&](std::int64_t d, std::int64_t i) { return entry(i, d); });
  else fill_runs<To>(buffer, shape.starts, input.stream(), entry);
}

void put_values(const JdsStorage& jds, const Shape& shape, ConversionInput& input) {
  dispatch(jds.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_shape<T>(jds.values, shape, input, input.matrix().values.data());
  });
}

std::shared_ptr<Storage> convert(ConversionInput& input, bool transposed, std::int64_t bytes) {
  auto jds = std::make_shared<JdsStorage>();
  jds->describe(input, bytes);
  jds->transposed = transposed;
  jds->diagonals = input.rows().max_row;
  const Shape shape = shape_of(input, transposed);
  const auto count = static_cast<std::size_t>(jds->nnz);
  jds->row_index = upload<std::int32_t>(shape.order, input.stream());
  jds->starts = upload<std::int64_t>(shape.starts, input.stream());
  jds->col_idx = Buffer(jds->device, 4 * count);
  fill_shape<std::int32_t>(jds->col_idx, shape, input, input.matrix().col_idx.data());
  jds->values = Buffer(jds->device, size_of(jds->type) * count);
  put_values(*jds, shape, input);
  return jds;
}

/// With `starts` offsets.
std::int64_t bytes_of(const ConversionInput& input, const char* format, std::int64_t starts) {
  const CsrView& m = input.matrix();
  require_int32_rows(m.rows, format);
  return 4 * m.rows + 8 * starts + (4 + input.value_bytes()) * m.nnz();
}

}  // namespace

std::int64_t jds_bytes(ConversionInput& input, const Policy&) { return bytes_of(input, "jds", input.matrix().rows + 1); }

std::shared_ptr<Storage> convert_jds(ConversionInput& input, const Policy& layout) {
  return convert(input, false, jds_bytes(input, layout));
}

std::int64_t jds_t_bytes(ConversionInput& input, const Policy&) {
  return bytes_of(input, "jds_t", input.rows().max_row + 1);
}

std::shared_ptr<Storage> convert_jds_t(ConversionInput& input, const Policy& layout) {
  return convert(input, true, jds_t_bytes(input, layout));
}

void update_jds(Storage& storage, ConversionInput& input) {
  const auto& jds = static_cast<JdsStorage&>(storage);
  put_values(jds, shape_of(input, jds.transposed), input);
}

}  // namespace shardmat
