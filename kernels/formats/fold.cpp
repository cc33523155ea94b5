#include "kernels/formats/fold.h"

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/formats/gather.h"
#include "kernels/formats/limits.h"

namespace shardmat {
namespace {

using FoldPointers = std::shared_ptr<const HostVector<std::int64_t>>;

std::int64_t width_of(ConversionInput& input, const Policy& layout) {
  const int width = layout.at("width");
  if (width < 0) throw Error(ErrorKind::usage, "fold: width must be positive, or 0 for the mean row length");
  if (width > 0) return width;
  const RowStatistics& rows = input.rows();
  const std::int64_t filled = std::max<std::int64_t>(1, rows.rows - rows.empty_rows);
  return std::max<std::int64_t>(1, (rows.nnz + filled - 1) / filled);
}

FoldPointers fold_pointers(ConversionInput& input, std::int64_t width) {
  return input.remember<FoldPointers>("fold " + std::to_string(width), [&] {
    const Rows rows(input.matrix());
    auto fold_ptr = std::make_shared<HostVector<std::int64_t>>(static_cast<std::size_t>(rows.count()) + 1);
    for (std::int64_t i = 0; i < rows.count(); ++i)
      (*fold_ptr)[static_cast<std::size_t>(i) + 1] = (rows.length(i) + width - 1) / width;
    accumulate_offsets(*fold_ptr);
    return fold_ptr;
  });
}

auto source(const HostVector<std::int64_t>& fold_ptr, const Rows& rows, std::int64_t width) {
  return [&fold_ptr, rows, width](std::int64_t begin, std::int64_t end, auto put) {
    if (begin == end) return;
    const std::int64_t pieces = fold_ptr.back();
    std::int64_t j = begin / pieces, piece = begin % pieces, row = part_of(fold_ptr, piece);
    for (; begin < end; ++begin) {
      while (piece >= fold_ptr[static_cast<std::size_t>(row) + 1]) ++row;
      const std::int64_t k = rows.begin(row) + (piece - fold_ptr[static_cast<std::size_t>(row)]) * width + j;
      put(k < rows.end(row) ? k : -1);
      if (++piece == pieces) piece = 0, row = 0, ++j;
    }
  };
}

}  // namespace

std::vector<Policy> fold_layouts(ConversionInput& input) {
  std::vector<Policy> all{{{"width", static_cast<int>(width_of(input, {{"width", 0}}))}}};
  for (const int width : {8, 32})
    if (const Policy layout{{"width", width}}; layout != all.front()) all.push_back(layout);
  return all;
}

std::int64_t fold_bytes(ConversionInput& input, const Policy& layout) {
  const std::int64_t width = width_of(input, layout), pieces = fold_pointers(input, width)->back();
  return (needs_wide_offsets(pieces) ? 8 : 4) * (input.matrix().rows + 1) +
         capped_product(capped_product(pieces, width), 4 + input.value_bytes());
}

std::shared_ptr<Storage> convert_fold(ConversionInput& input, const Policy& layout) {
  Stream& stream = input.stream();
  auto fold = std::make_shared<FoldStorage>();
  fold->describe(input, fold_bytes(input, layout));
  fold->width = width_of(input, layout);
  fold->host_fold_ptr = fold_pointers(input, fold->width);
  fold->wide_offsets = needs_wide_offsets(fold->pieces());
  fold->fold_ptr = upload_offsets(*fold->host_fold_ptr, fold->wide_offsets, stream);
  const Rows rows(input.matrix());
  const std::int64_t stored = fold->pieces() * fold->width;
  fold->col_idx =
      upload_gathered<std::int32_t>(stored, stream, source(*fold->host_fold_ptr, rows, fold->width), rows.columns(), -1);
  fold->values = Buffer(fold->device, static_cast<std::size_t>(stored) * size_of(fold->type));
  update_fold(*fold, input);
  return fold;
}

void update_fold(Storage& storage, ConversionInput& input) {
  const auto& fold = static_cast<FoldStorage&>(storage);
  const Rows rows(input.matrix());
  gather_values(fold.values, fold.type, fold.pieces() * fold.width, input.stream(),
                source(*fold.host_fold_ptr, rows, fold.width), rows.values());
}

std::vector<Policy> fold_policies(const RowStatistics& rows) {
  const auto policy = [](int threads) { return Policy{{"threads_per_row", threads}, {"block_size", 128}}; };
  const bool even = static_cast<double>(rows.max_row) <= 64 * std::max(1.0, rows.mean_row);
  return even ? std::vector{policy(1), policy(32)} : std::vector{policy(32), policy(1)};
}

}  // namespace shardmat
