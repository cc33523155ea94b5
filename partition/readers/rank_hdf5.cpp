#include "partition/readers/rank_hdf5.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/text.h"
#include "partition/files/rank_files.h"
#include "partition/readers/entry_reader.h"
#include "partition/readers/hdf5_kind.h"
#include "partition/readers/matlab_hdf5.h"
#include "partition/readers/reader_list.h"

namespace shardmat {
namespace rank_hdf5 {
namespace {

constexpr std::int64_t kBlock = 1 << 15;  ///< entries at a time
constexpr std::int64_t kMostSize = std::int64_t{1} << 58;

[[noreturn]] void fail(const std::string& place, const std::string& what) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", place, what));
}

bool is_rank_group(const std::string& name) {
  return name.starts_with("rank_") && name.size() > 5 && name.size() < 16 &&
         std::all_of(name.begin() + 5, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// What one rank wrote.
struct Part {
  std::filesystem::path file;
  std::string group;                     ///< "/rank_00003", or "" for the root of its own file
  std::int64_t first_row = 0, rows = 0;  ///< CSR
  std::int64_t entries = 0;
  bool csr = true;
  std::string place;  ///< "A.00003.h5", "A.h5: group /rank_00003"
};

std::string name_in(const std::string& group, const std::string& name) {
  return name.starts_with('/') ? name : group + "/" + name;
}

std::vector<std::string> objects_of(const std::string& group, const Map& map) {
  std::vector<std::string> names;
  if (!group.empty()) names.push_back(group);
  for (const std::string* one : {&map.rowptr, &map.rows, &map.columns, &map.values, &map.start})
    if (group.empty() || one->starts_with('/')) names.push_back(name_in(group, *one));
  return names;
}

/// The groups rank_00000 … of one file, in the order of their numbers.
std::vector<std::string> groups_of(const std::filesystem::path& path) {
  std::vector<std::pair<std::int64_t, std::string>> found;
  for (const std::string& name : Hdf5File::open(path).children("/"))
    if (is_rank_group(name)) found.emplace_back(std::stoll(name.substr(5)), "/" + name);
  std::sort(found.begin(), found.end());
  std::vector<std::string> groups;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].first != static_cast<std::int64_t>(i))
      fail(path.string(),
           fmt::format("the group of rank {} is missing, and {} is there; write all ranks", i, found[i].second));
    groups.push_back(found[i].second);
  }
  return groups;
}

/// An attribute of the group, or a dataset of one number; nothing without either.
std::optional<std::int64_t> number_of(const Hdf5File& file, const std::string& group, const std::string& name) {
  const std::string object = group.empty() ? "/" : group;
  if (!name.starts_with('/') && file.has_attribute(object, name)) return file.attribute<std::int64_t>(object, name);
  const std::string dataset = name_in(group, name);
  if (!file.has(dataset)) return std::nullopt;
  std::int64_t number = 0;
  const Hdf5Dataset values = file.dataset(dataset);
  if (values.size() != 1) fail(values.place(), "it must be one number");
  values.read(0, 1, &number);
  return number;
}

/// One rank's arrays, opened.
struct Arrays {
  Hdf5Dataset rows, columns, values;  ///< rows: pointers (CSR), or the row of each entry

