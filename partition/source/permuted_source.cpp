#include "partition/source/permuted_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/matrix/ordering.h"

namespace shardmat {
namespace {

// Rows of a range lie scattered in the source. Gaps of up to kGapEntries are read and thrown away, which
// costs less than another read; one read covers at most kRunEntries, so that the extra memory is bounded.
constexpr std::int64_t kGapEntries = 1024;
constexpr std::int64_t kRunEntries = 1 << 20;

class ReorderedSource final : public RowSource {
 public:
  /// order[new_row] = row of the source.
  ReorderedSource(const RowSource& source, HostVector<std::int64_t> order, std::span<const std::int64_t> row_ptr,
                  RowOrder name)
      : source_(source), order_(std::move(order)), lengths_(order_.size()), name_(name) {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const auto old = static_cast<std::size_t>(order_[i]);
      lengths_[i] = row_ptr[old + 1] - row_ptr[old];
    }
    if (source.rows() == source.cols()) inverse_ = invert_permutation(order_);
  }

  std::int64_t rows() const override { return source_.rows(); }
  std::int64_t cols() const override { return source_.cols(); }
  std::string name() const override { return source_.name(); }
  RowOrder row_order() const override { return name_; }
  std::shared_ptr<const UnknownList> unknowns() const override { return source_.unknowns(); }

  HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const override {
    return {lengths_.begin() + begin, lengths_.begin() + end};
  }

  HostVector<std::int64_t> permutation(std::int64_t begin, std::int64_t end) const override {
    HostVector<std::int64_t> result{order_.begin() + begin, order_.begin() + end};
    if (source_.permuted()) {
      const auto inner = source_.permutation(0, rows());
      for (std::int64_t& row : result) row = inner[static_cast<std::size_t>(row)];
    }
    return result;
  }

  HostCsr read_rows(std::int64_t begin, std::int64_t end) const override {
    HostCsr part;
    part.rows = end - begin;
    part.cols = cols();
    part.row_ptr.resize(static_cast<std::size_t>(part.rows) + 1);
    part.row_ptr[0] = 0;
    for (std::int64_t i = 0; i < part.rows; ++i)
      part.row_ptr[static_cast<std::size_t>(i) + 1] = part.row_ptr[static_cast<std::size_t>(i)] + length(begin + i);
    part.col_idx.resize(static_cast<std::size_t>(part.nnz()));
    part.values.resize(static_cast<std::size_t>(part.nnz()));
    gather(begin, end, part);
    if (!inverse_.empty()) renumber(part);
    return part;
  }

 private:
  std::int64_t length(std::int64_t row) const { return lengths_[static_cast<std::size_t>(row)]; }

  void renumber(HostCsr& part) const {
    parallel_ranges(part.nnz(), 1 << 16, [&](std::int64_t lo, std::int64_t hi) {
      for (auto k = static_cast<std::size_t>(lo); k < static_cast<std::size_t>(hi); ++k) {
        std::int64_t& column = part.col_idx[k];
        if (column < 0 || column >= cols())
          throw Error(ErrorKind::input, fmt::format("{}: column {} is out of range [0, {})", name(), column, cols()));
        column = inverse_[static_cast<std::size_t>(column)];
      }
    });
    sort_rows_and_sum_duplicates(part);  // there are none, so it sorts only
  }

  /// Copies the rows [begin, end) of the new order into `part`, whose row pointers are ready.
  void gather(std::int64_t begin, std::int64_t end, HostCsr& part) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> wanted;  // (row of the source, row of `part`)
    wanted.reserve(static_cast<std::size_t>(part.rows));
    for (std::int64_t i = begin; i < end; ++i) wanted.emplace_back(order_[static_cast<std::size_t>(i)], i - begin);
    std::sort(wanted.begin(), wanted.end());
    const std::span<const std::pair<std::int64_t, std::int64_t>> all(wanted);
    for (std::size_t first = 0, next = 0; first < all.size(); first = next) {
      next = end_of_run(all, first, part);
      copy_run(all.subspan(first, next - first), part);
    }
  }

  /// One past the last wanted row that is read together with `first`. Unwanted rows between two wanted ones
  /// count as long as the longer of the two, which is exact enough for neighbours in a mesh.
  static std::size_t end_of_run(std::span<const std::pair<std::int64_t, std::int64_t>> wanted, std::size_t first,
                                const HostCsr& part) {
    const auto length = [&](std::size_t i) {
      const auto row = static_cast<std::size_t>(wanted[i].second);
      return part.row_ptr[row + 1] - part.row_ptr[row];
    };
    std::int64_t entries = length(first);
    std::size_t next = first + 1;
    for (; next < wanted.size(); ++next) {
      const std::int64_t skipped = wanted[next].first - wanted[next - 1].first - 1;
      const std::int64_t gap = skipped * std::max<std::int64_t>(1, std::max(length(next), length(next - 1)));
      entries += gap + length(next);
      if (gap > kGapEntries || entries > kRunEntries) break;
    }
    return next;
  }

  void copy_run(std::span<const std::pair<std::int64_t, std::int64_t>> wanted, HostCsr& part) const {
    const std::int64_t first = wanted.front().first;
    source_.visit_rows(first, wanted.back().first + 1, [&](const CsrView& run) {
      for (const auto& [old_row, new_row] : wanted) {
        const std::int64_t from = run.row_ptr[static_cast<std::size_t>(old_row - first)] - run.row_ptr[0];
        const std::int64_t to = part.row_ptr[static_cast<std::size_t>(new_row)];
        const std::int64_t count = part.row_ptr[static_cast<std::size_t>(new_row) + 1] - to;
        std::copy_n(run.col_idx.begin() + from, count, part.col_idx.begin() + to);
        std::copy_n(run.values.begin() + from, count, part.values.begin() + to);
      }
    });
  }

  const RowSource& source_;
  HostVector<std::int64_t> order_;    // new row -> row of the source
  HostVector<std::int64_t> lengths_;  // of the new rows
  HostVector<std::int64_t> inverse_;  // row of the source -> new row; empty unless the matrix is square
  RowOrder name_;
};

}  // namespace

std::unique_ptr<RowSource> make_length_sorted_source(const RowSource& source, std::span<const std::int64_t> row_ptr) {
  return std::make_unique<ReorderedSource>(source, order_by_row_length(row_ptr), row_ptr, RowOrder::by_length);
}

std::unique_ptr<RowSource> make_reordered_source(const RowSource& source, HostVector<std::int64_t> order,
                                                 std::span<const std::int64_t> row_ptr, RowOrder name) {
  return std::make_unique<ReorderedSource>(source, std::move(order), row_ptr, name);
}

std::unique_ptr<RowSource> make_original_order_source(const RowSource& source, std::span<const std::int64_t> row_ptr) {
  return std::make_unique<ReorderedSource>(source, invert_permutation(source.permutation(0, source.rows())), row_ptr,
                                           RowOrder::as_source);
}

}  // namespace shardmat
