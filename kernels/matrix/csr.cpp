#include "kernels/matrix/csr.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

constexpr std::int64_t kRowsPerTask = 1 << 15;

[[noreturn]] void reject(const ValidationOptions& options, const std::string& why, const std::string& setting = {}) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", options.source, why), setting);
}

struct RowFault {
  std::string why;  ///< empty: the row is right
  std::string setting;
};

RowFault fault_of_row(const CsrView& m, std::int64_t i, const ValidationOptions& options) {
  const auto row = static_cast<std::size_t>(i);
  const std::int64_t begin = m.row_ptr[row] - m.row_ptr[0], end = m.row_ptr[row + 1] - m.row_ptr[0];
  std::int64_t previous = -1;
  for (std::int64_t k = begin; k < end; ++k) {
    const std::int64_t column = m.col_idx[static_cast<std::size_t>(k)];
    const double value = m.values[static_cast<std::size_t>(k)];
    if (column < 0 || column >= m.cols) return {fmt::format("column {} is out of range [0, {})", column, m.cols), {}};
    if (column <= previous)
      return {fmt::format("column {} follows column {}; columns must be strictly increasing", column, previous), {}};
    if (!options.allow_nonfinite && !std::isfinite(value))
      return {fmt::format("the value at column {} is {}; correct it, or accept values that are not finite", column, value),
              "allow_nonfinite"};
    previous = column;
  }
  return {};
}

/// True if no row in [begin, end) has a fault, without saying which has one.
template <class Columns, class Values>
bool rows_are_right(const CsrView& m, const Columns& columns, const Values& values, std::int64_t begin, std::int64_t end,
                    bool allow_nonfinite) {
  const std::int64_t origin = m.row_ptr[0];
  bool wrong = false;
  for (auto row = static_cast<std::size_t>(begin); row < static_cast<std::size_t>(end); ++row) {
    const auto first = static_cast<std::size_t>(m.row_ptr[row] - origin),
               last = static_cast<std::size_t>(m.row_ptr[row + 1] - origin);
    if (first == last) continue;
    wrong |= columns[first] < 0 || columns[last - 1] >= m.cols;
    for (std::size_t k = first + 1; k < last; ++k) wrong |= columns[k - 1] >= columns[k];
  }
  if (allow_nonfinite) return !wrong;
  for (auto k = static_cast<std::size_t>(m.row_ptr[static_cast<std::size_t>(begin)] - origin);
       k < static_cast<std::size_t>(m.row_ptr[static_cast<std::size_t>(end)] - origin); ++k)
    wrong |= !std::isfinite(values[k]);
  return !wrong;
}

}  // namespace

void validate(const CsrView& m, const ValidationOptions& options) {
  if (m.rows < 0 || m.cols < 0) reject(options, fmt::format("the shape {} × {} is negative", m.rows, m.cols));
  if (static_cast<std::int64_t>(m.row_ptr.size()) != m.rows + 1)
    reject(options,
           fmt::format("there are {} row pointers for {} rows; there must be {}", m.row_ptr.size(), m.rows, m.rows + 1));
  for (std::size_t i = 0; i < static_cast<std::size_t>(m.rows); ++i)
    if (m.row_ptr[i + 1] < m.row_ptr[i])
      reject(options, fmt::format("row {} has a negative length ({} to {})",
                                  options.first_row + static_cast<std::int64_t>(i), m.row_ptr[i], m.row_ptr[i + 1]));
  if (static_cast<std::int64_t>(m.col_idx.size()) != m.nnz() || m.col_idx.size() != m.values.size())
    reject(options, fmt::format("the row pointers promise {} nonzeros but there are {} columns and {} values", m.nnz(),
                                m.col_idx.size(), m.values.size()));

  std::atomic<std::int64_t> first_wrong{m.rows};
  parallel_tasks((m.rows + kRowsPerTask - 1) / kRowsPerTask, [&](std::int64_t task) {
    const std::int64_t end = std::min(m.rows, (task + 1) * kRowsPerTask);
    const bool right = m.col_idx.visit([&](const auto& columns) {
      return m.values.visit([&](const auto& values) {
        return rows_are_right(m, columns, values, task * kRowsPerTask, end, options.allow_nonfinite);
      });
    });
    if (right) return;
    for (std::int64_t i = task * kRowsPerTask; i < end && i < first_wrong.load(std::memory_order_relaxed); ++i) {
      if (fault_of_row(m, i, options).why.empty()) continue;
      std::int64_t known = first_wrong.load();
      while (i < known && !first_wrong.compare_exchange_weak(known, i)) {
      }
      return;
    }
  });
  if (const std::int64_t i = first_wrong; i < m.rows) {
    const RowFault fault = fault_of_row(m, i, options);
    reject(options, fmt::format("row {}: {}", options.first_row + i, fault.why), fault.setting);
  }
}

