#include "runtime/batched/batched_verify.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <vector>

#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

/// What a row must be, and how far from it it may be.
struct Expected {
  std::vector<double> sum, bound;
};

/// Whether an error is worse than the worst so far, relative to what is allowed; nothing is worse than NaN.
bool worse(double error, double bound, const BatchedVerification& than) {
  return than.worst_matrix < 0 || (!std::isnan(than.worst_error) && !(error * than.worst_bound <= than.worst_error * bound));
}

/// REQUIRES: `row` counts from the chunk's first.
void expect(const BatchedChunk& chunk, const BatchedOptions& o, std::span<const double> bias, std::size_t row,
            std::int64_t first_col, Expected& e) {
  const HostBatch& a = chunk.on_host();
  const auto columns = static_cast<std::size_t>(o.columns);
  e.sum.assign(columns, 0);
  e.bound.assign(columns, 0);
  for (auto k = static_cast<std::size_t>(a.row_ptr[row]); k < static_cast<std::size_t>(a.row_ptr[row + 1]); ++k) {
    const double value = rounded(o.type, a.values[k]);
    const double* x = chunk.x_on_host().data() + static_cast<std::size_t>(first_col + a.col_idx[k]) * columns;
    for (std::size_t j = 0; j < columns; ++j) {
      const double term = value * rounded(o.type, x[j]);
      e.sum[j] += term, e.bound[j] += std::abs(term);
    }
  }
  const double terms = static_cast<double>(a.row_ptr[row + 1] - a.row_ptr[row]) + 3;
  for (std::size_t j = 0; j < columns; ++j) {
    const double added = bias.empty() ? 0 : rounded(sum_type(o.type), bias[j]);
    e.sum[j] = o.alpha * e.sum[j] + added;
    if (o.relu) e.sum[j] = std::max(e.sum[j], 0.0);
    e.bound[j] = 2 * unit_roundoff(o.type) * terms * (std::abs(o.alpha) * e.bound[j] + std::abs(added));
  }
}

}  // namespace

BatchedVerification verify_chunk(const BatchedChunk& chunk, const BatchedOptions& o, std::span<const double> bias) {
  const BatchView a = chunk.on_host().view();
  const auto columns = static_cast<std::size_t>(o.columns);
  BatchedVerification all;
  std::mutex mutex;
  const std::int64_t per_task = std::clamp<std::int64_t>(a.count() / (4 * thread_count()), 1, 64);
  parallel_tasks((a.count() + per_task - 1) / per_task, [&](std::int64_t task) {
    BatchedVerification mine;
    Expected e;
    for (std::int64_t i = task * per_task; i < std::min(a.count(), (task + 1) * per_task); ++i)
      for (std::int64_t row = a.first_row[static_cast<std::size_t>(i)]; row < a.first_row[static_cast<std::size_t>(i) + 1];
           ++row) {
        expect(chunk, o, bias, static_cast<std::size_t>(row), a.first_col[static_cast<std::size_t>(i)], e);
        ++mine.rows_checked;
        bool wrong = false;
        for (std::size_t j = 0; j < columns; ++j) {
          const double got = dispatch(sum_type(o.type), [&](auto tag) {
            using T = typename decltype(tag)::type;
            return static_cast<double>(static_cast<const T*>(chunk.result())[static_cast<std::size_t>(row) * columns + j]);
          });
          const double error = std::abs(got - e.sum[j]);
          wrong |= !(error <= e.bound[j]);
          if (worse(error, e.bound[j], mine))
            mine.worst_matrix = chunk.range().begin + i, mine.worst_row = row - a.first_row[static_cast<std::size_t>(i)],
            mine.worst_error = error, mine.worst_bound = e.bound[j];
        }
        mine.wrong_rows += wrong;
      }
    mine.passed = mine.wrong_rows == 0;
    const std::lock_guard lock(mutex);
    merge(all, mine);
  });
  return all;
}

void merge(BatchedVerification& into, const BatchedVerification& more) {
  into.passed &= more.passed;
  into.rows_checked += more.rows_checked;
  into.wrong_rows += more.wrong_rows;
  if (more.worst_matrix >= 0 && worse(more.worst_error, more.worst_bound, into))
    into.worst_matrix = more.worst_matrix, into.worst_row = more.worst_row, into.worst_error = more.worst_error,
    into.worst_bound = more.worst_bound;
}

}  // namespace shardmat
