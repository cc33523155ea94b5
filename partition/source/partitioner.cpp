#include "partition/source/partitioner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

using Starts = std::vector<std::int64_t>;

/// Row lengths as a prefix sum, with the questions that the search for the best bottleneck asks.
class Prefix {
 public:
  explicit Prefix(std::span<const std::int64_t> row_ptr)
      : sums_(row_ptr), rows_(static_cast<std::int64_t>(row_ptr.size()) - 1) {}

  std::int64_t rows() const { return rows_; }
  std::int64_t nnz() const { return at(rows_) - at(0); }
  std::int64_t at(std::int64_t row) const { return sums_[static_cast<std::size_t>(row)]; }
  std::int64_t longest_row() const {
    std::int64_t longest = 0;
    for (std::int64_t row = 0; row < rows_; ++row) longest = std::max(longest, at(row + 1) - at(row));
    return longest;
  }
  /// The largest end such that rows [begin, end) hold at most `limit` nonzeros.
  std::int64_t furthest_end(std::int64_t begin, std::int64_t limit) const {
    return std::upper_bound(sums_.begin() + begin, sums_.end(), at(begin) + limit) - sums_.begin() - 1;
  }
  /// The smallest begin such that rows [begin, end) hold at most `limit` nonzeros.
  std::int64_t furthest_begin(std::int64_t end, std::int64_t limit) const {
    return std::lower_bound(sums_.begin(), sums_.begin() + end, at(end) - limit) - sums_.begin();
  }
  /// The boundary in [lo, hi] whose sum is nearest to `sum`; `preferred` decides among boundaries of equal
  /// sums.
  std::int64_t nearest_boundary(std::int64_t lo, std::int64_t hi, std::int64_t sum, std::int64_t preferred) const {
    const auto first = sums_.begin();
    std::int64_t at_least = std::lower_bound(first + lo, first + hi, sum) - first;
    if (at_least > lo && sum - at(at_least - 1) < at(at_least) - sum) --at_least;
    const std::int64_t chosen = at(at_least);
    const std::int64_t begin = std::lower_bound(first + lo, first + at_least, chosen) - first;
    const std::int64_t end = std::upper_bound(first + at_least, first + hi + 1, chosen) - first - 1;
    return std::clamp(preferred, begin, end);
  }

 private:
  std::span<const std::int64_t> sums_;
  std::int64_t rows_;
};

bool fits(const Prefix& prefix, int parts, std::int64_t limit) {
  std::int64_t row = 0;
  for (int part = 0; part < parts && row < prefix.rows(); ++part) row = prefix.furthest_end(row, limit);
  return row == prefix.rows();
}

/// The least nonzeros that the heaviest part must hold. No row is longer than the answer, so every probe
/// advances.
std::int64_t best_bottleneck(const Prefix& prefix, int parts) {
  std::int64_t lo = std::max(prefix.longest_row(), (prefix.nnz() + parts - 1) / parts), hi = prefix.nnz();
  while (lo < hi) {
    const std::int64_t middle = lo + (hi - lo) / 2;
    if (fits(prefix, parts, middle)) hi = middle;
    else lo = middle + 1;
  }
  return hi;
}

/// Large parts may be heavier than they must by a part in kSlack, and then end at a multiple of kTogether rows, so that
/// blocks of rows, such as the unknowns of a node, are not cut; of these where the rows on both sides are shortest, as
/// between lines of a grid: both parts then hold whole lines.
constexpr std::int64_t kSlack = 2'000, kTogether = 12;

/// Row lengths of groups of rows.
Starts of_groups(std::span<const std::int64_t> row_ptr, std::int64_t size) {
  Starts groups;
  groups.reserve(row_ptr.size() / static_cast<std::size_t>(size) + 1);
  for (std::size_t row = 0; row < row_ptr.size(); row += static_cast<std::size_t>(size)) groups.push_back(row_ptr[row]);
  return groups;
}

/// The best end in [lo, hi] that differs from `end` by less than `slack` nonzeros; `end` if no multiple of kTogether does.
std::int64_t natural_end(const Prefix& prefix, std::int64_t lo, std::int64_t hi, std::int64_t end, std::int64_t slack) {
  std::int64_t best = end, shortest = std::numeric_limits<std::int64_t>::max();
  const auto try_end = [&](std::int64_t at) {
    if (at < std::max<std::int64_t>(lo, 1) || at > std::min(hi, prefix.rows() - 1)) return false;
    if (std::abs(prefix.at(at) - prefix.at(end)) >= slack) return false;
    if (const std::int64_t both = prefix.at(at + 1) - prefix.at(at - 1); both < shortest) shortest = both, best = at;
    return true;
  };
  std::int64_t below = end / kTogether * kTogether, above = below + kTogether;
  for (bool down = true, up = true; down || up;)
    if (down && (!up || end - below <= above - end)) down = try_end(below), below -= kTogether;
    else up = try_end(above), above += kTogether;
  return best;
}