std::int64_t occupied_columns(const CsrView& m, std::int64_t most) {
  require_host_memory(m.cols, "counting the columns that have entries");
  HostVector<unsigned char> occupied(static_cast<std::size_t>(m.cols));
  std::fill(occupied.begin(), occupied.end(), static_cast<unsigned char>(0));
  std::atomic<std::int64_t> found = 0;
  // Rows `stride` apart.
  const auto look_at = [&](const auto& columns, std::int64_t stride) {
    parallel_ranges((m.rows + stride - 1) / stride, kRowsPerTask / stride, [&](std::int64_t begin, std::int64_t end) {
      std::int64_t fresh = 0;
      for (std::int64_t i = begin; i < end; ++i) {
        const auto row = static_cast<std::size_t>(i * stride);
        for (std::int64_t k = m.row_ptr[row] - m.row_ptr[0]; k < m.row_ptr[row + 1] - m.row_ptr[0]; ++k) {
          const std::atomic_ref flag(occupied[static_cast<std::size_t>(columns[static_cast<std::size_t>(k)])]);
          if (flag.load(std::memory_order_relaxed) == 0 && flag.exchange(1, std::memory_order_relaxed) == 0) ++fresh;
        }
      }
      found += fresh;
    });
  };
  // Where all columns have entries, some of the rows mostly show it.
  m.col_idx.visit([&](const auto& columns) {
    for (const std::int64_t stride : {61, 7, 1})
      if (found < most) look_at(columns, stride);
  });
  return found;
}

namespace {

using Entry = std::pair<std::int64_t, double>;

/// Rises with the number, in the total order of IEEE 754, which has a place for NaN, too. GCC 11 has no std::strong_order of
/// it.
std::int64_t place_of(double number) {
  const auto bits = std::bit_cast<std::int64_t>(number);
  return bits >= 0 ? bits : bits ^ std::numeric_limits<std::int64_t>::max();
}

/// Sorts entries [begin, end) by column and adds up equal columns; returns how many remain (at begin …).
std::int64_t sort_and_sum(HostCsr& m, std::int64_t begin, std::int64_t end, std::vector<Entry>& scratch) {
  auto* columns = m.col_idx.data();
  auto* values = m.values.data();
  bool increasing = true;
  for (std::int64_t k = begin + 1; k < end && increasing; ++k) increasing = columns[k - 1] < columns[k];
  if (increasing) return end - begin;
  scratch.clear();
  for (std::int64_t k = begin; k < end; ++k) scratch.emplace_back(columns[k], values[k]);
  // By column, then value: the sum of duplicates does not depend on the order in which threads placed them.
  std::sort(scratch.begin(), scratch.end(), [](const Entry& a, const Entry& b) {
    return a.first != b.first ? a.first < b.first : place_of(a.second) < place_of(b.second);
  });
  std::int64_t out = begin;
  for (const auto& [column, value] : scratch) {
    if (out > begin && columns[out - 1] == column) {
      values[out - 1] += value;
    } else {
      columns[out] = column;
      values[out++] = value;
    }
  }
  return out - begin;
}

}  // namespace

void sort_rows_and_sum_duplicates(HostCsr& m) {
  HostVector<std::int64_t> kept(static_cast<std::size_t>(m.rows));
  std::atomic<bool> shrunk{false};
  parallel_tasks((m.rows + kRowsPerTask - 1) / kRowsPerTask, [&](std::int64_t task) {
    std::vector<Entry> scratch;
    for (std::int64_t i = task * kRowsPerTask; i < std::min(m.rows, (task + 1) * kRowsPerTask); ++i) {
      const auto row = static_cast<std::size_t>(i);
      kept[row] = sort_and_sum(m, m.row_ptr[row], m.row_ptr[row + 1], scratch);
      if (kept[row] != m.row_ptr[row + 1] - m.row_ptr[row]) shrunk = true;
    }
  });
  if (!shrunk) return;
  std::int64_t out = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(m.rows); ++row) {
    const std::int64_t begin = m.row_ptr[row];
    m.row_ptr[row] = out;
    std::copy_n(m.col_idx.begin() + begin, kept[row], m.col_idx.begin() + out);
    std::copy_n(m.values.begin() + begin, kept[row], m.values.begin() + out);
    out += kept[row];
  }
  m.row_ptr[static_cast<std::size_t>(m.rows)] = out;
  m.col_idx.resize(static_cast<std::size_t>(out));
  m.values.resize(static_cast<std::size_t>(out));
}

}  // namespace shardmat
