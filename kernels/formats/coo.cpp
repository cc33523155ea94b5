#include "kernels/formats/coo.h"

#include "kernels/formats/limits.h"
#include "kernels/formats/upload.h"

namespace shardmat {

std::int64_t coo_bytes(ConversionInput& input, const Policy&) {
  require_int32_rows(input.matrix().rows, "coo");
  return (8 + input.value_bytes()) * input.matrix().nnz();
}

std::shared_ptr<Storage> convert_coo(ConversionInput& input, const Policy& layout) {
  const CsrView& matrix = input.matrix();
  Stream& stream = input.stream();
  auto coo = std::make_shared<CooStorage>();
  coo->describe(input, coo_bytes(input, layout));
  CooEntries& entries = coo->entries;
  entries.count = coo->nnz;
  entries.row = upload_runs<std::int32_t>(matrix.row_ptr, stream, [](std::int64_t row, std::int64_t) { return row; });
  const ColumnPointer columns = matrix.col_idx.data();
  entries.col_idx = upload<std::int32_t>(coo->nnz, stream, [=](std::int64_t k) { return columns[k]; });
  entries.values = Buffer(coo->device, static_cast<std::size_t>(coo->nnz) * size_of(coo->type));
  update_coo(*coo, input);
  return coo;
}

void update_coo(Storage& storage, ConversionInput& input) {
  const ValuePointer values = input.matrix().values.data();
  dispatch(storage.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill<T>(static_cast<CooStorage&>(storage).entries.values, storage.nnz, input.stream(),
            [=](std::int64_t k) { return values[k]; });
  });
}

}  // namespace shardmat