  Arrays(const Part& part, const Map& map) {
    const Hdf5File file = Hdf5File::open(part.file, objects_of(part.group, map));
    rows = file.dataset(name_in(part.group, part.csr ? map.rowptr : map.rows));
    columns = file.dataset(name_in(part.group, map.columns));
    values = file.dataset(name_in(part.group, map.values));
  }
};

[[noreturn]] void fail_map(const std::string& place, const std::string& what) {
  throw Error(ErrorKind::input, place + ": " + what, "map");
}

Part open_part(const std::filesystem::path& path, const std::string& group, const Map& map, bool allow_start,
               std::int64_t next_row, bool& has_start) {
  Part part;
  part.file = path, part.group = group;
  part.place = group.empty() ? path.string() : fmt::format("{}: group {}", path.string(), group);
  const Hdf5File file = Hdf5File::open(path, objects_of(group, map));
  const auto has = [&](const std::string& name) { return file.has(name_in(group, name)); };
  part.csr = has(map.rowptr);
  if (!part.csr && !has(map.rows))
    fail_map(part.place, fmt::format("it has neither {} (CSR) nor {} (the row of each entry); name them, as "
                                     "rowptr=/A/ia,columns=/A/ja,values=/A/a",
                                     name_in(group, map.rowptr), name_in(group, map.rows)));
  for (const std::string* one : {&map.columns, &map.values})
    if (!has(*one))
      fail_map(part.place, fmt::format("it has no {}; name it, as {}=/A/a", name_in(group, *one),
                                       one == &map.columns ? "columns" : "values"));
  const Arrays arrays(part, map);
  part.entries = arrays.columns.size();
  for (const Hdf5Dataset* one : {&arrays.rows, &arrays.columns, &arrays.values})
    if (one->shape().size() > 1 && one->shape()[1] != 1) fail(one->place(), "it must have one dimension");
  if (arrays.values.type() == Hdf5Type::other) fail(arrays.values.place(), "its values are no real numbers");
  if (arrays.values.size() != part.entries || (!part.csr && arrays.rows.size() != part.entries))
    fail(part.place, fmt::format("it has {} columns, {} values{}; there must be as many of each", part.entries,
                                 arrays.values.size(), part.csr ? "" : fmt::format(" and {} rows", arrays.rows.size())));
  if (!part.csr) return part;
  part.rows = arrays.rows.size() - 1;
  if (part.rows < 0) fail(arrays.rows.place(), "it must have one more number than there are rows");
  const auto start = allow_start ? number_of(file, group, map.start) : std::nullopt;
  has_start = start.has_value();
  part.first_row = start.value_or(next_row);
  if (part.first_row < 0 || part.first_row > kMostSize - part.rows)
    fail(part.place, fmt::format("its first row is {}; the file is damaged", part.first_row));
  return part;
}

struct Parts {
  std::vector<Part> parts;
  std::int64_t rows = 0, cols = 0, entries = 0, bytes = 0;
};

/// Throws unless the rows of CSR parts follow one another without a gap, and without an overlap unless that is allowed.
void require_rows_in_order(std::vector<const Part*> parts, bool allow_overlap) {
  std::sort(parts.begin(), parts.end(), [](const Part* a, const Part* b) { return a->first_row < b->first_row; });
  std::int64_t next = 0;
  const Part* before = nullptr;
  for (const Part* part : parts) {
    if (part->rows == 0) continue;
    const bool overlap = part->first_row < next;
    if (part->first_row != next && !(overlap && allow_overlap))
      throw Error(
          ErrorKind::input,
          fmt::format("{}: its rows begin at {}, and those {} at {}; there is {}", part->place, part->first_row,
                      before == nullptr ? "of the matrix must begin" : "of " + before->place + " end",
                      before == nullptr ? 0 : next - 1,
                      overlap ? "an overlap; if entries of several ranks belong to one row, have them summed" : "a gap"),
          overlap ? "sum_duplicates" : "");
    next = std::max(next, part->first_row + part->rows);
    before = part;
  }
}

Parts open_parts(const std::filesystem::path& path, const Map& map, bool allow_overlap) {
  std::vector<std::pair<std::filesystem::path, std::string>> places;
  if (is_rank_pattern(path.string())) {
    for (const std::filesystem::path& file : rank_files(path.string())) places.emplace_back(file, "");
    if (places.empty()) fail(path.string(), "there is no file of this pattern for rank 0");
  } else {
    for (const std::string& group : groups_of(path)) places.emplace_back(path, group);
    if (places.empty()) places.emplace_back(path, "");  // one rank
  }
  Parts all;
  std::set<std::string> files;
  std::int64_t next_row = 0;
  int with_start = 0, of_csr = 0;
  for (const auto& [file, group] : places) {
    bool has_start = false;
    all.parts.push_back(open_part(file, group, map, true, next_row, has_start));
    const Part& part = all.parts.back();
    next_row = part.first_row + part.rows;
    with_start += has_start ? 1 : 0, of_csr += part.csr ? 1 : 0;
    all.entries += part.entries;
    all.rows = std::max(all.rows, part.first_row + part.rows);
    if (files.insert(file.string()).second) all.bytes += InputFile(file).size();
  }
  if (with_start != 0 && with_start != of_csr)
    fail(all.parts.front().place,
         fmt::format("{} of {} ranks say where their rows begin ({}); all or none must", with_start, of_csr, map.start));
  std::vector<const Part*> csr;
  for (const Part& part : all.parts)
    if (part.csr) csr.push_back(&part);
  require_rows_in_order(std::move(csr), allow_overlap);
  const Hdf5File first = Hdf5File::open(all.parts.front().file, objects_of(all.parts.front().group, map));
  const auto size = [&](const char* name) {
    const std::string object = all.parts.front().group.empty() ? "/" : all.parts.front().group;
    return first.has_attribute(object, name) ? first.attribute<std::int64_t>(object, name) : 0;
  };
  all.rows = std::max(all.rows, size("rows"));
  all.cols = size("cols");
  return all;
}

/// Rank 0 reads the arrays of all parts.
class RankEntries final : public EntryReader {
 public:
  RankEntries(const std::filesystem::path& path, const ReadOptions& options, const ReadLimits& limits)
      : map_(parse_map(options.choices.map)),
        limits_(limits),
        sum_duplicates_(options.choices.sum_duplicates),
        all_(open_parts(path, map_, sum_duplicates_)),
        first_(all_.parts.front().file) {
    find_sizes();
  }

