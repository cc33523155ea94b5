// Batched products on host threads: the reference of every other kernel, and what runs without a GPU.
#include <algorithm>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/base/parallel.h"
#include "kernels/batched/host_rows.h"
#include "kernels/batched/kernels.h"

namespace shardmat {
namespace {

using namespace batched;

/// Puts the entries of a matrix in coordinates into rows. The entries of a row keep their order. Keeps its memory from
/// matrix to matrix.
class RowsOfCoordinates {
 public:
  template <class A>
  HostRows<A> sort(const DeviceBatch& batch, std::size_t matrix, const ColumnsOfX<A>& x) {
    const std::int32_t begin = batch.at.first_entry[matrix];
    const auto count = static_cast<std::size_t>(batch.at.first_entry[matrix + 1] - begin);
    const std::int32_t *rows = batch.row_idx + begin, *cols = batch.col_idx + begin;
    const A* entries = static_cast<const A*>(batch.values) + begin;
    // Entry i + 2 counts row i. Then entry i + 1 is where row i begins, and moves to its end as it is filled.
    row_ptr_.assign(static_cast<std::size_t>(batch.at.first_row[matrix + 1] - batch.at.first_row[matrix]) + 2, 0);
    bool in_order = true;
    for (std::size_t k = 0; k < count; ++k) {
      ++row_ptr_[static_cast<std::size_t>(rows[k]) + 2];
      in_order = in_order && (k == 0 || rows[k - 1] <= rows[k]);
    }
    for (std::size_t i = 2; i < row_ptr_.size(); ++i) row_ptr_[i] += row_ptr_[i - 1];
    if (in_order) return {row_ptr_.data() + 1, cols, entries, x, has_uneven_rows(batch, matrix)};
    col_idx_.resize(count);
    values_.resize(count * sizeof(A));
    A* values = reinterpret_cast<A*>(values_.data());
    for (std::size_t k = 0; k < count; ++k) {
      const auto place = static_cast<std::size_t>(row_ptr_[static_cast<std::size_t>(rows[k]) + 1]++);
      col_idx_[place] = cols[k];
      values[place] = entries[k];
    }
    return {row_ptr_.data(), col_idx_.data(), values, x, has_uneven_rows(batch, matrix)};
  }

 private:
  std::vector<std::int32_t> row_ptr_;
  HostVector<std::int32_t> col_idx_;
  HostVector<std::byte> values_;
};

class BatchedHostPlan final : public BatchedPlan {
 public:
  BatchedHostPlan(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns)
      : BatchedPlan(std::move(batch), columns),
        starts_(task_starts(this->batch(), {(columns + 15) / 16, (columns + 15) / 16})) {
    if (this->batch().format == BatchFormat::csr) return;
    // Entries in any order: a task has whole matrices.
    const std::vector<std::int32_t>& first = this->batch().at.first_row;
    for (std::int64_t& start : starts_) start = *std::lower_bound(first.begin(), first.end(), start);
    sorted_.resize(starts_.size() - 1);
  }

 private:
  void run(const void* x, std::int64_t ldx, void* y, std::int64_t ldy, const Epilogue& epilogue, Stream&) const override {
    dispatch_operands(batch().type, [&]<class A, class T>(TypeTag<A>, TypeTag<T>) {
      const auto v = operands<T, A>(columns(), x, ldx, y, ldy, epilogue);
      parallel_tasks(std::ssize(starts_) - 1, [&](std::int64_t task) { multiply(v, static_cast<std::size_t>(task)); });
    });
  }

  template <class T, class A>
  void multiply(const Operands<T, A>& v, std::size_t task) const {
    const DeviceBatch& b = batch();
    std::int64_t row = starts_[task];
    auto matrix = static_cast<std::size_t>(matrix_of(row, b.at.first_row.data(), static_cast<std::int32_t>(b.at.count())));
    for (const std::int64_t end = starts_[task + 1]; row < end; ++matrix) {
      const std::int64_t next = std::min<std::int64_t>(end, b.at.first_row[matrix + 1]);
      const ColumnsOfX<A> x{v.x + b.at.first_col[matrix] * v.ldx, v.ldx};
      const HostRows<A> a =
          b.format == BatchFormat::coo
              ? sorted_[task].sort(b, matrix, x)
              : HostRows<A>{b.row_ptr + row, b.col_idx, static_cast<const A*>(b.values), x, has_uneven_rows(b, matrix)};
      Operands<T, A> y = v;
      y.y += row * v.ldy;
      multiply_rows(isa_, y, a, next - row);
      row = next;
    }
  }

  std::vector<std::int64_t> starts_;
  Isa isa_ = instruction_set();
  mutable std::vector<RowsOfCoordinates> sorted_;  ///< one for each task
};

}  // namespace

std::vector<Policy> batched_host_policies(const DeviceBatch&, std::int64_t) { return {Policy{}}; }

std::unique_ptr<BatchedPlan> make_batched_host(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns,
                                               const Policy&) {
  return std::make_unique<BatchedHostPlan>(std::move(batch), columns);
}

}  // namespace shardmat
