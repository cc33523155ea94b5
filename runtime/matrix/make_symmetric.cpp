#include "runtime/matrix/make_symmetric.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/items_by_rank.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/matrix/symmetry.h"

namespace shardmat {
namespace {

constexpr std::int64_t kGrain = 1 << 12;  ///< rows
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

std::uint64_t mixed(std::uint64_t z) {  // the finalizer of SplitMix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// The same for a_ij and a_ji if they are equal.
std::uint64_t hash_of(std::int64_t i, std::int64_t j, double value) {
  const auto [low, high] = std::minmax(i, j);
  std::uint64_t hash = mixed(static_cast<std::uint64_t>(low) + 0x9e3779b97f4a7c15u);
  hash = mixed(hash + static_cast<std::uint64_t>(high));
  return mixed(hash + std::bit_cast<std::uint64_t>(value));
}

/// Global number of a row of the part, as columns are counted.
std::int64_t global_row(const LoadedPart& part, std::int64_t first_column, std::int64_t i) {
  return first_column + part.y.place(static_cast<std::size_t>(i));
}

/// Calls visit(row, column, value) with global numbers for the entries off the diagonal in rows begin … end - 1.
template <class Visit>
void for_each_entry(const LoadedPart& part, std::int64_t first_column, std::int64_t begin, std::int64_t end,
                    const Visit& visit) {
  const ColumnView columns = part.csr.columns();
  const ValueView values = part.csr.values();
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t row = global_row(part, first_column, i);
    const auto first = static_cast<std::size_t>(part.csr.row_ptr[static_cast<std::size_t>(i)]),
               last = static_cast<std::size_t>(part.csr.row_ptr[static_cast<std::size_t>(i) + 1]);
    for (std::size_t k = first; k < last; ++k)
      if (columns[k] != row) visit(row, columns[k], values[k]);
  }
}

/// The hashes of all entries below the diagonal less those of all above it, modulo 2^64.
std::uint64_t imbalance(const LoadedPart& part, std::int64_t first_column, Communicator& communicator) {
  std::atomic<std::uint64_t> mine = 0;
  parallel_ranges(part.csr.rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::uint64_t sum = 0;
    for_each_entry(part, first_column, begin, end, [&](std::int64_t row, std::int64_t column, double value) {
      const std::uint64_t hash = hash_of(row, column, value);
      sum += column < row ? hash : 0 - hash;
    });
    mine += sum;
  });
  constexpr int kHalf = 32;
  std::int64_t halves[] = {static_cast<std::int64_t>(mine & 0xffffffffu), static_cast<std::int64_t>(mine >> kHalf)};
  communicator.all_reduce(std::span<std::int64_t>(halves), Reduction::sum);
  return static_cast<std::uint64_t>(halves[0]) + (static_cast<std::uint64_t>(halves[1]) << kHalf);
}

/// An entry on its way to the owner of its column. `scale`: the largest magnitude of its row.
struct Entry {
  std::int64_t row, column;
  double value, scale;
};

/// The entries (low, high) and (high, low). kMissing: not stored.
struct Pair {
  double difference = 0;
  std::int64_t low = -1, high = -1;
  double below_diagonal = 0, above_diagonal = 0;

  Pair() = default;
  Pair(std::int64_t first, std::int64_t second, double one, double other, double differ)
      : difference(differ),
        low(std::min(first, second)),
        high(std::max(first, second)),
        below_diagonal(first < second ? other : one),
        above_diagonal(first < second ? one : other) {}

  /// The larger difference counts; of equal ones the first pair. NaN is larger than any.
  bool is_worse_than(const Pair& other) const {
    const auto key = [](const Pair& pair) {
      const double size = std::isnan(pair.difference) ? std::numeric_limits<double>::infinity() : pair.difference;
      return std::tuple(-size, pair.low < 0, pair.low, pair.high);
    };
    return key(*this) < key(other);
  }
};

/// The mirror images of a rank's entries.
class Mirror {
 public:
  Mirror(LoadedPart& part, Communicator& communicator)
      : part_(part),
        communicator_(communicator),
        first_(part.y.starts[static_cast<std::size_t>(communicator.rank())]),
        end_(part.y.starts[static_cast<std::size_t>(communicator.rank()) + 1]) {}

