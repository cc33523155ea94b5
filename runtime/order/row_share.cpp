#include "runtime/order/row_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "partition/source/partitioner.h"

namespace shardmat {

int owner_of(std::span<const std::int64_t> starts, std::int64_t index) {
  return static_cast<int>(std::upper_bound(starts.begin(), starts.end(), index) - starts.begin()) - 1;
}

RowShare take_share(const RowSource& source, Communicator& communicator) {
  RowShare share{source, even_starts(source.rows(), communicator.size())};
  const auto rank = static_cast<std::size_t>(communicator.rank());
  share.begin = share.starts[rank], share.end = share.starts[rank + 1];
  share.lengths = communicator.run_agreed([&] {
    require_host_memory(8 * share.rows(), "counting the nonzeros of this rank's rows");
    return source.row_lengths(share.begin, share.end);
  });
  return share;
}

namespace {

/// Where slices of the share begin, and where the last one ends.
std::vector<std::int64_t> slice_starts(const RowShare& share) {
  std::vector<std::int64_t> starts{share.begin};
  std::int64_t entries = 0;
  for (std::int64_t row = share.begin; row < share.end; ++row) {
    const std::int64_t length = share.lengths[static_cast<std::size_t>(row - share.begin)];
    if (row > starts.back() && (entries + length > kSliceEntries || row - starts.back() == kSliceEntries)) {
      starts.push_back(row);
      entries = 0;
    }
    entries += length;
  }
  if (share.rows() > 0) starts.push_back(share.end);
  return starts;
}

HostCsr read_as_counted(const RowShare& share, std::int64_t begin, std::int64_t end) {
  HostCsr rows = share.source.read_rows(begin, end);
  for (std::int64_t row = begin; row < end; ++row) {
    const auto i = static_cast<std::size_t>(row - begin);
    if (rows.row_ptr[i + 1] - rows.row_ptr[i] != share.lengths[static_cast<std::size_t>(row - share.begin)])
      throw Error(ErrorKind::input,
                  fmt::format("{}: row {} is not as long as it was counted; the file changed or is damaged",
                              share.source.name(), row));
  }
  return rows;
}

}  // namespace

void for_each_round(const RowShare& share, Communicator& communicator,
                    const std::function<void(std::int64_t, const HostCsr&)>& use) {
  std::vector<std::int64_t> starts = communicator.run_agreed([&] { return slice_starts(share); });
  starts.resize(static_cast<std::size_t>(communicator.all_reduce(std::ssize(starts), Reduction::max)), share.end);
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const HostCsr rows = communicator.run_agreed([&] {
      // A row longer than a slice makes one of its own. Rows, and what ranks tell each other about them.
      const auto first = share.lengths.begin() + (starts[i] - share.begin), last = first + (starts[i + 1] - starts[i]);
      require_host_memory(80 * std::max(kSliceEntries, std::accumulate(first, last, std::int64_t{0})),
                          "a slice of the matrix");
      return read_as_counted(share, starts[i], starts[i + 1]);
    });
    use(starts[i], rows);
  }
}

}  // namespace shardmat