/// Cuts under the best bottleneck, and under it as evenly as the parts still to come allow: every part aims
/// at its equal share of what is left, gets at least one row while there are rows enough, and leaves no more
/// than the rest can hold.
Starts balance_nonzeros(std::span<const std::int64_t> row_ptr, int parts) {
  const Prefix prefix(row_ptr);
  const std::int64_t rows = prefix.rows();
  Starts starts(static_cast<std::size_t>(parts) + 1, rows);
  if (rows <= parts) {
    for (std::int64_t part = 0; part < rows; ++part) starts[static_cast<std::size_t>(part)] = part;
    return starts;
  }
  const std::int64_t best = best_bottleneck(prefix, parts), slack = best / kSlack, limit = best + slack;
  Starts earliest(starts);  // earliest[p]: the first row from which parts p … can hold all that follows
  for (auto p = static_cast<std::size_t>(parts); p-- > 0;) earliest[p] = prefix.furthest_begin(earliest[p + 1], limit);
  starts[0] = 0;
  for (int part = 0; part + 1 < parts; ++part) {
    const auto p = static_cast<std::size_t>(part);
    const std::int64_t begin = starts[p], left = parts - part;
    const std::int64_t lo = std::max(earliest[p + 1], begin + 1);
    const std::int64_t hi = std::min(prefix.furthest_end(begin, limit), rows - (left - 1));
    const std::int64_t share = (prefix.at(rows) - prefix.at(begin) + left / 2) / left;
    const std::int64_t end = prefix.nearest_boundary(lo, hi, prefix.at(begin) + share, begin + (rows - begin) / left);
    starts[p + 1] = natural_end(prefix, lo, hi, end, slack);
  }
  return starts;
}

Starts balance_rows(std::span<const std::int64_t> row_ptr, int parts) {
  return even_starts(static_cast<std::int64_t>(row_ptr.size()) - 1, parts);
}

constexpr Partitioner kPartitioners[] = {
    {"nnz", "equal nonzeros: the heaviest part has at most 0.05 % more than in the best contiguous split", balance_nonzeros},
    {"rows", "equal rows, whatever they hold", balance_rows},
};

}  // namespace

std::span<const Partitioner> partitioners() { return kPartitioners; }

std::vector<std::int64_t> even_starts(std::int64_t count, int parts) {
  Starts starts(static_cast<std::size_t>(parts) + 1);
  for (std::int64_t part = 0; part <= parts; ++part)
    starts[static_cast<std::size_t>(part)] = count / parts * part + std::min(part, count % parts);
  return starts;
}

void require_node_block_size(std::int64_t size, std::int64_t rows) {
  if (size < 0) throw Error(ErrorKind::usage, fmt::format("nodes of {} unknowns; give 1 or more", size), "node_block_size");
  if (size > 0 && rows % size != 0)
    throw Error(
        ErrorKind::usage,
        fmt::format("{} rows are no whole number of nodes of {} unknowns; give a number that divides {}", rows, size, rows),
        "node_block_size");
}

Partition make_partition(std::string_view method, std::span<const std::int64_t> row_ptr, int parts,
                         std::int64_t node_block_size) {
  if (parts < 1) throw Error(ErrorKind::usage, fmt::format("a matrix cannot be cut into {} parts; give 1 or more", parts));
  std::vector<std::string> names;
  for (const Partitioner& partitioner : kPartitioners) {
    if (partitioner.name == method) {
      require_node_block_size(node_block_size, static_cast<std::int64_t>(row_ptr.size()) - 1);
      if (node_block_size <= 1) return {std::string(method), partitioner.row_starts(row_ptr, parts)};
      Starts starts = partitioner.row_starts(of_groups(row_ptr, node_block_size), parts);
      for (std::int64_t& start : starts) start *= node_block_size;
      return {std::string(method), std::move(starts)};
    }
    names.emplace_back(partitioner.name);
  }
  const std::string near = nearest(method, names);
  throw Error(ErrorKind::usage,
              fmt::format("'{}' is no way to partition; {}choose {}", method,
                          near.empty() ? "" : fmt::format("did you mean '{}'? ", near), join_choices(names)),
              "method");
}

}  // namespace shardmat