  /// Finds all, on this rank and on others. Returns the pair of all ranks that differs most. Collective.
  Pair find() {
    communicator_.run_agreed([&] { prepare(); });
    const ItemsByRank<Entry> out = communicator_.run_agreed([&] {
      find_own();
      return entries_of_others();
    });
    find_in(send_items(communicator_, out).items);
    for (const Pair& pair : communicator_.all_gather(worst_))
      if (pair.is_worse_than(worst_)) worst_ = pair;
    return worst_;
  }

  /// Every entry and its mirror image become their mean. Collective.
  void average() {
    communicator_.run_agreed([&] {
      part_.averaged.assign(static_cast<std::size_t>(part_.csr.rows), 0.0);
      part_.csr.change_values([&](auto values) { average_stored(values); });
      std::erase_if(missing_, [](const Entry& entry) { return entry.value == 0; });
      if (!missing_.empty()) store_missing();
    });
    part_.nnz = communicator_.all_reduce(part_.csr.nnz(), Reduction::sum);
  }

 private:
  std::int64_t begin_of(std::int64_t i) const { return part_.csr.row_ptr[static_cast<std::size_t>(i)]; }
  std::int64_t number(std::int64_t i) const { return global_row(part_, first_, i); }
  std::int64_t local(std::int64_t number) const { return local_[static_cast<std::size_t>(number - first_)]; }
  double scale(std::int64_t i) const { return scales_[static_cast<std::size_t>(i)]; }
  bool is_own(std::int64_t column) const { return column >= first_ && column < end_; }
  /// Entry n of the entries of a row by ascending columns.
  std::int64_t at(std::int64_t n) const { return order_.empty() ? n : order_[static_cast<std::size_t>(n)]; }