  std::int64_t rows() const override { return all_.rows; }
  std::int64_t cols() const override { return all_.cols; }
  std::int64_t most_entries() const override { return all_.entries; }
  std::int64_t bytes_asked() const override {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 32;
    return std::max(all_.rows, all_.entries) > kMost ? std::numeric_limits<std::int64_t>::max()
                                                     : 16 * all_.rows + 16 * all_.entries;
  }
  const InputFile& file() const override { return first_; }
  std::int64_t file_bytes() const override { return all_.bytes; }
  bool is_divisible() const override { return false; }
  bool needs_validation() const override { return true; }
  void require_promised(std::int64_t) const override {}
  void fail(const TextFault& fault) override { rank_hdf5::fail(all_.parts.front().place, fault.what); }

  std::int64_t count(const FileShare&, const UseCounts& use, const Progress& after_batch) override {
    std::vector<RowCount> counts;
    for_each_block(false, "count entries", after_batch, [&](const HostVector<std::int64_t>& rows, const auto&, const auto&) {
      counts.clear();
      for (const std::int64_t row : rows) {
        if (!counts.empty() && counts.back().row == row) ++counts.back().count;
        else counts.push_back({row, 1});
      }
      use(counts);
    });
    return all_.entries;
  }

  void read(const FileShare&, const UseEntries& use, const Progress& after_batch) override {
    std::vector<MatrixEntry> entries;
    for_each_block(true, "read entries", after_batch,
                   [&](const HostVector<std::int64_t>& rows, const HostVector<std::int64_t>& columns,
                       const HostVector<double>& values) {
                     entries.clear();
                     for (std::size_t k = 0; k < rows.size(); ++k) entries.push_back({rows[k], columns[k], values[k]});
                     use(entries);
                   });
    first_.require_unchanged();
  }

 private:
  /// What the entries need, if the files do not say it; and whether two ranks have an entry of one row.
  void find_sizes() {
    const bool cols_given = all_.cols > 0;
    std::int64_t rows = all_.rows, cols = all_.cols;
    std::vector<std::pair<std::int64_t, const Part*>> owners;  // of rows in COO
    for (const Part& part : all_.parts) {
      const Arrays arrays(part, map_);
      std::int64_t least = kMostSize, most = -1;
      in_blocks(part, [&](std::int64_t first, std::int64_t count) {
        numbers_.resize(static_cast<std::size_t>(count));
        arrays.columns.read(first, count, numbers_.data());
        for (const std::int64_t col : numbers_) {
          if (col < 0 || col > kMostSize || (cols_given && col >= all_.cols))
            rank_hdf5::fail(arrays.columns.place(),
                            fmt::format("it has the column {}, which is out of range; columns are global, from 0", col));
          cols = std::max(cols, col + 1);
        }
        if (part.csr) return;
        arrays.rows.read(first, count, numbers_.data());
        for (const std::int64_t row : numbers_) {
          if (row < 0 || row > kMostSize)
            rank_hdf5::fail(arrays.rows.place(), fmt::format("it has the row {}, which is out of range", row));
          least = std::min(least, row), most = std::max(most, row);
        }
      });
      rows = std::max(rows, most + 1);
      if (!part.csr && most >= 0) ranges_.push_back({least, most, &part});
    }
    all_.rows = rows, all_.cols = cols;
    if (!sum_duplicates_) require_disjoint();
  }

