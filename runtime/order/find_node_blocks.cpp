#include "runtime/order/find_node_blocks.h"

#include <algorithm>
#include <span>
#include <vector>

#include "comm/items_by_rank.h"
#include "kernels/matrix/node_blocks.h"

namespace shardmat {
namespace {

/// The sampled rows: each range of them goes to one rank, which looks at it.
class Sampling {
 public:
  Sampling(std::int64_t rows, Communicator& ranks) : rows_(rows), ranks_(ranks), ranges_(node_block_samples(rows)) {}

  const std::vector<RowInterval>& ranges() const { return ranges_; }

  /// Row i of `rows`, with the given number. Rows that are not in the sample are ignored.
  void take(std::int64_t number, const CsrView& rows, std::size_t i) {
    if (range_of(number) < 0) return;
    const auto begin = rows.row_ptr[i] - rows.row_ptr[0], end = rows.row_ptr[i + 1] - rows.row_ptr[0];
    if (end - begin > kLongestSampledRow) entries_.push_back({number, -1});
    else
      for (std::int64_t k = begin; k < end; ++k) entries_.push_back({number, rows.col_idx[static_cast<std::size_t>(k)]});
  }

  /// Collective.
  std::int64_t find() {
    const ItemsByRank<Entry> out = ranks_.run_agreed([&] {
      require_host_memory(static_cast<std::int64_t>(sizeof(Entry)) * std::ssize(entries_), "a sample of the rows");
      return sort_by_rank<Entry>(entries_, ranks_.size(),
                                 [&](const Entry& entry) { return static_cast<int>(range_of(entry.row) % ranks_.size()); });
    });
    HostVector<Entry> in = send_items(ranks_, out).items;
    NodeBlockSample sample(rows_);
    ranks_.run_agreed([&] { add(in, sample); });
    return node_block_size(rows_, [&](const std::vector<BlockGrouping>& groupings) {
      std::vector<BlockTally> sums;
      std::vector<std::int64_t> numbers;
      for (const BlockGrouping& grouping : groupings) {
        sums.push_back(sample.tally(grouping));
        const auto of_one = sums.back().numbers();
        numbers.insert(numbers.end(), of_one.begin(), of_one.end());
      }
      if (!numbers.empty()) ranks_.all_reduce(std::span<std::int64_t>(numbers), Reduction::sum);
      for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i].set_numbers(std::span<const std::int64_t>(numbers).subspan(i * BlockTally::kCount, BlockTally::kCount));
      return sums;
    });
  }

 private:
  struct Entry {
    std::int64_t row, col;
  };

  /// -1 if the row is in no range.
  std::int64_t range_of(std::int64_t row) const {
    const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), row,
                                        [](std::int64_t r, const RowInterval& range) { return r < range.begin; });
    if (after == ranges_.begin() || row >= (after - 1)->end) return -1;
    return after - ranges_.begin() - 1;
  }

  /// The ranges of this rank.
  void add(HostVector<Entry>& entries, NodeBlockSample& sample) const {
    const auto before = [](const Entry& a, const Entry& b) { return a.row < b.row; };
    if (!std::is_sorted(entries.begin(), entries.end(), before)) std::sort(entries.begin(), entries.end(), before);
    auto next = entries.begin();
    for (std::size_t i = static_cast<std::size_t>(ranks_.rank()); i < ranges_.size();
         i += static_cast<std::size_t>(ranks_.size())) {
      std::vector<std::int64_t> starts{0}, columns;
      for (std::int64_t row = ranges_[i].begin; row < ranges_[i].end; ++row) {
        for (; next != entries.end() && next->row == row; ++next) columns.push_back(next->col);
        starts.push_back(std::ssize(columns));
      }
      CsrView view;
      view.rows = ranges_[i].end - ranges_[i].begin, view.cols = rows_;
      view.row_ptr = starts, view.col_idx = std::span<const std::int64_t>(columns);
      sample.add(ranges_[i].begin, view);
    }
  }

  std::int64_t rows_;
  Communicator& ranks_;
  std::vector<RowInterval> ranges_;
  std::vector<Entry> entries_;
};

}  // namespace

std::int64_t find_node_block_size(const RowSource& source, std::int64_t begin, std::int64_t end, Communicator& ranks) {
  Sampling sampling(source.rows(), ranks);
  ranks.run_agreed([&] {
    for (const RowInterval& range : sampling.ranges()) {
      const std::int64_t first = std::max(begin, range.begin), last = std::min(end, range.end);
      if (first >= last) continue;
      for_each_row_slice(source, first, last, [&](std::int64_t row, const CsrView& rows) {
        for (std::int64_t i = 0; i < rows.rows; ++i) sampling.take(row + i, rows, static_cast<std::size_t>(i));
      });
    }
  });
  return sampling.find();
}

std::int64_t find_node_block_size(std::int64_t rows, const CsrView& own,
                                  const std::function<std::int64_t(std::int64_t)>& number, Communicator& ranks) {
  Sampling sampling(rows, ranks);
  ranks.run_agreed([&] {
    for (std::int64_t i = 0; i < own.rows; ++i) sampling.take(number(i), own, static_cast<std::size_t>(i));
  });
  return sampling.find();
}

}  // namespace shardmat
