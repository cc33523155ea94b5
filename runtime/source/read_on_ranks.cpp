#include "runtime/source/read_on_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "comm/items_by_rank.h"
#include "comm/long_wait.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "partition/readers/entry_reader.h"
#include "partition/source/partitioner.h"
#include "runtime/order/find_node_blocks.h"
#include "runtime/order/row_share.h"
#include "runtime/source/kept_rows.h"
#include "runtime/source/row_lengths.h"

namespace shardmat {
namespace {

/// a · b, or INT64_MAX if that is less.
std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<std::int64_t>::max() : result;
}
std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::numeric_limits<std::int64_t>::max() : result;
}

/// One file; keeps what its steps share.
class Reading {
 public:
  Reading(const std::filesystem::path& path, const ReadOnRanksOptions& options, Communicator& ranks)
      : path_(path), options_(options), ranks_(ranks), node_block_size_(options.node_block_size) {
    limits_.batch_bytes = std::clamp<std::int64_t>(options.round_bytes / ranks.size(), 1, kMostBatch);
    limits_.piece_bytes = std::max<std::int64_t>(1, std::min<std::int64_t>(limits_.batch_bytes / 8, kMostPiece));
  }

  ReadMatrix operator()() {
    const LongWait wait(ranks_);  // ranks with less to read, and the one that counts the lines of an error
    open();
    count();
    starts_ = divide(counts_, shares_);
    read();
    tidy();
    KeptRows kept;
    kept.name = path_.string();
    kept.rows = shape_.rows;
    kept.begin = begin_of(starts_);
    kept.part = std::move(part_);
    kept.share_begin = begin_of(shares_);
    kept.node_block_size = node_block_size_;
    kept.share_lengths = std::move(counts_);
    if (options_.keep_unknowns && ranks_.rank() == 0) kept.unknowns = reader_->unknowns();
    return {make_kept_source(std::move(kept)), shape_.divisible == 1 ? fmt::format("{} ranks", ranks_.size())
                                                                     : fmt::format("rank 0 for {} ranks", ranks_.size())};
  }

 private:
  static constexpr std::int64_t kMostBatch = 8 << 20, kMostPiece = 1 << 20;
  static constexpr std::int64_t kBytesHeldBack = 2;  ///< of items for other ranks, for each byte of a batch

  /// What all ranks know of the file.
  struct Shape {
    std::int64_t rows = 0, cols = 0, most_entries = 0;
    std::int64_t divisible = 0, needs_validation = 0, forbids_duplicates = 0;  ///< 0 or 1
  };
  struct Stopped {};

  std::int64_t begin_of(const std::vector<std::int64_t>& starts) const {
    return starts[static_cast<std::size_t>(ranks_.rank())];
  }
  std::int64_t end_of(const std::vector<std::int64_t>& starts) const {
    return starts[static_cast<std::size_t>(ranks_.rank()) + 1];
  }
  std::string what() const { return fmt::format("reading {}", path_.string()); }

