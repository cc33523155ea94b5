#include "runtime/solvers/fields/split_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "runtime/solvers/multigrid/galerkin.h"

namespace shardmat::fields {

using multigrid::Lists;
using multigrid::NodeRows;

namespace {

/// A diagonal is as good as 0 below this share of the row's largest entry: FreeFEM users add 1e-10·p·q.
constexpr double kSmallDiagonal = 1e-3;
constexpr int kLargestNode = 3;
/// Rounding errors leave less than this share of the largest sum of magnitudes of a row.
constexpr double kNothing = 1e-12;

HostVector<char> by_diagonal(const NodeRows& a) {
  HostVector<char> field(at(a.count()), 0);
  parallel_ranges(a.count(), a.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      double largest = 0, diagonal = 0;
      for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
        if (a.column[at(k)] == i) diagonal = a.value[at(k)];
        else largest = std::max(largest, std::abs(a.value[at(k)]));
      }
      field[at(i)] = diagonal < 0 || (largest > 0 && diagonal <= kSmallDiagonal * largest) ? 1 : 0;
    }
  });
  return field;
}

HostVector<char> by_digits(const NodeRows& a, const std::string& digits) {
  const auto size = static_cast<std::int64_t>(digits.size());
  HostVector<char> field(at(a.count()));
  for (std::int64_t i = 0; i < a.count(); ++i) field[at(i)] = digits[at((a.rows->first() + i) % size)] == '1' ? 1 : 0;
  return field;
}

/// Rows of `a` with columns of other numbers: new_column(local number of a column) is one, or -1 for a column that is left
/// out.
template <class IsRow, class NewColumn>
Lists chosen(const NodeRows& a, const IsRow& is_row, const NewColumn& new_column) {
  Lists lists;
  lists.each = 1;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    if (!is_row(i)) continue;
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
      const std::int64_t column = new_column(a.column[at(k)]);
      if (column < 0) continue;
      lists.id.push_back(column);
      lists.value.push_back(a.value[at(k)]);
    }
    lists.start.push_back(std::ssize(lists.id));
  }
  return lists;
}

/// True if the rows of each `size` in a row have entries in the same nodes of as many columns. Not collective.
bool has_nodes(const NodeRows& a, int size) {
  if (a.count() % size != 0) return false;
  const auto node = [&](std::int64_t k) { return a.cols->global(a.column[at(k)]) / size; };
  for (std::int64_t first = 0; first < a.count(); first += size)
    for (int r = 1; r < size; ++r) {
      std::int64_t k = a.start[at(first)], other = a.start[at(first + r)];
      const std::int64_t end = a.start[at(first) + 1], other_end = a.start[at(first + r) + 1];
      while (k < end && other < other_end) {
        const std::int64_t of_k = node(k);
        if (of_k != node(other)) return false;
        while (k < end && node(k) == of_k) ++k;
        while (other < other_end && node(other) == of_k) ++other;
      }
      if (k != end || other != other_end) return false;
    }
  return true;
}

}  // namespace

Split::Split(HostVector<char> field_of_row, Communicator& ranks) : field_(std::move(field_of_row)), place_(field_.size()) {
  for (std::size_t i = 0; i < field_.size(); ++i) place_[i] = own_[static_cast<int>(field_[i])]++;
  for (const int f : {0, 1}) starts_[f] = multigrid::starts_of(own_[f], ranks);
}

Split split_rows(const NodeRows& a, const std::string& fields) {
  Communicator& ranks = a.rows->ranks();
  const bool finds = fields == "auto";
  ranks.run_agreed([&] {
    if (!finds && a.rows->all() % std::ssize(fields) != 0)
      throw Error(ErrorKind::usage,
                  fmt::format("fields are given for nodes of {} unknowns, but {} rows are not a multiple of it",
                              fields.size(), a.rows->all()),
                  "fields");
  });
  Split split(finds ? by_diagonal(a) : by_digits(a, fields), ranks);
  ranks.run_agreed([&] {
    if (split.all(1) == 0)
      throw Error(
          ErrorKind::usage,
          "field_split needs two fields, and there is one field only: no row has a negative diagonal, or one that is "
          "small beside its other entries; take multigrid, or say which unknowns of a node form the second field",
          "fields");
    if (split.all(0) == 0)
      throw Error(ErrorKind::usage,
                  "field_split needs two fields, and there is one field only: no row has a positive diagonal to speak of; "
                  "take direct",
                  "fields");
  });
  return split;
}

NullVectors constant_of_second(const Split& split) {
  NullVectors one;
  one.count = 1, one.other = "the constant of the second field, as a pressure without a reference";
  const std::int64_t own = split.own(0) + split.own(1), all = split.all(0) + split.all(1);
  const double value = std::sqrt(static_cast<double>(all) / static_cast<double>(split.all(1)));
  for (std::int64_t row = 0; row < own; ++row) one.of_own.push_back(split.field(row) == 1 ? value : 0);
  return one;
}

NullVectors free_constant(const NodeRows& a) {
  Communicator& ranks = a.rows->ranks();
  const Split split(by_diagonal(a), ranks);
  const bool is_free = split.all(0) > 0 && split.all(1) > 0 && are_zero(row_sums(block(a, split, 0, 1)), ranks) &&
                       are_zero(row_sums(block(a, split, 1, 1)), ranks);
  return is_free ? constant_of_second(split) : NullVectors();
}