  /// Rows of COO parts must not lie among those of others, unless duplicates may be summed.
  void require_disjoint() {
    std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.least < b.least; });
    for (std::size_t i = 1; i < ranges_.size(); ++i)
      if (ranges_[i].least <= ranges_[i - 1].most)
        throw Error(
            ErrorKind::input,
            fmt::format("{}: its rows {} to {} overlap those of {}, {} to {}; if entries of several ranks belong to one "
                        "row, have them summed",
                        ranges_[i].part->place, ranges_[i].least, ranges_[i].most, ranges_[i - 1].part->place,
                        ranges_[i - 1].least, ranges_[i - 1].most),
            "sum_duplicates");
  }

  template <class Use>
  void in_blocks(const Part& part, Use&& use) const {
    const std::int64_t block = std::clamp<std::int64_t>(limits_.batch_bytes / 24, 1, kBlock);
    for (std::int64_t first = 0; first < part.entries; first += block) use(first, std::min(block, part.entries - first));
  }

  /// Calls use(rows, columns, values) for blocks of entries.
  template <class Use>
  void for_each_block(bool with_values, std::string_view phase, const Progress& after_batch, Use&& use) {
    HostVector<std::int64_t> rows, columns, pointers;
    HostVector<double> values;
    std::int64_t done = 0;
    for (const Part& part : all_.parts) {
      const Arrays arrays(part, map_);
      if (part.csr) read_pointers(part, arrays.rows, pointers);
      std::size_t row = 0;
      in_blocks(part, [&](std::int64_t first, std::int64_t count) {
        rows.resize(static_cast<std::size_t>(count));
        if (part.csr) {
          for (std::int64_t k = 0; k < count; ++k) {
            while (pointers[row + 1] <= first + k) ++row;
            rows[static_cast<std::size_t>(k)] = part.first_row + static_cast<std::int64_t>(row);
          }
        } else {
          arrays.rows.read(first, count, rows.data());
          require_below(arrays.rows, rows, all_.rows);
        }
        if (with_values) {
          columns.resize(rows.size());
          values.resize(rows.size());
          arrays.columns.read(first, count, columns.data());
          require_below(arrays.columns, columns, all_.cols);
          arrays.values.read(first, count, values.data());
        }
        use(rows, columns, values);
        report(after_batch, phase, done += count, all_.entries);
      });
    }
  }

  /// Again, for the file may have been changed meanwhile.
  static void require_below(const Hdf5Dataset& dataset, const HostVector<std::int64_t>& numbers, std::int64_t end) {
    for (const std::int64_t number : numbers)
      if (number < 0 || number >= end)
        rank_hdf5::fail(dataset.place(), fmt::format("it has {}, which is out of range [0, {})", number, end));
  }

  void read_pointers(const Part& part, const Hdf5Dataset& dataset, HostVector<std::int64_t>& pointers) const {
    limits_.require_memory(8 * (part.rows + 1), part.file);
    pointers.resize(static_cast<std::size_t>(part.rows) + 1);
    dataset.read(0, part.rows + 1, pointers.data());
    if (pointers.front() != 0 || pointers.back() != part.entries || !std::is_sorted(pointers.begin(), pointers.end()))
      rank_hdf5::fail(dataset.place(), fmt::format("it must ascend from 0 to the rank's {} entries", part.entries));
  }

  struct Range {
    std::int64_t least, most;
    const Part* part;
  };

  Map map_;
  ReadLimits limits_;
  bool sum_duplicates_;
  Parts all_;
  InputFile first_;
  HostVector<std::int64_t> numbers_;
  std::vector<Range> ranges_;  ///< of rows in COO
};

}  // namespace

Map parse_map(const std::string& text) {
  Map map;
  if (text.empty()) return map;
  map.given = true;
  bool rowptr = false, rows = false, columns = false, values = false;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.size(), text.find(',', begin));
    const std::string pair = text.substr(begin, end - begin);
    const std::size_t equals = pair.find('=');
    const std::string key = pair.substr(0, equals), name = equals == std::string::npos ? "" : pair.substr(equals + 1);
    std::string* const to = key == "rowptr"    ? (rowptr = true, &map.rowptr)
                            : key == "rows"    ? (rows = true, &map.rows)
                            : key == "columns" ? (columns = true, &map.columns)
                            : key == "values"  ? (values = true, &map.values)
                            : key == "start"   ? &map.start
                                               : nullptr;
    if (to == nullptr || name.empty())
      throw Error(
          ErrorKind::usage,
          fmt::format("'{}' does not map an array; write rowptr=NAME (CSR) or rows=NAME, columns=NAME, values=NAME and, "
                      "if ranks say where their rows begin, start=NAME, with commas between them",
                      pair),
          "map");
    *to = name;
    begin = end + 1;
  }
  if (!columns || !values || rowptr == rows)
    throw Error(ErrorKind::usage, "a map must name columns, values, and one of rowptr (CSR) and rows", "map");
  if (rows) map.rowptr = "/no pointers";  // an array of the usual name is something else
  return map;
}

bool is_rank_hdf5(const std::filesystem::path& path) {
  if (is_rank_pattern(path.string())) return has_hdf5_suffix(path) || path.extension() == ".hdf";
  if (!matlab_hdf5::has_signature(path)) return false;
  try {
    const std::vector<std::string> names = Hdf5File::open(path).children("/");
    return std::any_of(names.begin(), names.end(), is_rank_group);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace rank_hdf5

bool accepts_rank_hdf5(const std::filesystem::path& path) { return rank_hdf5::is_rank_hdf5(path); }

std::unique_ptr<EntryReader> open_rank_hdf5_entries(const std::filesystem::path& path, const ReadOptions& options,
                                                    const ReadLimits& limits) {
  return std::make_unique<rank_hdf5::RankEntries>(path, options, limits);
}

}  // namespace shardmat
