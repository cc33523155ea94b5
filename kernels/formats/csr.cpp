#include "kernels/formats/csr.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/base/host_vector.h"
#include "kernels/base/narrow.h"
#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 24;  // entries converted and uploaded at a time

/// Kernels step up to 8·32 entries past the end of a row, and that offset must fit, too.
bool needs_wide_offsets(const CsrView& matrix) { return matrix.nnz() > std::numeric_limits<std::int32_t>::max() - 256; }

/// Uploads `count` entries given by entry(k) as To, through a host buffer of bounded size.
template <class To, class Entry>
Buffer upload(std::int64_t count, Stream& stream, Entry entry) {
  Buffer buffer(stream.device(), static_cast<std::size_t>(count) * sizeof(To));
  const auto convert = [&](std::int64_t first, std::int64_t length, To* out) {
    parallel_ranges(length, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = begin; k < end; ++k) out[k] = entry(first + k);
    });
  };
  if (stream.device().backend == Backend::host) {
    convert(0, count, buffer.as<To>());
    return buffer;
  }
  HostVector<To> chunk(static_cast<std::size_t>(std::min(count, kChunk)));
  for (std::int64_t first = 0; first < count; first += kChunk) {
    const std::int64_t length = std::min(kChunk, count - first);
    convert(first, length, chunk.data());
    copy_to_device(buffer.as<To>() + first, chunk.data(), static_cast<std::size_t>(length) * sizeof(To), stream);
  }
  return buffer;
}

}  // namespace

std::int64_t csr_bytes(const CsrView& matrix, ValueType type) {
  return (needs_wide_offsets(matrix) ? 8 : 4) * (matrix.rows + 1) +
         (4 + static_cast<std::int64_t>(size_of(type))) * matrix.nnz();
}

std::shared_ptr<const Storage> convert_csr(const CsrView& matrix, ValueType type, Stream& stream) {
  narrow<std::int32_t>(matrix.cols, "columns of a CSR matrix on a device");
  auto csr = std::make_shared<CsrStorage>();
  csr->device = stream.device();
  csr->type = type;
  csr->rows = matrix.rows;
  csr->cols = matrix.cols;
  csr->nnz = matrix.nnz();
  csr->bytes = csr_bytes(matrix, type);
  csr->wide_offsets = needs_wide_offsets(matrix);

  const std::int64_t* offsets = matrix.row_ptr.data();
  const std::int64_t first = matrix.row_ptr.empty() ? 0 : offsets[0];
  if (csr->wide_offsets)
    csr->row_ptr = upload<std::int64_t>(matrix.rows + 1, stream, [=](std::int64_t i) { return offsets[i] - first; });
  else
    csr->row_ptr = upload<std::int32_t>(matrix.rows + 1, stream,
                                        [=](std::int64_t i) { return static_cast<std::int32_t>(offsets[i] - first); });
  const std::int64_t* columns = matrix.col_idx.data();
  csr->col_idx = upload<std::int32_t>(csr->nnz, stream,
                                      [=](std::int64_t k) { return static_cast<std::int32_t>(columns[k]); });
  const double* values = matrix.values.data();
  csr->values = dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return upload<T>(csr->nnz, stream, [=](std::int64_t k) { return static_cast<T>(values[k]); });
  });
  return csr;
}

int threads_per_row_by_formula(const RowStatistics& rows) {
  if (rows.mean_row < 2) return 1;
  const auto mean = static_cast<std::uint64_t>(std::min(rows.mean_row, 32.0));
  return static_cast<int>(std::bit_floor(mean));
}

std::vector<Policy> csr_vector_policies(const RowStatistics& rows) {
  const auto policy = [](int threads) { return Policy{{"threads_per_row", threads}, {"block_size", 256}}; };
  std::vector<Policy> all{policy(threads_per_row_by_formula(rows))};
  for (int threads = 1; threads <= 32; threads *= 2)
    if (policy(threads) != all.front()) all.push_back(policy(threads));
  return all;
}

std::vector<Policy> csr_scalar_policies(const RowStatistics&) { return {Policy{{"block_size", 128}}}; }

std::vector<Policy> csr_cusparse_policies(const RowStatistics&) {
  return {Policy{{"algorithm", 1}}, Policy{{"algorithm", 2}}};
}

}  // namespace shardmat