NodeRows block(const NodeRows& a, const Split& split, int i, int j) {
  Communicator& ranks = a.rows->ranks();
  // Numbers of columns in their field, from 0 on; -1 - number for those of the other field.
  HostVector<std::int64_t> own(at(a.count()));
  for (std::int64_t row = 0; row < a.count(); ++row)
    own[at(row)] = split.field(row) == j ? split.starts(j)[at(ranks.rank())] + split.place(row) : -1;
  const HostVector<std::int64_t> ghosts = a.cols->fetch<std::int64_t>(own, 1);
  const Lists lists = chosen(
      a, [&](std::int64_t row) { return split.field(row) == i; },
      [&](std::int32_t column) { return column < a.count() ? own[at(column)] : ghosts[at(column - a.count())]; });
  if (i == j) return multigrid::square_from_lists(lists, 1, split.starts(i), ranks);
  auto rows = std::make_shared<const multigrid::Nodes>(split.starts(i), HostVector<std::int64_t>(), ranks);
  return multigrid::from_lists(lists, 1, 1, std::move(rows), split.starts(j));
}

NodeRows by_nodes(NodeRows a) {
  Communicator& ranks = a.rows->ranks();
  int size = kLargestNode;
  while (size > 1 && ranks.all_reduce(has_nodes(a, size) ? 1 : 0, Reduction::min) == 0) --size;
  if (size == 1) return a;
  Lists lists;
  lists.each = std::int64_t{size} * size;
  for (std::int64_t first = 0; first < a.count(); first += size) {
    const std::int64_t begin = std::ssize(lists.id);
    for (int r = 0; r < size; ++r) {
      std::int64_t to = begin - 1, last = -1;
      for (std::int64_t k = a.start[at(first + r)]; k < a.start[at(first + r) + 1]; ++k) {
        const std::int64_t column = a.cols->global(a.column[at(k)]), node = column / size;
        if (node != last) last = node, ++to;
        if (to == std::ssize(lists.id))
          lists.id.push_back(node), lists.value.resize(lists.value.size() + at(lists.each), 0.0);
        lists.value[at(to * lists.each + r * size + column % size)] += a.value[at(k)];
      }
    }
    lists.start.push_back(std::ssize(lists.id));
  }
  std::vector<std::int64_t> starts = a.rows->starts();
  for (std::int64_t& start : starts) start /= size;
  return multigrid::square_from_lists(lists, size, starts, ranks);
}

NodeRows schur_complement(const NodeRows& f, const NodeRows& g, const NodeRows& d, const NodeRows& c) {
  Communicator& ranks = f.rows->ranks();
  HostVector<double> inverse(at(f.count()));
  ranks.run_agreed([&] {
    for (std::int64_t i = 0; i < f.count(); ++i) {
      const std::int64_t k = f.find(i, static_cast<std::int32_t>(i));
      if (k < 0 || f.value[at(k)] == 0)
        throw Error(ErrorKind::input,
                    fmt::format("unknown {} of the first field has a 0 on the diagonal", f.rows->first() + i), "fields");
      inverse[at(i)] = 1 / f.value[at(k)];
    }
  });
  const HostVector<double> of_ghosts = d.cols->fetch<double>(inverse, 1);
  NodeRows scaled = d;
  for (std::size_t k = 0; k < scaled.value.size(); ++k) {
    const std::int32_t j = scaled.column[k];
    scaled.value[k] *= j < f.count() ? inverse[at(j)] : of_ghosts[at(j - f.count())];
  }
  const NodeRows product = multigrid::multiply(scaled, multigrid::WithGhostRows(g, d.cols));
  Lists lists;
  lists.each = 1;
  for (std::int64_t i = 0; i < c.count(); ++i) {
    const auto add = [&](const NodeRows& m, double factor) {
      for (std::int64_t k = m.start[at(i)]; k < m.start[at(i) + 1]; ++k) {
        lists.id.push_back(m.cols->global(m.column[at(k)]));
        lists.value.push_back(factor * m.value[at(k)]);
      }
    };
    add(c, 1);
    add(product, -1);
    lists.start.push_back(std::ssize(lists.id));
  }
  return multigrid::square_from_lists(lists, 1, c.rows->starts(), ranks);
}

RowSums row_sums(const NodeRows& a) {
  const std::int64_t s = a.row_size;
  RowSums sums{HostVector<double>(at(a.count() * s), 0.0), HostVector<double>(at(a.count() * s), 0.0)};
  for (std::int64_t i = 0; i < a.count(); ++i)
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k)
      for (std::int64_t e = 0; e < a.block_entries(); ++e) {
        const std::int64_t row = i * s + e / a.col_size;
        sums.sum[at(row)] += a.block(k)[e], sums.magnitude[at(row)] += std::abs(a.block(k)[e]);
      }
  return sums;
}

bool are_zero(const RowSums& sums, Communicator& ranks) {
  double largest[2] = {};
  for (std::size_t i = 0; i < sums.sum.size(); ++i) {
    largest[0] = std::max(largest[0], std::abs(sums.sum[i]));
    largest[1] = std::max(largest[1], sums.magnitude[i]);
  }
  ranks.all_reduce(std::span<double>(largest), Reduction::max);
  return largest[0] <= kNothing * largest[1];
}

}  // namespace shardmat::fields
