#include "runtime/solvers/incomplete/pattern.h"

#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "runtime/solvers/incomplete/pivot.h"

namespace shardmat::incomplete {
namespace {

/// The rows of a group as they are found. Offsets count within the group.
struct GroupRows {
  HostVector<std::int64_t> start{0}, diagonal;
  HostVector<std::int32_t> column;
  HostVector<std::uint8_t> level;  ///< of each entry, by levels
  HostVector<double> value;        ///< of each entry, with a drop tolerance
};

/// The columns of a row while it is found: those before the diagonal come out in ascending order.
class OpenRow {
 public:
  explicit OpenRow(std::int64_t n) : in_row_(at(n), 0) {}
  void begin(std::int32_t i) { row_ = i, lower_.clear(), upper_.clear(), taken_.clear(); }
  bool has(std::int32_t column) const { return in_row_[at(column)] != 0; }
  void add(std::int32_t column) {
    in_row_[at(column)] = 1;
    if (column >= row_) return upper_.push_back(column);
    lower_.push_back(column);
    std::push_heap(lower_.begin(), lower_.end(), std::greater<>());
  }
  /// The next one before the diagonal; -1: none.
  std::int32_t take() {
    if (lower_.empty()) return -1;
    std::pop_heap(lower_.begin(), lower_.end(), std::greater<>());
    taken_.push_back(lower_.back());
    lower_.pop_back();
    return taken_.back();
  }
  /// All columns, ascending; those that take() gave first.
  const HostVector<std::int32_t>& end() {
    std::sort(upper_.begin(), upper_.end());
    taken_.insert(taken_.end(), upper_.begin(), upper_.end());
    for (const std::int32_t column : taken_) in_row_[at(column)] = 0;
    return taken_;
  }

 private:
  std::int32_t row_ = 0;
  HostVector<char> in_row_;
  HostVector<std::int32_t> lower_, upper_, taken_;
};

/// What finding a row needs to know of others.
struct Found {
  const SquareRows& a;
  const Order& order;
  std::vector<GroupRows> groups = std::vector<GroupRows>(at(order.groups()));
  HostVector<std::int32_t> group_of = HostVector<std::int32_t>(at(order.count()));

