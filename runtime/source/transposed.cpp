#include "runtime/source/transposed.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>
#include <vector>

#include "comm/items_by_rank.h"
#include "comm/long_wait.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "partition/source/partitioner.h"
#include "runtime/order/find_node_blocks.h"
#include "runtime/order/row_share.h"
#include "runtime/source/kept_rows.h"
#include "runtime/source/row_lengths.h"

namespace shardmat {
namespace {

/// An entry of Aᵀ on its way to its owner.
struct Entry {
  std::int64_t row, col;
  double value;
};

/// One matrix; keeps what its steps share.
class Transposition {
 public:
  Transposition(const MatrixSource& a, const std::string& method, Communicator& ranks, const EditRows& edit,
                std::int64_t node_block_size)
      : a_(a),
        method_(method),
        ranks_(ranks),
        edit_(edit),
        node_block_size_(node_block_size),
        share_(take_share(*a.rows, ranks)) {
    shares_ = even_starts(a.rows->cols(), ranks.size());
  }

  MatrixSource operator()() {
    const LongWait wait(ranks_);  // for ranks that generate or read more than others
    count();
    if (node_block_size_ == 0) find_nodes();
    starts_ = divide_rows(method_, lengths_, shares_, ranks_, node_block_size_);
    make_room(moved_rows(lengths_, shares_, starts_, ranks_));
    fill();
    return source();
  }

 private:
  std::int64_t begin_of(const std::vector<std::int64_t>& starts) const {
    return starts[static_cast<std::size_t>(ranks_.rank())];
  }
  std::int64_t end_of(const std::vector<std::int64_t>& starts) const {
    return starts[static_cast<std::size_t>(ranks_.rank()) + 1];
  }

  /// The blocks of Aᵀ are those of A.
  void find_nodes() {
    const std::int64_t rows = a_.rows->rows();
    const std::vector<std::int64_t> of_rows = even_starts(rows, ranks_.size());
    node_block_size_ =
        rows == a_.rows->cols() ? find_node_block_size(*a_.rows, begin_of(of_rows), end_of(of_rows), ranks_) : 1;
  }

  /// The nonzeros of each column of A in this rank's even share of the columns.
  void count() {
    const std::int64_t begin = begin_of(shares_);
    ranks_.run_agreed([&] {
      require_host_memory(16 * (end_of(shares_) - begin), "counting the nonzeros of the transpose");
      lengths_.assign(static_cast<std::size_t>(end_of(shares_) - begin), 0);
    });
    for_each_round(share_, ranks_, [&](std::int64_t, const HostCsr& rows) {
      const auto away = ranks_.run_agreed([&] {
        return sort_by_rank<std::int64_t>(rows.col_idx, ranks_.size(),
                                          [&](std::int64_t column) { return owner_of(shares_, column); });
      });
      for (const std::int64_t column : send_items(ranks_, away).items) ++lengths_[static_cast<std::size_t>(column - begin)];
    });
  }

  void make_room(const HostVector<std::int64_t>& lengths) {
    ranks_.run_agreed([&] {
      require_host_memory(24 * (std::ssize(lengths) + 1), "the rows of the transpose");
      part_.rows = std::ssize(lengths);
      part_.cols = a_.rows->rows();
      part_.row_ptr.resize(lengths.size() + 1);
      part_.row_ptr[0] = 0;
      std::partial_sum(lengths.begin(), lengths.end(), part_.row_ptr.begin() + 1);
      require_host_memory(16 * part_.nnz(), "the nonzeros of the transpose");
      part_.col_idx.resize(static_cast<std::size_t>(part_.nnz()));
      part_.values.resize(static_cast<std::size_t>(part_.nnz()));
    });
  }

  /// The entries of a slice of A's rows, by owner.
  ItemsByRank<Entry> entries_of(std::int64_t first_row, const HostCsr& rows) const {
    HostVector<double> values = rows.values;
    if (edit_) edit_(first_row, rows.view(), values);
    HostVector<std::int64_t> originals;
    if (a_.rows->permuted() && a_.rows->rows() != a_.rows->cols())
      originals = a_.rows->permutation(first_row, first_row + rows.rows);
    HostVector<Entry> entries;
    entries.reserve(values.size());
    for (std::int64_t i = 0; i < rows.rows; ++i) {
      const auto row = static_cast<std::size_t>(i);
      const std::int64_t number = originals.empty() ? first_row + i : originals[row];
      for (auto k = static_cast<std::size_t>(rows.row_ptr[row]); k < static_cast<std::size_t>(rows.row_ptr[row + 1]); ++k)
        entries.push_back({rows.col_idx[k], number, values[k]});
    }
    return sort_by_rank<Entry>(entries, ranks_.size(), [&](const Entry& entry) { return owner_of(starts_, entry.row); });
  }

  void fill() {
    const std::int64_t begin = begin_of(starts_);
    HostVector<std::int64_t> next(part_.row_ptr.begin(), part_.row_ptr.end() - 1);
    for_each_round(share_, ranks_, [&](std::int64_t first_row, const HostCsr& rows) {
      const auto away = ranks_.run_agreed([&] { return entries_of(first_row, rows); });
      const auto here = send_items(ranks_, away);
      ranks_.run_agreed([&] {
        for (const Entry& entry : here.items) {
          const auto row = static_cast<std::size_t>(entry.row - begin);
          const std::int64_t at = next[row]++;
          if (at >= part_.row_ptr[row + 1])
            throw Error(ErrorKind::input,
                        fmt::format("{}: the matrix changed while it was transposed; read it again when its writer is done",
                                    a_.rows->name()));
          part_.col_idx[static_cast<std::size_t>(at)] = entry.col;
          part_.values[static_cast<std::size_t>(at)] = entry.value;
        }
      });
    });
    ranks_.run_agreed([&] { sort_rows_and_sum_duplicates(part_); });  // there are none, so it sorts only
  }

  MatrixSource source() {
    KeptRows kept;
    ranks_.run_agreed([&] {
      kept.name = a_.rows->name();
      kept.rows = a_.rows->cols();
      kept.begin = begin_of(starts_);
      kept.share_begin = begin_of(shares_);
      kept.node_block_size = node_block_size_;
      if (!a_.rows->permuted() || a_.rows->rows() != a_.rows->cols()) return;
      kept.order = a_.rows->row_order();
      kept.originals = a_.rows->permutation(begin_of(starts_), end_of(starts_));
    });
    kept.part = std::move(part_);
    kept.share_lengths = std::move(lengths_);
    MatrixSource result;
    result.rows = make_kept_source(std::move(kept));
    result.access = a_.access + "; transposed in memory";
    result.by_part = ranks_.size() > 1;
    return result;
  }

  const MatrixSource& a_;
  const std::string& method_;
  Communicator& ranks_;
  const EditRows& edit_;
  std::int64_t node_block_size_;  ///< 0: to be found
  RowShare share_;
  std::vector<std::int64_t> shares_;  ///< even shares of the columns of A
  std::vector<std::int64_t> starts_;  ///< parts of Aᵀ
  HostVector<std::int64_t> lengths_;  ///< nonzeros of each column of A in this rank's even share
  HostCsr part_;
};

}  // namespace

MatrixSource transposed(const MatrixSource& a, const std::string& method, Communicator& ranks, const EditRows& edit,
                        std::int64_t node_block_size) {
  return Transposition(a, method, ranks, edit, node_block_size)();
}

}  // namespace shardmat
