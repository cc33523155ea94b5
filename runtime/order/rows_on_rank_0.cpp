#include "runtime/order/rows_on_rank_0.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "comm/mpi_session.h"
#include "comm/run_while_checking_ranks.h"
#include "kernels/base/memory_limits.h"

namespace shardmat {
namespace {

constexpr int kRequestTag = 26, kReplyTag = 27;

enum class Wanted : std::int64_t { lengths, originals, entries, nothing_more };

/// For rows [begin, end), counted from the first one of the rank that is asked.
struct Request {
  Wanted wanted;
  std::int64_t begin, end;
};

/// What a rank answers, one array or two.
struct Reply {
  std::span<const std::int64_t> numbers;
  std::span<const double> values;
};

Reply answer(const PlacedRows& placed, const Request& request) {
  const auto begin = static_cast<std::size_t>(request.begin), rows = static_cast<std::size_t>(request.end) - begin;
  const HostCsr& matrix = placed.rows;
  if (request.wanted == Wanted::lengths) return {std::span(matrix.row_ptr).subspan(begin, rows + 1), {}};
  if (request.wanted == Wanted::originals) return {std::span(placed.originals).subspan(begin, rows), {}};
  const auto first = static_cast<std::size_t>(matrix.row_ptr[begin]);
  const auto count = static_cast<std::size_t>(matrix.row_ptr[begin + rows]) - first;
  return {std::span(matrix.col_idx).subspan(first, count), std::span(matrix.values).subspan(first, count)};
}

/// Until rank 0 wants nothing more. Allocates nothing, so that it fails only when ranks lose each other.
void serve(const PlacedRows& placed, Communicator& ranks) {
  for (;;) {
    Request request{};
    ranks.receive(&request, sizeof request, 0, kRequestTag);
    if (request.wanted == Wanted::nothing_more) return;
    const Reply reply = answer(placed, request);
    ranks.send(reply.numbers.data(), reply.numbers.size_bytes(), 0, kReplyTag);
    ranks.send(reply.values.data(), reply.values.size_bytes(), 0, kReplyTag);
  }
}

class RowsOfAllRanks final : public RowSource {
 public:
  RowsOfAllRanks(const PlacedRows& placed, std::string name, Communicator& ranks)
      : placed_(placed), name_(std::move(name)), ranks_(ranks) {}
  ~RowsOfAllRanks() override {
    try {
      const Request last{Wanted::nothing_more, 0, 0};
      for (int rank = 1; rank < ranks_.size(); ++rank) ranks_.send(&last, sizeof last, rank, kRequestTag);
    } catch (const std::exception&) {  // the ranks have lost each other, and know, or will
    }
  }

  std::int64_t rows() const override { return placed_.starts.back(); }
  std::int64_t cols() const override { return placed_.rows.cols; }
  std::string name() const override { return name_; }
  RowOrder row_order() const override { return RowOrder::graph; }

  HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const override {
    HostVector<std::int64_t> lengths(static_cast<std::size_t>(end - begin));
    const std::span<std::int64_t> all(lengths);
    for_each_owner(begin, end, [&](int rank, std::int64_t first, std::int64_t last, std::int64_t offset) {
      HostVector<std::int64_t> row_ptr(static_cast<std::size_t>(last - first) + 1);
      fetch(rank, {Wanted::lengths, first, last}, row_ptr, {});
      for (std::size_t i = 0; i + 1 < row_ptr.size(); ++i)
        all[static_cast<std::size_t>(offset) + i] = row_ptr[i + 1] - row_ptr[i];
    });
    return lengths;
  }

  HostVector<std::int64_t> permutation(std::int64_t begin, std::int64_t end) const override {
    HostVector<std::int64_t> originals(static_cast<std::size_t>(end - begin));
    for_each_owner(begin, end, [&](int rank, std::int64_t first, std::int64_t last, std::int64_t offset) {
      fetch(rank, {Wanted::originals, first, last}, part(originals, offset, last - first), {});
    });
    return originals;
  }

  HostCsr read_rows(std::int64_t begin, std::int64_t end) const override {
    HostCsr rows;
    rows.rows = end - begin, rows.cols = cols();
    const auto lengths = row_lengths(begin, end);
    rows.row_ptr.resize(lengths.size() + 1);
    rows.row_ptr[0] = 0;
    std::partial_sum(lengths.begin(), lengths.end(), rows.row_ptr.begin() + 1);
    rows.col_idx.resize(static_cast<std::size_t>(rows.nnz()));
    rows.values.resize(static_cast<std::size_t>(rows.nnz()));
    for_each_owner(begin, end, [&](int rank, std::int64_t first, std::int64_t last, std::int64_t offset) {
      const std::int64_t from = rows.row_ptr[static_cast<std::size_t>(offset)];
      const std::int64_t count = rows.row_ptr[static_cast<std::size_t>(offset + last - first)] - from;
      fetch(rank, {Wanted::entries, first, last}, part(rows.col_idx, from, count), part(rows.values, from, count));
    });
    return rows;
  }

 private:
  template <class T>
  static std::span<T> part(HostVector<T>& all, std::int64_t first, std::int64_t count) {
    return std::span<T>(all).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  }

  /// visit(rank, first, last, offset): rows [first, last) of that rank's are those from begin + offset on.
  template <class F>
  void for_each_owner(std::int64_t begin, std::int64_t end, F&& visit) const {
    for (std::int64_t from = begin; from < end;) {
      const int rank = owner_of(placed_.starts, from);
      const std::int64_t first = placed_.starts[static_cast<std::size_t>(rank)];
      const std::int64_t to = std::min(end, placed_.starts[static_cast<std::size_t>(rank) + 1]);
      visit(rank, from - first, to - first, from - begin);
      from = to;
    }
  }

  void fetch(int rank, const Request& request, std::span<std::int64_t> numbers, std::span<double> values) const {
    if (rank == 0) {
      const Reply reply = answer(placed_, request);
      std::copy(reply.numbers.begin(), reply.numbers.end(), numbers.begin());
      std::copy(reply.values.begin(), reply.values.end(), values.begin());
      return;
    }
    ranks_.send(&request, sizeof request, rank, kRequestTag);
    ranks_.receive(numbers.data(), numbers.size_bytes(), rank, kReplyTag);
    ranks_.receive(values.data(), values.size_bytes(), rank, kReplyTag);
  }

  const PlacedRows& placed_;
  std::string name_;
  Communicator& ranks_;
};

}  // namespace

void read_all_on_rank_0(const PlacedRows& placed, const std::string& name, Communicator& communicator,
                        const std::function<void(const RowSource&)>& use) {
  communicator.run_agreed([] { require_mpi_threads(); });
  // No deadline: rank 0 asks when it is ready to; who is lost shows elsewhere.
  Communicator ranks = communicator.duplicate(std::numeric_limits<double>::infinity());
  run_while_checking_ranks(
      communicator,
      [&] {
        if (ranks.rank() != 0) return serve(placed, ranks);
        use(RowsOfAllRanks(placed, name, ranks));
      },
      [&] { ranks.give_up(Error(ErrorKind::rank_lost, "the ranks lost each other")); });
}

}  // namespace shardmat