  /// Calls use(rows, k) for each entry behind the diagonal of row i.
  template <class Use>
  void each_upper(std::int32_t i, const Use& use) const {
    const std::size_t g = at(group_of[at(i)]);
    const GroupRows& rows = groups[g];
    const std::size_t row = at(i - order.group[g]);
    for (std::int64_t k = rows.diagonal[row] + 1; k < rows.start[row + 1]; ++k) use(rows, k);
  }
  template <class Use>
  void each_entry(std::int32_t i, const Use& use) const {
    const std::int32_t row = order.row[at(i)];
    for (std::int64_t k = a.start[at(row)]; k < a.start[at(row) + 1]; ++k) use(order.position[at(a.column[at(k)])], k);
  }
};

void put_column(GroupRows& rows, std::int32_t i, std::int32_t column) {
  if (column == i) rows.diagonal.push_back(std::ssize(rows.column));
  rows.column.push_back(column);
}

void find_by_levels(Found& f, std::size_t g, int levels) {
  GroupRows& rows = f.groups[g];
  OpenRow open(f.order.count());
  HostVector<std::uint8_t> level(at(f.order.count()));
  std::int64_t entries = 0;
  for (std::int32_t i = f.order.group[g]; i < f.order.group[g + 1]; ++i)
    entries += f.a.start[at(f.order.row[at(i)]) + 1] - f.a.start[at(f.order.row[at(i)])];
  rows.column.reserve(at(entries * (levels + 1))), rows.level.reserve(at(entries * (levels + 1)));
  for (std::int32_t i = f.order.group[g]; i < f.order.group[g + 1]; ++i) {
    open.begin(i);
    f.each_entry(i, [&](std::int32_t column, std::int64_t) { open.add(column), level[at(column)] = 0; });
    for (std::int32_t k = open.take(); k >= 0; k = open.take()) {
      const int first = level[at(k)] + 1;
      if (first > levels) continue;
      f.each_upper(k, [&](const GroupRows& others, std::int64_t e) {
        const int now = first + others.level[at(e)];
        if (now > levels) return;
        const std::int32_t j = others.column[at(e)];
        if (!open.has(j)) open.add(j), level[at(j)] = static_cast<std::uint8_t>(now);
        else level[at(j)] = static_cast<std::uint8_t>(std::min<int>(level[at(j)], now));
      });
    }
    for (const std::int32_t column : open.end()) put_column(rows, i, column), rows.level.push_back(level[at(column)]);
    rows.start.push_back(std::ssize(rows.column));
  }
}

double norm_of(std::span<const double> block) {
  return std::sqrt(std::inner_product(block.begin(), block.end(), block.begin(), 0.0));
}

/// Eliminates with the entries that stay. Entries of `a` stay in any case.
void find_by_tolerance(Found& f, std::size_t g, const FactorOptions& options) {
  GroupRows& rows = f.groups[g];
  const int s = f.a.size;
  const std::size_t entries = at(f.a.block_entries());
  OpenRow open(f.order.count());
  HostVector<double> value(at(f.order.count()) * entries), inverse(entries), product(entries);
  HostVector<char> of_a(at(f.order.count()), 0);
  std::vector<std::pair<double, std::int32_t>> fill;
  for (std::int32_t i = f.order.group[g]; i < f.order.group[g + 1]; ++i) {
    open.begin(i), fill.clear();
    double squares = 0;
    std::int64_t count = 0;
    f.each_entry(i, [&](std::int32_t column, std::int64_t k) {
      open.add(column), of_a[at(column)] = 1, ++count;
      std::copy_n(f.a.block(k), entries, value.data() + at(column) * entries);
      squares += std::pow(norm_of({f.a.block(k), entries}), 2);
    });
    const double norm = std::sqrt(squares), least = options.drop_tolerance * norm;
    const auto block_of = [&](std::int32_t column) { return value.data() + at(column) * entries; };
    const auto keep = [&](std::int32_t column) {  // of fill alone
      if (of_a[at(column)] != 0) return true;
      const double size = norm_of({block_of(column), entries});
      if (!(size > least)) return false;
      fill.emplace_back(size, column);
      return true;
    };
    for (std::int32_t k = open.take(); k >= 0; k = open.take()) {
      if (!keep(k)) {
        std::fill_n(block_of(k), entries, 0.0);
        continue;
      }
      const std::size_t of_k = at(f.group_of[at(k)]);
      const GroupRows& others = f.groups[of_k];
      const std::int64_t diagonal = others.diagonal[at(k - f.order.group[of_k])];
      multiply_blocks(block_of(k), others.value.data() + at(diagonal) * entries, product.data(), s);
      std::copy_n(product.data(), entries, block_of(k));
      f.each_upper(k, [&](const GroupRows& from, std::int64_t e) {
        const std::int32_t j = from.column[at(e)];
        if (!open.has(j)) open.add(j), std::fill_n(block_of(j), entries, 0.0);
        subtract_product(block_of(k), from.value.data() + at(e) * entries, block_of(j), s);
      });
    }
    const HostVector<std::int32_t>& columns = open.end();
    for (const std::int32_t column : columns)
      if (column > i && of_a[at(column)] == 0 && !keep(column)) std::fill_n(block_of(column), entries, 0.0);
    const auto most = static_cast<std::size_t>(std::max(0.0, std::ceil((options.fill - 1) * static_cast<double>(count))));
    if (fill.size() > most) {
      std::nth_element(fill.begin(), fill.begin() + static_cast<std::ptrdiff_t>(most), fill.end(), std::greater<>());
      fill.resize(most);
    }
    for (const auto& [size, column] : fill) of_a[at(column)] = 1;
    for (const std::int32_t column : columns) {
      if (of_a[at(column)] == 0) continue;
      of_a[at(column)] = 0;
      put_column(rows, i, column);
      if (column == i) {  // a pivot of 0 is met later; here, any other will do
        if (!invert_pivot(block_of(i), inverse.data(), s, kLeastPivot * norm)) {
          std::fill(inverse.begin(), inverse.end(), 0.0);
          for (int u = 0; u < s; ++u) inverse[at(u) * at(s) + at(u)] = norm > 0 ? 1 / norm : 1;
        }
        rows.value.insert(rows.value.end(), inverse.begin(), inverse.end());
      } else {
        rows.value.insert(rows.value.end(), block_of(column), block_of(column) + entries);
      }
    }
    rows.start.push_back(std::ssize(rows.column));
  }
}

Pattern joined(const Found& f) {
  const std::int64_t n = f.order.count();
  Pattern p;
  p.start.resize(at(n + 1)), p.diagonal.resize(at(n));
  p.start[0] = 0;
  std::vector<std::int64_t> first(1, 0);
  for (const GroupRows& rows : f.groups) first.push_back(first.back() + rows.start.back());
  p.column.resize(at(first.back()));
  parallel_tasks(f.order.groups(), [&](std::int64_t g) {
    const GroupRows& rows = f.groups[at(g)];
    for (std::int64_t r = 0; r + 1 < std::ssize(rows.start); ++r) {
      const std::size_t i = at(f.order.group[at(g)] + r);
      p.start[i + 1] = first[at(g)] + rows.start[at(r + 1)], p.diagonal[i] = first[at(g)] + rows.diagonal[at(r)];
    }
    std::copy(rows.column.begin(), rows.column.end(), p.column.begin() + first[at(g)]);
  });
  return p;
}

Pattern of_matrix(const SquareRows& a, const Order& order) {
  const std::int64_t n = order.count();
  Pattern p;
  p.start.resize(at(n + 1)), p.diagonal.resize(at(n)), p.column.resize(a.column.size());
  p.start[0] = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t row = order.row[at(i)];
    p.start[at(i + 1)] = p.start[at(i)] + a.start[at(row + 1)] - a.start[at(row)];
  }
  parallel_ranges(n, grain_of(n, std::ssize(a.column) * 2), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = order.row[at(i)];
      const auto from = p.column.begin() + p.start[at(i)], to = p.column.begin() + p.start[at(i + 1)];
      for (std::int64_t k = a.start[at(row)]; k < a.start[at(row + 1)]; ++k)
        from[k - a.start[at(row)]] = order.position[at(a.column[at(k)])];
      if (!std::is_sorted(from, to)) std::sort(from, to);
      p.diagonal[at(i)] = std::lower_bound(from, to, static_cast<std::int32_t>(i)) - p.column.begin();
    }
  });
  return p;
}

