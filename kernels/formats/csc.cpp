#include "kernels/formats/csc.h"

#include <algorithm>

#include "kernels/formats/limits.h"
#include "kernels/formats/upload.h"

namespace shardmat {
namespace {

/// The pattern by columns, and where in CSR each of its entries is.
struct Transposed {
  HostVector<std::int64_t> col_ptr;
  HostVector<std::int32_t> row_idx;
  HostVector<std::int64_t> source;
};

/// Counting sort: ranges of rows count their columns, then write behind the ranges before them, so that rows ascend in each
/// column however many threads there are. Few enough ranges that their counters take no more than the nonzeros.
Transposed transpose(const CsrView& m) {
  const std::int64_t nnz = m.nnz(), ranges = std::clamp<std::int64_t>(nnz / (m.cols + 1), 1, thread_count());
  const std::int64_t* row_ptr = m.row_ptr.data();
  const ColumnPointer columns = m.col_idx.data();
  const auto for_entries = [&](std::int64_t range, const auto& body) {
    for (std::int64_t i = m.rows * range / ranges; i < m.rows * (range + 1) / ranges; ++i)
      for (std::int64_t k = row_ptr[i] - row_ptr[0]; k < row_ptr[i + 1] - row_ptr[0]; ++k) body(i, k);
  };
  HostVector<std::int64_t> next(static_cast<std::size_t>(ranges * m.cols));
  const auto next_of = [&](std::int64_t range) { return next.data() + range * m.cols; };
  parallel_tasks(ranges, [&](std::int64_t range) {
    std::fill_n(next_of(range), m.cols, 0);
    for_entries(range, [&, count = next_of(range)](std::int64_t, std::int64_t k) { ++count[columns[k]]; });
  });

  Transposed t;
  t.col_ptr.resize(static_cast<std::size_t>(m.cols) + 1);
  t.row_idx.resize(static_cast<std::size_t>(nnz));
  t.source.resize(static_cast<std::size_t>(nnz));
  std::int64_t position = 0;
  for (std::int64_t j = 0; j < m.cols; ++j) {
    t.col_ptr[static_cast<std::size_t>(j)] = position;
    for (std::int64_t range = 0; range < ranges; ++range) {
      const std::int64_t count = next_of(range)[j];
      next_of(range)[j] = position;
      position += count;
    }
  }
  t.col_ptr.back() = position;
  parallel_tasks(ranges, [&](std::int64_t range) {
    for_entries(range, [&, mine = next_of(range)](std::int64_t i, std::int64_t k) {
      const auto to = static_cast<std::size_t>(mine[columns[k]]++);
      t.row_idx[to] = static_cast<std::int32_t>(i);
      t.source[to] = k;
    });
  });
  return t;
}

void put_values(CscStorage& csc, ConversionInput& input, const Transposed& t) {
  dispatch(csc.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill<T>(csc.values, csc.nnz, input.stream(),
            [values = input.matrix().values.data(), source = t.source.data()](std::int64_t k) { return values[source[k]]; });
  });
}

}  // namespace

std::int64_t csc_bytes(ConversionInput& input, const Policy&) {
  const CsrView& matrix = input.matrix();
  require_int32_rows(matrix.rows, "csc");
  return 8 * (matrix.cols + 1) + (4 + input.value_bytes()) * matrix.nnz();
}

std::shared_ptr<Storage> convert_csc(ConversionInput& input, const Policy& layout) {
  auto csc = std::make_shared<CscStorage>();
  csc->describe(input, csc_bytes(input, layout));
  const Transposed t = transpose(input.matrix());
  csc->col_ptr = upload<std::int64_t>(t.col_ptr, input.stream());
  csc->row_idx = upload<std::int32_t>(t.row_idx, input.stream());
  csc->values = Buffer(csc->device, static_cast<std::size_t>(csc->nnz) * size_of(csc->type));
  put_values(*csc, input, t);
  return csc;
}

void update_csc(Storage& storage, ConversionInput& input) {
  put_values(static_cast<CscStorage&>(storage), input, transpose(input.matrix()));
}

std::vector<Policy> csc_policies(const RowStatistics&) {
  std::vector<Policy> all;
  for (const int threads : {8, 1, 32}) all.push_back(Policy{{"threads_per_column", threads}, {"block_size", 128}});
  return all;
}

}  // namespace shardmat
