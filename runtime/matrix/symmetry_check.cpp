#include "runtime/matrix/symmetry_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

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
  return first_column + part.local_order[static_cast<std::size_t>(i)];
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
  parallel_ranges(part.csr.rows, 1 << 12, [&](std::int64_t begin, std::int64_t end) {
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

/// The first row that differs from the column of its number.
std::int64_t first_unequal_row(const LoadedPart& part, std::int64_t first_column, Communicator& communicator) {
  communicator.together([&] { require_host_memory(8 * part.cols, "the search for entries that are not symmetric"); });
  HostVector<std::int64_t> sums(static_cast<std::size_t>(part.cols));
  std::fill(sums.begin(), sums.end(), 0);
  for_each_entry(part, first_column, 0, part.csr.rows, [&](std::int64_t row, std::int64_t column, double value) {
    const auto hash = static_cast<std::int64_t>(hash_of(row, column, value) >> 32);  // sums of these do not overflow
    sums[static_cast<std::size_t>(row)] += hash;
    sums[static_cast<std::size_t>(column)] -= hash;
  });
  communicator.all_reduce(std::span<std::int64_t>(sums), Reduction::sum);
  const auto unequal = std::find_if(sums.begin(), sums.end(), [](std::int64_t sum) { return sum != 0; });
  return unequal == sums.end() ? -1 : unequal - sums.begin();
}

/// An entry of the row in question, or of the column of the same number.
struct Entry {
  std::int64_t other = 0;  ///< its column, or its row
  double value = 0;
  std::int64_t in_row = 0;  ///< 1: an entry of the row
};

/// Entries of a row and of the column of the same number, from all ranks, by their other index.
std::vector<Entry> entries_of(const LoadedPart& part, std::int64_t first_column, std::int64_t number,
                              Communicator& communicator) {
  std::vector<Entry> mine;
  for_each_entry(part, first_column, 0, part.csr.rows, [&](std::int64_t row, std::int64_t column, double value) {
    if (row == number) mine.push_back({column, value, 1});
    if (column == number) mine.push_back({row, value, 0});
  });
  const char* bytes = reinterpret_cast<const char*>(mine.data());
  std::vector<Entry> all;
  for (const std::string& text : communicator.all_gather(std::string(bytes, mine.size() * sizeof(Entry)))) {
    std::vector<Entry> of_rank(text.size() / sizeof(Entry));
    if (!text.empty()) std::memcpy(of_rank.data(), text.data(), text.size());
    all.insert(all.end(), of_rank.begin(), of_rank.end());
  }
  std::sort(all.begin(), all.end(),
            [](const Entry& a, const Entry& b) { return a.other != b.other ? a.other < b.other : a.in_row > b.in_row; });
  return all;
}

/// The first pair that differs: an entry of the row, and one of the column.
struct Difference {
  std::int64_t other = 0;
  std::optional<double> in_row, in_column;
};

Difference first_difference(const std::vector<Entry>& entries) {
  for (std::size_t k = 0; k < entries.size(); ++k) {
    const Entry& entry = entries[k];
    const bool paired = k + 1 < entries.size() && entries[k + 1].other == entry.other;
    if (!paired && entry.in_row != 0) return {entry.other, entry.value, std::nullopt};
    if (!paired) return {entry.other, std::nullopt, entry.value};
    if (std::bit_cast<std::uint64_t>(entry.value) != std::bit_cast<std::uint64_t>(entries[k + 1].value))
      return {entry.other, entry.value, entries[k + 1].value};
    ++k;
  }
  throw Error(ErrorKind::internal, "the hashes of a row and a column differ, but their entries do not");
}

/// The original number of a row. Collective.
std::int64_t original_number(const LoadedPart& part, std::int64_t first_column, std::int64_t number,
                             Communicator& communicator) {
  std::int64_t original = -1;
  for (std::int64_t i = 0; i < part.csr.rows; ++i)
    if (global_row(part, first_column, i) == number) original = part.row_ids[static_cast<std::size_t>(i)];
  return communicator.all_reduce(original, Reduction::max);
}

std::string text_of(const std::optional<double>& value) { return value ? fmt::format("is {}", *value) : "is not stored"; }

/// Throws the same error on all ranks, which is reported once.
void refuse(Communicator& communicator, ErrorKind kind, const std::string& text) {
  communicator.together([&] {
    if (communicator.rank() == 0) throw Error(kind, text, "storage");
  });
}

}  // namespace

void require_symmetric(const LoadedPart& part, Communicator& communicator) {
  if (part.rows != part.cols)
    refuse(communicator, ErrorKind::usage,
           fmt::format("symmetric storage needs a square matrix; this one is {} × {}", part.rows, part.cols));
  const std::int64_t first_column = part.x_starts[static_cast<std::size_t>(communicator.rank())];
  if (imbalance(part, first_column, communicator) == 0) return;
  const std::int64_t number = first_unequal_row(part, first_column, communicator);
  if (number < 0) refuse(communicator, ErrorKind::input, "the matrix is not symmetric; store all entries");
  const Difference difference = first_difference(entries_of(part, first_column, number, communicator));
  const std::int64_t i = original_number(part, first_column, number, communicator),
                     j = original_number(part, first_column, difference.other, communicator);
  refuse(communicator, ErrorKind::input,
         fmt::format("the matrix is not symmetric: entry ({}, {}) {}, but entry ({}, {}) {} (counted from 0); store all "
                     "entries",
                     i, j, text_of(difference.in_row), j, i, text_of(difference.in_column)));
}

}  // namespace shardmat