/// The pattern and its transpose together.
Pattern made_symmetric(const Pattern& p) {
  const std::int64_t n = std::ssize(p.diagonal);
  HostVector<std::int64_t> start(at(n + 1), 0);
  for (const std::int32_t column : p.column) ++start[at(column) + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  HostVector<std::int64_t> next(start.begin(), start.end() - 1);
  HostVector<std::int32_t> row(p.column.size());
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t k = p.start[at(i)]; k < p.start[at(i + 1)]; ++k)
      row[at(next[at(p.column[at(k)])]++)] = static_cast<std::int32_t>(i);
  Pattern both;
  for (std::int64_t i = 0; i < n; ++i) {
    std::set_union(p.column.begin() + p.start[at(i)], p.column.begin() + p.start[at(i + 1)], row.begin() + start[at(i)],
                   row.begin() + start[at(i + 1)], std::back_inserter(both.column));
    both.diagonal.push_back(std::lower_bound(both.column.begin() + both.start.back(), both.column.end(), i) -
                            both.column.begin());
    both.start.push_back(both.blocks());
  }
  return both;
}

}  // namespace

Pattern find_pattern(const SquareRows& a, const Order& order, const FactorOptions& options, bool symmetric) {
  const bool by_tolerance = options.drop_tolerance > 0;
  if (!by_tolerance && options.levels == 0) return of_matrix(a, order);
  Found f{a, order};
  for (std::int32_t g = 0; g < order.groups(); ++g)
    std::fill(f.group_of.begin() + order.group[at(g)], f.group_of.begin() + order.group[at(g) + 1], g);
  order.each_group([&](std::size_t g) {
    if (by_tolerance) find_by_tolerance(f, g, options);
    else find_by_levels(f, g, options.levels);
  });
  Pattern p = joined(f);
  return by_tolerance && symmetric ? made_symmetric(p) : p;
}

}  // namespace shardmat::incomplete