  /// Collective. Runs work() on every rank. If it throws Error(input) on some, all ranks throw that of the lowest of them in
  /// its own words, without the rank's name: the file is the same for all. Other errors: as Communicator::run_agreed().
  template <class F>
  void on_file(F&& work) {
    std::optional<Error> wrong;
    ranks_.run_agreed([&] {
      try {
        work();
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) throw;
        wrong = error;
      }
    });
    const std::int64_t first =
        ranks_.size() - ranks_.all_reduce<std::int64_t>(wrong ? ranks_.size() - ranks_.rank() : 0, Reduction::max);
    if (first == ranks_.size()) return;
    const std::string message = ranks_.broadcast(wrong ? wrong->what() : std::string(), static_cast<int>(first));
    const std::string setting = ranks_.broadcast(wrong ? wrong->setting() : std::string(), static_cast<int>(first));
    throw AgreedError(ErrorKind::input, message, setting);
  }

  void open() {
    const ReadOptions read{options_.allow_nonfinite, {}, options_.choices};
    const bool root = ranks_.rank() == 0;
    on_file([&] {
      if (root) reader_ = open_entries(path_, read, limits_);
    });
    if (root)
      shape_ = {reader_->rows(),
                reader_->cols(),
                reader_->most_entries(),
                reader_->is_divisible() ? 1 : 0,
                reader_->needs_validation() ? 1 : 0,
                reader_->forbids_duplicates() ? 1 : 0};
    ranks_.broadcast(std::span<Shape>(&shape_, 1));
    on_file([&] {
      const std::int64_t size = ranks_.size(), of_rows = product(shape_.rows / size + 1, 32);
      require_host_memory(sum(sum(of_rows, product(shape_.most_entries / size, 16)), root ? product(shape_.rows, 16) : 0),
                          what().c_str());
      if (root) ReadLimits::require_plausible(reader_->bytes_asked(), path_, reader_->file_bytes());
    });
    on_file([&] {
      if (root || shape_.divisible == 0) return;
      reader_ = open_entries(path_, read, limits_);
      if (reader_->rows() != shape_.rows || reader_->cols() != shape_.cols)
        throw Error(ErrorKind::input,
                    fmt::format("{}: rank {} on {} sees another file than rank 0; copy the same file to all hosts",
                                path_.string(), ranks_.rank(), ranks_.host()));
    });
    shares_ = even_starts(shape_.rows, ranks_.size());
  }

  /// Collective. Runs read(after_batch) on the ranks that read the file. After their batches, as often as the rank with most
  /// batches, all ranks call deliver(), which is collective, if one has items in `away` for other ranks. The first fault in
  /// the file becomes the error of all ranks.
  template <class T, class Read, class Deliver>
  void in_rounds(const std::vector<T>& away, Read&& read, Deliver&& deliver) {
    struct Signal {
      bool reading, sending, failed, faulty;
    };
    std::exception_ptr error;
    std::optional<TextFault> fault;
    bool going = true, meeting = false;
    int first_faulty = ranks_.size();  // shares ascend with the ranks, so this one has the first fault
    const auto meet = [&](bool reading) {
      meeting = true;
      const auto all = ranks_.all_gather(Signal{reading, !away.empty(), error != nullptr, fault.has_value()});
      const auto any = [&](bool Signal::*what) {
        return std::any_of(all.begin(), all.end(), [&](const Signal& one) { return one.*what; });
      };
      going = any(&Signal::reading);
      first_faulty =
          static_cast<int>(std::find_if(all.begin(), all.end(), [](const Signal& one) { return one.faulty; }) - all.begin());
      if (any(&Signal::failed)) going = false;
      else if (any(&Signal::sending)) deliver();
      meeting = false;
    };
    try {
      if (reader_)
        read([&](std::string_view phase, std::int64_t done, std::int64_t total) {
          report(options_.progress, phase, done, total);
          // A rank that reads alone lets the others wait until it has much for them.
          const auto held_back = static_cast<std::int64_t>(away.size() * sizeof(T));
          if (shape_.divisible == 0 && held_back < kBytesHeldBack * limits_.batch_bytes) return;
          meet(true);
          if (!going || first_faulty < ranks_.rank()) throw Stopped{};
        });
    } catch (const Stopped&) {
    } catch (const TextFault& found) {
      fault = found;
    } catch (...) {
      if (meeting) throw;  // the other ranks are in the middle of it, or know of the error
      error = std::current_exception();
    }
    while (going) meet(false);
    on_file([&] {
      if (error) std::rethrow_exception(error);
      if (fault && first_faulty == ranks_.rank()) reader_->fail(*fault);
    });
  }

  /// Keeps items of rows in [begin, end) by keep(item), and the others in `away` for other ranks. From any thread.
  template <class T, class Keep>
  void sort_out(std::span<const T> items, const std::vector<std::int64_t>& starts, std::vector<T>& away, Keep&& keep) {
    const std::int64_t begin = begin_of(starts), end = end_of(starts);
    std::vector<T> others;
    for (const T& item : items) {
      if (item.row >= begin && item.row < end) keep(item);
      else others.push_back(item);
    }
    if (others.empty()) return;
    const std::scoped_lock lock(mutex_);
    away.insert(away.end(), others.begin(), others.end());
  }

  /// Collective. Sends each item to the rank whose range holds its row; returns what the others send.
  template <class T>
  HostVector<T> trade(std::vector<T>& away, const std::vector<std::int64_t>& starts) {
    const ItemsByRank<T> out = ranks_.run_agreed([&] {
      require_host_memory(static_cast<std::int64_t>(sizeof(T)) * std::ssize(away), "entries for other ranks");
      ItemsByRank<T> items = sort_by_rank<T>(away, ranks_.size(), [&](const T& item) { return owner_of(starts, item.row); });
      away.clear();
      return items;
    });
    return send_items(ranks_, out).items;
  }

  /// Counts the entries of each row of this rank's even share, duplicates included.
  void count() {
    ranks_.run_agreed([&] {
      require_host_memory(8 * (end_of(shares_) - begin_of(shares_)), what().c_str());
      counts_.assign(static_cast<std::size_t>(end_of(shares_) - begin_of(shares_)), 0);
    });
    const std::int64_t begin = begin_of(shares_);
    const auto add = [&](const RowCount& found) {
      std::atomic_ref<std::int64_t>(counts_[static_cast<std::size_t>(found.row - begin)])
          .fetch_add(found.count, std::memory_order_relaxed);
    };
    std::int64_t entries = 0;
    std::vector<RowCount> away;
    in_rounds(
        away,
        [&](const Progress& after_batch) {
          entries = reader_->count(
              share(), [&](std::span<const RowCount> counts) { sort_out(counts, shares_, away, add); }, after_batch);
        },
        [&] {
          for (const RowCount& found : trade(away, shares_)) add(found);
        });
    entries = ranks_.all_reduce(entries, Reduction::sum);
    const std::int64_t nnz =
        ranks_.all_reduce(std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0}), Reduction::sum);
    on_file([&] {
      if (ranks_.rank() != 0) return;
      reader_->require_promised(entries);
      ReadLimits::require_plausible(product(nnz, 16), path_, reader_->file_bytes());
    });
  }

  FileShare share() const { return shape_.divisible == 1 ? FileShare{ranks_.rank(), ranks_.size()} : FileShare{}; }

  /// Collective. Where the parts begin, from the lengths of the rows of which each rank has those between its `from`s.
  std::vector<std::int64_t> divide(const HostVector<std::int64_t>& lengths, const std::vector<std::int64_t>& from) {
    return divide_rows(options_.method, lengths, from, ranks_, std::max<std::int64_t>(1, node_block_size_));
  }

  /// Collective. One item a row: from the ranks whose ranges in `from` hold the rows to those whose ranges in `to` do.
  HostVector<std::int64_t> moved(HostVector<std::int64_t> items, const std::vector<std::int64_t>& from,
                                 const std::vector<std::int64_t>& to) {
    return moved_rows(std::move(items), from, to, ranks_);
  }

  /// The entries of this rank's part, in any order within a row.
  void read() {
    const HostVector<std::int64_t> lengths = moved(std::move(counts_), shares_, starts_);
    HostVector<std::int64_t> next;  // where the next entry of each row goes
    ranks_.run_agreed([&] {
      require_host_memory(16 * (std::ssize(lengths) + 1), what().c_str());
      part_.rows = std::ssize(lengths);
      part_.cols = shape_.cols;
      set_row_pointers(lengths);
      next.assign(part_.row_ptr.begin(), part_.row_ptr.end() - 1);
      require_host_memory(product(part_.nnz(), 16), what().c_str());
      part_.col_idx.resize(static_cast<std::size_t>(part_.nnz()));
      part_.values.resize(static_cast<std::size_t>(part_.nnz()));
    });
    const std::int64_t begin = begin_of(starts_);
    const auto put = [&](const MatrixEntry& entry) {
      const auto row = static_cast<std::size_t>(entry.row - begin);
      const std::int64_t at = std::atomic_ref<std::int64_t>(next[row]).fetch_add(1, std::memory_order_relaxed);
      if (at >= part_.row_ptr[row + 1]) fail_changed();
      part_.col_idx[static_cast<std::size_t>(at)] = entry.col;
      part_.values[static_cast<std::size_t>(at)] = entry.value;
    };
    std::vector<MatrixEntry> away;
    in_rounds(
        away,
        [&](const Progress& after_batch) {
          reader_->read(
              share(), [&](std::span<const MatrixEntry> entries) { sort_out(entries, starts_, away, put); }, after_batch);
        },
        [&] {
          const HostVector<MatrixEntry> in = trade(away, starts_);
          on_file([&] {
            parallel_ranges(std::ssize(in), 1 << 14, [&](std::int64_t lo, std::int64_t hi) {
              for (std::int64_t i = lo; i < hi; ++i) put(in[static_cast<std::size_t>(i)]);
            });
          });
        });
    on_file([&] {
      if (!std::equal(next.begin(), next.end(), part_.row_ptr.begin() + 1)) fail_changed();
    });
  }

  void set_row_pointers(const HostVector<std::int64_t>& lengths) {
    part_.row_ptr.resize(lengths.size() + 1);
    part_.row_ptr[0] = 0;
    std::partial_sum(lengths.begin(), lengths.end(), part_.row_ptr.begin() + 1);
  }

  [[noreturn]] void fail_changed() const {
    throw Error(
        ErrorKind::input,
        fmt::format("{}: the file was changed while it was read; read it again when its writer is done", path_.string()));
  }

  /// Sorts the rows and sums duplicates. If there were any, the parts are made anew from what is left, as for a shard file.
  /// Likewise if the pattern tells that nodes have several unknowns.
  void tidy() {
    const std::int64_t nnz = part_.nnz();
    on_file([&] {
      require_host_memory(8 * part_.rows, what().c_str());
      if (reader_) reader_->check_duplicates(part_, begin_of(starts_));
      if (shape_.forbids_duplicates == 1) require_unique(part_, begin_of(starts_), path_.string());
      sort_rows_and_sum_duplicates(part_);
      if (shape_.needs_validation == 1 || part_.nnz() != nnz)
        validate(part_.view(), {options_.allow_nonfinite, begin_of(starts_), path_.string()});
    });
    const bool summed = ranks_.all_reduce<std::int64_t>(part_.nnz() == nnz ? 0 : 1, Reduction::max) == 1;
    HostVector<std::int64_t> lengths = ranks_.run_agreed([&] {
      require_host_memory(16 * part_.rows, what().c_str());
      HostVector<std::int64_t> found(static_cast<std::size_t>(part_.rows));
      for (std::size_t i = 0; i < found.size(); ++i) found[i] = part_.row_ptr[i + 1] - part_.row_ptr[i];
      return found;
    });
    const bool looks = node_block_size_ == 0;
    if (looks) find_nodes();
    if (summed || (looks && node_block_size_ > 1))
      if (const std::vector<std::int64_t> to = divide(lengths, starts_); to != starts_) lengths = move_part(lengths, to);
    counts_ = moved(std::move(lengths), starts_, shares_);
  }

  void find_nodes() {
    node_block_size_ = 1;
    if (shape_.rows != shape_.cols) return;
    node_block_size_ = find_node_block_size(
        shape_.rows, part_.view(), [first = begin_of(starts_)](std::int64_t row) { return first + row; }, ranks_);
  }

  /// Collective. Gives each rank the rows between its `to`s; returns their lengths.
  HostVector<std::int64_t> move_part(const HostVector<std::int64_t>& lengths, const std::vector<std::int64_t>& to) {
    std::vector<std::int64_t> entries;  // for each rank
    std::size_t row = 0;
    for (const std::int64_t rows : items_to_ranks(starts_, to, ranks_.rank())) {
      entries.push_back(part_.row_ptr[row + static_cast<std::size_t>(rows)] - part_.row_ptr[row]);
      row += static_cast<std::size_t>(rows);
    }
    part_.col_idx = send_items(ranks_, ItemsByRank<std::int64_t>{entries, std::move(part_.col_idx)}).items;
    part_.values = send_items(ranks_, ItemsByRank<double>{entries, std::move(part_.values)}).items;
    HostVector<std::int64_t> new_lengths = moved(lengths, starts_, to);
    starts_ = to;
    part_.rows = std::ssize(new_lengths);
    set_row_pointers(new_lengths);
    return new_lengths;
  }

  const std::filesystem::path path_;
  const ReadOnRanksOptions& options_;
  Communicator& ranks_;
  std::int64_t node_block_size_;  ///< 0: not known yet
  ReadLimits limits_;
  Shape shape_;
  std::unique_ptr<EntryReader> reader_;  ///< null on ranks that read nothing
  std::vector<std::int64_t> shares_;     ///< even shares of the rows
  std::vector<std::int64_t> starts_;     ///< parts
  HostVector<std::int64_t> counts_;      ///< entries of each row of this rank's even share
  HostCsr part_;
  std::mutex mutex_;
};

}  // namespace

ReadMatrix read_on_ranks(const std::filesystem::path& path, const ReadOnRanksOptions& options, Communicator& communicator) {
  if (communicator.size() > 1) return Reading(path, options, communicator)();
  return communicator.run_agreed([&] {
    MatrixWithUnknowns read = read_matrix_with_unknowns(path, {options.allow_nonfinite, options.progress, options.choices});
    if (!options.keep_unknowns) read.unknowns = nullptr;
    return ReadMatrix{
        make_memory_source(std::make_shared<const HostCsr>(std::move(read.matrix)), path.string(), std::move(read.unknowns)),
        "1 rank"};
  });
}

}  // namespace shardmat
