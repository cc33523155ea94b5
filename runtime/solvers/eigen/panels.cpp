#include "runtime/solvers/eigen/panels.h"

#include <algorithm>

#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/host/lanes.h"

namespace shardmat::modes {
namespace {

constexpr std::int64_t kRowsOfTask = 2048;  ///< of gram(): the sums of a task are added in a fixed order
constexpr std::int64_t kRowsAtOnce = 64;    ///< of a pass over many panels: they stay in the first cache

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// sums (8 × 8) += aᵀ·b.
template <class Set>
SHARDMAT_INLINE void add_gram(const double* a, const double* b, std::int64_t rows, double* sums, std::int64_t apart) {
  constexpr int kLanes = Set::kBytes / 8, kPacks = kPanel / kLanes, kTall = 16 / kPacks > 8 ? 8 : 8 / kPacks;
  for (int first = 0; first < kPanel; first += kTall) {
    Lanes<double, kLanes> sum[kTall][kPacks];
    for (int i = 0; i < kTall; ++i)
      for (int l = 0; l < kPacks; ++l) sum[i][l] = load<kLanes>(sums + (first + i) * apart + l * kLanes);
    for (std::int64_t row = 0; row < rows; ++row) {
      Lanes<double, kLanes> right[kPacks];
      for (int l = 0; l < kPacks; ++l) right[l] = load<kLanes>(b + row * kPanel + l * kLanes);
      for (int i = 0; i < kTall; ++i) {
        const double left = a[row * kPanel + first + i];
        for (int l = 0; l < kPacks; ++l) add_product<Set>(sum[i][l], left, right[l]);
      }
    }
    for (int i = 0; i < kTall; ++i)
      for (int l = 0; l < kPacks; ++l) store(sums + (first + i) * apart + l * kLanes, sum[i][l]);
  }
}

/// y (some rows of a panel) += a·c, with rows of c that lie `apart` from each other.
template <class Set>
SHARDMAT_INLINE void add_combination(const double* a, const double* c, std::int64_t apart, std::int64_t rows, double* y) {
  constexpr int kLanes = Set::kBytes / 8, kPacks = kPanel / kLanes, kTall = kPacks == 4 ? 2 : 4;
  std::int64_t row = 0;
  const auto some = [&]<int kRows>() SHARDMAT_INLINE_LAMBDA {
    Lanes<double, kLanes> sum[kRows][kPacks];
    for (int r = 0; r < kRows; ++r)
      for (int l = 0; l < kPacks; ++l) sum[r][l] = load<kLanes>(y + (row + r) * kPanel + l * kLanes);
    for (int k = 0; k < kPanel; ++k)
      for (int r = 0; r < kRows; ++r) {
        const double left = a[(row + r) * kPanel + k];
        for (int l = 0; l < kPacks; ++l) add_product<Set>(sum[r][l], left, load<kLanes>(c + k * apart + l * kLanes));
      }
    for (int r = 0; r < kRows; ++r)
      for (int l = 0; l < kPacks; ++l) store(y + (row + r) * kPanel + l * kLanes, sum[r][l]);
  };
  for (; row + kTall <= rows; row += kTall) some.template operator()<kTall>();
  for (; row < rows; ++row) some.template operator()<1>();
}

}  // namespace

Block::Block(std::int64_t rows, std::int64_t panels) : rows_(rows), panels_(panels) {
  require_host_memory(rows * panels * kPanel * 8, "a block of vectors");
  memory_.resize(index(rows * panels * kPanel));
  parallel_ranges(std::ssize(memory_), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    std::fill(memory_.begin() + begin, memory_.begin() + end, 0.0);
  });
}

Panels panels_of(Block& block, std::int64_t count) {
  Panels all;
  for (std::int64_t p = 0; p < count; ++p) all.push_back(block.panel(p));
  return all;
}

Panels joined(std::initializer_list<Panels> parts) {
  Panels all;
  for (const Panels& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

Small product(const Small& a, const Small& b) {
  Small c(a.rows, b.columns);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = 0; k < a.columns; ++k) {
      const double left = a(i, k);
      if (left == 0) continue;
      for (std::int64_t j = 0; j < b.columns; ++j) c(i, j) += left * b(k, j);
    }
  return c;
}

Small transposed_product(const Small& a, const Small& b) {
  Small c(a.columns, b.columns);
  for (std::int64_t k = 0; k < a.rows; ++k)
    for (std::int64_t i = 0; i < a.columns; ++i) {
      const double left = a(k, i);
      if (left == 0) continue;
      for (std::int64_t j = 0; j < b.columns; ++j) c(i, j) += left * b(k, j);
    }
  return c;
}

Small gram(const Panels& a, const Panels& b, std::int64_t rows) {
  Small sums(std::ssize(a) * kPanel, std::ssize(b) * kPanel);
  const std::int64_t tasks = (rows + kRowsOfTask - 1) / kRowsOfTask;
  const std::size_t each = sums.values.size();
  std::vector<double> parts(each * index(tasks));
  const Isa isa = instruction_set();
  const auto task = [&](std::int64_t t) {
    const std::int64_t end = std::min(rows, (t + 1) * kRowsOfTask);
    double* const into = parts.data() + index(t) * each;
    run_compiled_for(isa, [&](auto set) SHARDMAT_INLINE_LAMBDA {
      for (std::int64_t row = t * kRowsOfTask; row < end; row += kRowsAtOnce) {
        const std::int64_t some = std::min(kRowsAtOnce, end - row);
        for (std::size_t i = 0; i < a.size(); ++i)
          for (std::size_t j = 0; j < b.size(); ++j)
            add_gram<decltype(set)>(
                a[i] + row * kPanel, b[j] + row * kPanel, some,
                into + static_cast<std::int64_t>(i) * kPanel * sums.columns + static_cast<std::int64_t>(j) * kPanel,
                sums.columns);
      }
    });
  };
  if (tasks <= 1)
    for (std::int64_t t = 0; t < tasks; ++t) task(t);
  else parallel_tasks(tasks, task);
  for (std::int64_t t = 0; t < tasks; ++t)
    for (std::size_t i = 0; i < each; ++i) sums.values[i] += parts[index(t) * each + i];
  return sums;
}

void combine(const Panels& a, const Small& c, const Panels& y, std::int64_t rows) {
  if (y.empty()) return;
  const Isa isa = instruction_set();
  parallel_ranges(rows, grain_of(rows, rows * kPanel * std::ssize(a)), [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> made(y.size() * index(kRowsAtOnce * kPanel));
    run_compiled_for(isa, [&](auto set) SHARDMAT_INLINE_LAMBDA {
      for (std::int64_t row = begin; row < end; row += kRowsAtOnce) {
        const std::int64_t some = std::min(kRowsAtOnce, end - row);
        for (std::size_t j = 0; j < y.size(); ++j) {
          double* const to = made.data() + j * index(kRowsAtOnce * kPanel);
          std::fill_n(to, some * kPanel, 0.0);
          for (std::size_t i = 0; i < a.size(); ++i)
            add_combination<decltype(set)>(
                a[i] + row * kPanel,
                c.values.data() + static_cast<std::int64_t>(i) * kPanel * c.columns + static_cast<std::int64_t>(j) * kPanel,
                c.columns, some, to);
        }
        for (std::size_t j = 0; j < y.size(); ++j)
          std::copy_n(made.data() + j * index(kRowsAtOnce * kPanel), some * kPanel, y[j] + row * kPanel);
      }
    });
  });
}

}  // namespace shardmat::modes