  void prepare() {
    const CompactCsr& csr = part_.csr;
    require_host_memory(16 * csr.nnz() + 24 * csr.rows, "the mirror images of the matrix's entries");
    const ColumnView columns = csr.columns();
    const ValueView values = csr.values();
    mirrored_.resize(columns.size());
    std::fill(mirrored_.begin(), mirrored_.end(), kMissing);
    local_.resize(static_cast<std::size_t>(csr.rows)), scales_.resize(local_.size());
    std::atomic<bool> ascending = true;
    parallel_ranges(csr.rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        local_[static_cast<std::size_t>(number(i) - first_)] = i;
        double scale = 0;
        for (std::int64_t k = begin_of(i); k < begin_of(i + 1); ++k) {
          const auto place = static_cast<std::size_t>(k);
          scale = std::max(scale, std::abs(static_cast<double>(values[place])));
          if (k > begin_of(i) && columns[place - 1] > columns[place]) ascending = false;
        }
        scales_[static_cast<std::size_t>(i)] = scale;
      }
    });
    if (ascending) return;
    order_.resize(columns.size());
    parallel_ranges(csr.rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
      std::iota(order_.begin() + begin_of(begin), order_.begin() + begin_of(end), begin_of(begin));
      for (std::int64_t i = begin; i < end; ++i)
        std::sort(order_.begin() + begin_of(i), order_.begin() + begin_of(i + 1), [&](std::int64_t a, std::int64_t b) {
          return columns[static_cast<std::size_t>(a)] < columns[static_cast<std::size_t>(b)];
        });
    });
  }

  /// The place of the entry of local row i in this column, or -1.
  std::int64_t place_of(std::int64_t i, std::int64_t column) const {
    const ColumnView columns = part_.csr.columns();
    std::int64_t low = begin_of(i), high = begin_of(i + 1);
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (columns[static_cast<std::size_t>(at(middle))] < column) low = middle + 1;
      else high = middle;
    }
    return low < begin_of(i + 1) && columns[static_cast<std::size_t>(at(low))] == column ? at(low) : -1;
  }

  struct Found {
    Pair worst;
    std::vector<Entry> missing;
  };

  /// The mirror image of `entry` lies on this rank, if it is stored.
  void take(const Entry& entry, Found& found) {
    const std::int64_t i = local(entry.column), place = place_of(i, entry.row);
    double mine = kMissing;
    if (place >= 0) {
      mine = part_.csr.values()[static_cast<std::size_t>(place)];
      mirrored_[static_cast<std::size_t>(place)] = entry.value;
    } else {
      found.missing.push_back({entry.column, entry.row, entry.value, 0});
    }
    const double difference = relative_difference(entry.value, place >= 0 ? mine : 0, entry.scale, scale(i));
    const Pair pair(entry.row, entry.column, entry.value, mine, difference);
    if (pair.is_worse_than(found.worst)) found.worst = pair;
  }

  void add(Found& found) {
    const std::lock_guard lock(mutex_);
    if (found.worst.is_worse_than(worst_)) worst_ = found.worst;
    missing_.insert(missing_.end(), found.missing.begin(), found.missing.end());
  }

  void find_own() {
    parallel_ranges(part_.csr.rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
      Found found;
      for (std::int64_t i = begin; i < end; ++i)
        for_each_entry(part_, first_, i, i + 1, [&](std::int64_t row, std::int64_t column, double value) {
          if (is_own(column)) take({row, column, value, scale(i)}, found);
        });
      add(found);
    });
  }

  void find_in(const HostVector<Entry>& entries) {
    parallel_ranges(std::ssize(entries), kGrain, [&](std::int64_t begin, std::int64_t end) {
      Found found;
      for (std::int64_t n = begin; n < end; ++n) take(entries[static_cast<std::size_t>(n)], found);
      add(found);
    });
  }

  /// Those in columns of other ranks, by rank.
  ItemsByRank<Entry> entries_of_others() const {
    std::vector<Entry> out;
    std::int64_t count = 0;
    const auto visit = [&](const auto& use) {
      for (std::int64_t i = 0; i < part_.csr.rows; ++i)
        for_each_entry(part_, first_, i, i + 1, [&](std::int64_t row, std::int64_t column, double value) {
          if (!is_own(column)) use(Entry{row, column, value, scale(i)});
        });
    };
    visit([&](const Entry&) { ++count; });
    require_host_memory(2 * static_cast<std::int64_t>(sizeof(Entry)) * count, "entries in columns of other ranks");
    out.reserve(static_cast<std::size_t>(count));
    visit([&](const Entry& entry) { out.push_back(entry); });
    return sort_by_rank(std::span<const Entry>(out), communicator_.size(), [&](const Entry& entry) {
      return std::upper_bound(part_.y.starts.begin() + 1, part_.y.starts.end() - 1, entry.column) -
             (part_.y.starts.begin() + 1);
    });
  }

  template <class Value>
  void average_stored(std::span<Value> values) {
    const ColumnView columns = part_.csr.columns();
    parallel_ranges(part_.csr.rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        for (auto k = static_cast<std::size_t>(begin_of(i)); k < static_cast<std::size_t>(begin_of(i + 1)); ++k) {
          if (columns[k] == number(i)) continue;
          const double other = std::isnan(mirrored_[k]) ? 0 : mirrored_[k];
          const auto mean = static_cast<Value>(std::midpoint(static_cast<double>(values[k]), other));
          changed(i) += std::abs(static_cast<double>(mean) - static_cast<double>(values[k]));
          values[k] = mean;
        }
    });
  }

  double& changed(std::int64_t i) {
    return part_.averaged[static_cast<std::size_t>(part_.y.place(static_cast<std::size_t>(i)))];
  }

  /// Half of each missing entry, at the end of its row: the mean of it and 0.
  void store_missing() {
    const CompactCsr& old = part_.csr;
    const ValueType type = old.has_narrow_values() ? ValueType::f32 : ValueType::f64;
    const std::int64_t nnz = old.nnz() + std::ssize(missing_);
    require_host_memory(CompactCsr::entry_bytes(old.cols, type) * nnz + 8 * old.rows, "entries of symmetric storage");
    std::sort(missing_.begin(), missing_.end(), [&](const Entry& a, const Entry& b) {
      return std::pair(local(a.row), a.column) < std::pair(local(b.row), b.column);
    });
    HostVector<std::int64_t> offsets(old.row_ptr.size());
    std::fill(offsets.begin(), offsets.end(), std::int64_t{0});
    for (const Entry& entry : missing_) ++offsets[static_cast<std::size_t>(local(entry.row)) + 1];
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
    const HostVector<std::int64_t> more = offsets;
    for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] += old.row_ptr[i];
    CompactCsr grown(old.cols, std::move(offsets), type);
    const auto fill = [&](auto to, const auto& from, const auto& of_missing) {
      using To = std::remove_reference_t<decltype(to[0])>;
      for (std::size_t i = 0; i < static_cast<std::size_t>(old.rows); ++i) {
        auto at = static_cast<std::size_t>(grown.row_ptr[i]);
        for (auto k = static_cast<std::size_t>(old.row_ptr[i]); k < static_cast<std::size_t>(old.row_ptr[i + 1]); ++k)
          to[at++] = static_cast<To>(from[k]);
        for (auto k = static_cast<std::size_t>(more[i]); k < static_cast<std::size_t>(more[i + 1]); ++k)
          to[at++] = static_cast<To>(of_missing(missing_[k]));
      }
    };
    grown.change_columns([&](auto to) { fill(to, old.columns(), [](const Entry& entry) { return entry.column; }); });
    grown.change_values([&](auto to) { fill(to, old.values(), [](const Entry& entry) { return entry.value / 2; }); });
    for (const Entry& entry : missing_) changed(local(entry.row)) += std::abs(entry.value / 2);
    part_.csr = std::move(grown);
    renumber_values();
  }

  /// Rows have other lengths: where their values begin, in the order of the source.
  void renumber_values() {
    HostVector<std::int64_t> starts(static_cast<std::size_t>(part_.csr.rows) + 1);
    starts[0] = 0;
    for (std::int64_t i = 0; i < part_.csr.rows; ++i)
      starts[static_cast<std::size_t>(number(i) - first_) + 1] = begin_of(i + 1) - begin_of(i);
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    for (std::int64_t i = 0; i < part_.csr.rows; ++i)
      part_.value_starts[static_cast<std::size_t>(i)] = starts[static_cast<std::size_t>(number(i) - first_)];
  }

  LoadedPart& part_;
  Communicator& communicator_;
  std::int64_t first_, end_;        ///< rows of this rank, as columns are counted
  HostVector<std::int64_t> local_;  ///< their places in the part
  HostVector<std::int64_t> order_;  ///< places of entries, each row by ascending columns; empty: as they are
  HostVector<double> scales_;       ///< of the part's rows
  HostVector<double> mirrored_;     ///< a_ji for each a_ij, or kMissing; the diagonal aside
  std::vector<Entry> missing_;      ///< rows of this rank do not store these, and the value is that of the mirror image
  Pair worst_;
  std::mutex mutex_;
};

