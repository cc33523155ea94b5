#include "kernels/formats/ell.h"

#include "kernels/formats/limits.h"
#include "kernels/formats/upload.h"

namespace shardmat {
namespace {

/// Writes entry k of each row, or `padding` in rows that have none, column after column.
template <class To, class From>
void fill_padded(const Buffer& buffer, ConversionInput& input, std::int64_t width, From from, To padding) {
  const std::int64_t rows = input.matrix().rows;
  const std::int64_t* row_ptr = input.matrix().row_ptr.data();
  HostVector<std::int64_t> starts(static_cast<std::size_t>(width) + 1);
  for (std::int64_t k = 0; k <= width; ++k) starts[static_cast<std::size_t>(k)] = k * rows;
  fill_runs<To>(buffer, starts, input.stream(), [=](std::int64_t k, std::int64_t row) {
    return k < row_ptr[row + 1] - row_ptr[row] ? static_cast<To>(from[row_ptr[row] - row_ptr[0] + k]) : padding;
  });
}

}  // namespace

std::int64_t ell_array_bytes(const ConversionInput& input, std::int64_t width) {
  return capped_product(capped_product(input.matrix().rows, width), 4 + input.value_bytes());
}

EllArrays convert_ell_arrays(ConversionInput& input, std::int64_t width) {
  const Device device = input.stream().device();
  const auto count = static_cast<std::size_t>(input.matrix().rows * width);
  EllArrays ell{width, Buffer(device, 4 * count), Buffer(device, size_of(input.type()) * count)};
  fill_padded<std::int32_t>(ell.col_idx, input, width, input.matrix().col_idx.data(), -1);
  update_ell_arrays(ell, input);
  return ell;
}

void update_ell_arrays(const EllArrays& ell, ConversionInput& input) {
  dispatch(input.type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_padded<T>(ell.values, input, ell.width, input.matrix().values.data(), T(0));
  });
}

std::int64_t ell_bytes(ConversionInput& input, const Policy&) { return ell_array_bytes(input, input.rows().max_row); }

std::shared_ptr<Storage> convert_ell(ConversionInput& input, const Policy& layout) {
  auto storage = std::make_shared<EllStorage>();
  storage->describe(input, ell_bytes(input, layout));
  storage->ell = convert_ell_arrays(input, input.rows().max_row);
  return storage;
}

std::int64_t ell_r_bytes(ConversionInput& input, const Policy& layout) {
  return ell_bytes(input, layout) + 4 * input.matrix().rows;
}

std::shared_ptr<Storage> convert_ell_r(ConversionInput& input, const Policy& layout) {
  auto storage = std::static_pointer_cast<EllStorage>(convert_ell(input, layout));
  storage->bytes = ell_r_bytes(input, layout);
  storage->row_lengths = upload<std::int32_t>(
      storage->rows, input.stream(),
      [row_ptr = input.matrix().row_ptr.data()](std::int64_t row) { return row_ptr[row + 1] - row_ptr[row]; });
  return storage;
}

void update_ell(Storage& storage, ConversionInput& input) {
  update_ell_arrays(static_cast<EllStorage&>(storage).ell, input);
}

}  // namespace shardmat
