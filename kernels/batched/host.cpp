// Batched products on host threads: the reference of every other kernel, and what runs without a GPU.
#include <algorithm>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/batched/kernels.h"
#include "kernels/batched/operands.h"

namespace shardmat {
namespace {

using namespace batched;

constexpr std::int64_t kColumns = 64;  ///< at once

/// Sums of one row over [begin, end) of its entries, block of columns by block.
template <class T, class A, class Column>
void multiply_row(const Operands<T, A>& v, std::int64_t row, std::int64_t begin, std::int64_t end, const Column& column,
                  const A* values) {
  for (std::int64_t first = 0; first < v.columns; first += kColumns) {
    const std::int64_t width = std::min(kColumns, v.columns - first);
    T sum[kColumns] = {};
    for (std::int64_t k = begin; k < end; ++k) {
      const A* x = v.x + column(k) * v.ldx + first;
      const T value = static_cast<T>(values[k]);
      for (std::int64_t j = 0; j < width; ++j) sum[j] += value * static_cast<T>(x[j]);
    }
    T* y = v.y + row * v.ldy + first;
    for (std::int64_t j = 0; j < width; ++j)
      y[j] = finished(v, sum[j], v.beta == T(0) ? T(0) : y[j], static_cast<int>(first + j));
  }
}

/// Rows that a matrix's entries in any order are first put into.
struct SortedEntries {
  std::vector<std::int64_t> row_ptr;
  std::vector<std::int32_t> col_idx;

  template <class A>
  void sort(const DeviceBatch& batch, std::int64_t matrix, std::vector<A>& values) {
    const auto i = static_cast<std::size_t>(matrix);
    const std::int64_t begin = batch.at.first_entry[i], end = batch.at.first_entry[i + 1];
    row_ptr.assign(static_cast<std::size_t>(batch.at.first_row[i + 1] - batch.at.first_row[i]) + 1, 0);
    for (std::int64_t k = begin; k < end; ++k) ++row_ptr[static_cast<std::size_t>(batch.row_idx[k]) + 1];
    for (std::size_t row = 1; row < row_ptr.size(); ++row) row_ptr[row] += row_ptr[row - 1];
    col_idx.resize(static_cast<std::size_t>(end - begin));
    values.resize(col_idx.size());
    std::vector<std::int64_t> next = row_ptr;
    for (std::int64_t k = begin; k < end; ++k) {
      const auto place = static_cast<std::size_t>(next[static_cast<std::size_t>(batch.row_idx[k])]++);
      col_idx[place] = batch.col_idx[k];
      values[place] = static_cast<const A*>(batch.values)[k];
    }
  }
};

class BatchedHostPlan final : public BatchedPlan {
 public:
  BatchedHostPlan(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns) : BatchedPlan(std::move(batch), columns) {}

 private:
  void run(const void* x, std::int64_t ldx, void* y, std::int64_t ldy, const Epilogue& epilogue, Stream&) const override {
    dispatch_operands(batch().type, [&](auto of_a, auto of_sum) {
      using A = typename decltype(of_a)::type;
      using T = typename decltype(of_sum)::type;
      const auto v = operands<T, A>(columns(), x, ldx, y, ldy, epilogue);
      // Tiny matrices many a task, but enough tasks for all threads.
      const std::int64_t per_task = std::clamp<std::int64_t>(batch().at.count() / (4 * thread_count()), 1, 64);
      parallel_tasks((batch().at.count() + per_task - 1) / per_task, [&](std::int64_t task) {
        SortedEntries sorted;
        std::vector<A> values;
        const std::int64_t end = std::min(batch().at.count(), (task + 1) * per_task);
        for (std::int64_t matrix = task * per_task; matrix < end; ++matrix)
          if (batch().format == BatchFormat::csr) multiply_csr(v, matrix);
          else multiply_coo(v, matrix, sorted, values);
      });
    });
  }

  template <class T, class A>
  void multiply_csr(const Operands<T, A>& v, std::int64_t matrix) const {
    const auto i = static_cast<std::size_t>(matrix);
    const DeviceBatch& b = batch();
    const std::int64_t shift = b.at.first_col[i];
    for (std::int64_t row = b.at.first_row[i]; row < b.at.first_row[i + 1]; ++row)
      multiply_row(
          v, row, b.row_ptr[row], b.row_ptr[row + 1], [&](std::int64_t k) { return shift + b.col_idx[k]; },
          static_cast<const A*>(b.values));
  }

  template <class T, class A>
  void multiply_coo(const Operands<T, A>& v, std::int64_t matrix, SortedEntries& sorted, std::vector<A>& values) const {
    const auto i = static_cast<std::size_t>(matrix);
    sorted.sort(batch(), matrix, values);
    const std::int64_t shift = batch().at.first_col[i];
    for (std::size_t row = 0; row + 1 < sorted.row_ptr.size(); ++row)
      multiply_row(
          v, batch().at.first_row[i] + static_cast<std::int64_t>(row), sorted.row_ptr[row], sorted.row_ptr[row + 1],
          [&](std::int64_t k) { return shift + sorted.col_idx[static_cast<std::size_t>(k)]; }, values.data());
  }
};

}  // namespace

std::vector<Policy> batched_host_policies(const DeviceBatch&, std::int64_t) { return {Policy{}}; }

std::unique_ptr<BatchedPlan> make_batched_host(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns,
                                               const Policy&) {
  return std::make_unique<BatchedHostPlan>(std::move(batch), columns);
}

}  // namespace shardmat