/// The original number of a row. Collective.
std::int64_t original_number(const LoadedPart& part, std::int64_t number, Communicator& communicator) {
  const std::int64_t first = part.y.starts[static_cast<std::size_t>(communicator.rank())];
  std::int64_t original = -1;
  for (std::int64_t i = 0; i < part.csr.rows; ++i)
    if (global_row(part, first, i) == number) original = part.y.ids[static_cast<std::size_t>(i)];
  return communicator.all_reduce(original, Reduction::max);
}

std::string text_of(double value) { return std::isnan(value) ? "is not stored" : fmt::format("is {}", value); }

/// Throws the same error on all ranks, which is reported once.
void refuse(Communicator& communicator, ErrorKind kind, const std::string& text) {
  communicator.run_agreed([&] {
    if (communicator.rank() == 0) throw Error(kind, text, "storage");
  });
}

}  // namespace

void make_symmetric(LoadedPart& part, ValueType type, Communicator& communicator) {
  if (part.rows != part.cols)
    refuse(communicator, ErrorKind::usage,
           fmt::format("symmetric storage needs a square matrix; this one is {} × {}", part.rows, part.cols));
  if (imbalance(part, part.y.starts[static_cast<std::size_t>(communicator.rank())], communicator) == 0) return;
  Mirror mirror(part, communicator);
  const Pair worst = mirror.find();
  const ValueType rounded_to = sum_type(type);
  if (worst.difference <= symmetry_tolerance(rounded_to)) {  // false for NaN
    mirror.average();
    part.symmetry_difference = worst.difference;
    return;
  }
  const std::int64_t i = original_number(part, worst.low, communicator), j = original_number(part, worst.high, communicator);
  refuse(
      communicator, ErrorKind::input,
      fmt::format("the matrix is not symmetric: entry ({}, {}) {}, but entry ({}, {}) {} (counted from 0). No pair differs "
                  "more; relative to the larger of both and of their rows it is {:.2g}, and up to {:g} counts as rounding. "
                  "Store all entries",
                  i, j, text_of(worst.above_diagonal), j, i, text_of(worst.below_diagonal), worst.difference,
                  symmetry_tolerance(rounded_to)));
}

}  // namespace shardmat
