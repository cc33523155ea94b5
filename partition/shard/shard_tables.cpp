#include "partition/shard/shard_tables.h"
#include "partition/readers/complex_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "partition/hdf5/binsparse.h"
#include "partition/readers/hdf5_kind.h"

namespace shardmat {
namespace {

namespace format = shard_format;

[[noreturn]] void reject(const Hdf5File& file, const std::string& why) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", file.path(), why));
}

constexpr const char* kRewrite = "make the file again from its source with `shardmat partition`";

/// Sizes from the descriptor; refuses the Binsparse matrices that are not plain real CSR.
void read_descriptor(const Hdf5File& file, ShardTables& tables) {
  if (!file.has_attribute(format::kRoot, format::kDescriptor)) reject(file, why_no_matrix(file));
  const binsparse::Descriptor found = binsparse::read_descriptor(file, format::kRoot);
  if (found.complex) reject(file, complex_matrix_refused(file.path()));
  if (!found.plain())
    reject(file,
           fmt::format("is a Binsparse matrix of format {}{}{} and no shard file; make one with: shardmat partition {} "
                       "NEW.h5",
                       found.format, found.word.empty() ? "" : ", structure " + found.word,
                       found.iso ? ", values " + found.value_type : "", file.path()));
  tables.rows = found.rows, tables.cols = found.cols, tables.nnz = found.stored;
}

/// A dataset of `shape` and of integers (or of real numbers); anything else is refused.
Hdf5Dataset typed(const Hdf5File& file, const char* name, std::vector<std::int64_t> shape, bool integers) {
  Hdf5Dataset dataset = file.dataset(name);
  if (dataset.shape() != shape)
    throw Error(ErrorKind::input, fmt::format("{} has shape [{}] but must have [{}]", dataset.place(),
                                              fmt::join(dataset.shape(), ", "), fmt::join(shape, ", ")));
  const Hdf5Type type = dataset.type();
  const bool integer =
      type == Hdf5Type::i32 || type == Hdf5Type::i64 || type == Hdf5Type::u64 || type == Hdf5Type::other_integer;
  if (type == Hdf5Type::other || (integers && !integer))
    throw Error(ErrorKind::input, fmt::format("{} must hold {} numbers", dataset.place(), integers ? "whole" : "real"));
  return dataset;
}

void check_matrix(const Hdf5File& file, const ShardTables& tables) {
  const Hdf5Dataset pointers = typed(file, format::kPointers, {tables.rows + 1}, true);
  typed(file, format::kIndices, {tables.nnz}, true);
  typed(file, format::kValues, {tables.nnz}, false);
  std::int64_t first = 0, last = 0;
  pointers.read(0, 1, &first);
  pointers.read(tables.rows, 1, &last);
  if (first != 0 || last != tables.nnz)
    throw Error(ErrorKind::input,
                fmt::format("{} runs from {} to {} but must run from 0 to {}", pointers.place(), first, last, tables.nnz));
}

/// What the tables of a file may take together: much more than any file of ours has, and little for a small file.
class TableBudget {
 public:
  explicit TableBudget(const Hdf5File& file) : most_(kFree + kPerByte * std::min(file.bytes(), std::int64_t{1} << 50)) {}

  /// Before `entries` of 8 bytes are read. Throws Error(resources), or Error(input) naming `dataset`.
  void take(const Hdf5Dataset& dataset, std::int64_t entries) {
    const std::int64_t bytes = 8 * std::min(entries, most_);
    require_host_memory(bytes, dataset.place().c_str());
    taken_ += bytes;
    if (taken_ > most_)
      throw Error(ErrorKind::input,
                  fmt::format("{} and the other tables are larger than a file of this size can need; it is damaged, or made "
                              "to take all memory",
                              dataset.place()));
  }

 private:
  static constexpr std::int64_t kFree = 1 << 20, kPerByte = 8;
  std::int64_t most_, taken_ = 0;
};

/// Reads an int64 table that must rise from 0 to `last` (strictly or not).
std::vector<std::int64_t> read_starts(const Hdf5File& file, const std::string& name, std::int64_t last, bool strictly,
                                      TableBudget& budget) {
  const Hdf5Dataset dataset = file.dataset(name);
  if (dataset.shape().size() != 1 || dataset.type() != Hdf5Type::i64 || dataset.size() == 0)
    throw Error(ErrorKind::input, fmt::format("{} must be a list of int64", dataset.place()));
  budget.take(dataset, dataset.size());
  std::vector<std::int64_t> starts(static_cast<std::size_t>(dataset.size()));
  dataset.read(0, dataset.size(), starts.data());
  for (std::size_t i = 0; i + 1 < starts.size(); ++i)
    if (starts[i + 1] < starts[i] + (strictly ? 1 : 0))
      throw Error(ErrorKind::input, fmt::format("{}: entry {} is {} after {}; {}", dataset.place(), i + 1, starts[i + 1],
                                                starts[i], kRewrite));
  if (starts.front() != 0 || starts.back() != last)
    throw Error(ErrorKind::input, fmt::format("{} runs from {} to {} but must run from 0 to {}; {}", dataset.place(),
                                              starts.front(), starts.back(), last, kRewrite));
  return starts;
}

void read_checksums(const Hdf5File& file, ShardTables& tables, TableBudget& budget) {
  tables.block_rows = read_starts(file, format::kBlockRows, tables.rows, true, budget);
  const auto blocks = static_cast<std::int64_t>(tables.block_rows.size()) - 1;
  const Hdf5Dataset dataset = typed(file, format::kChecksums, {blocks, 3}, true);
  budget.take(dataset, 4 * blocks);  // with those of the permutation
  tables.checksums.resize(static_cast<std::size_t>(blocks));
  dataset.read(0, blocks, reinterpret_cast<std::uint64_t*>(tables.checksums.data()));
  tables.permuted = file.has(format::kPermutation);
  if (tables.permuted) {
    typed(file, format::kPermutation, {tables.rows}, true);
    tables.permutation_checksum = file.attribute<std::uint64_t>(format::kPermutation, "checksum");
    if (file.has(format::kPermutationChecksums)) {
      tables.permutation_checksums.resize(static_cast<std::size_t>(blocks));
      typed(file, format::kPermutationChecksums, {blocks}, true).read(0, blocks, tables.permutation_checksums.data());
    }
  }
  tables.fingerprint = file.attribute<std::uint64_t>(format::kGroup, "fingerprint");
  if (tables.fingerprint !=
      format::fingerprint(tables.rows, tables.cols, tables.nnz, tables.permutation_checksum, tables.checksums))
    reject(file, fmt::format("{} does not agree with the fingerprint of {}: the table is damaged or of another matrix; {}",
                             format::kChecksums, format::kGroup, kRewrite));
}

StoredPartition read_partition(const Hdf5File& file, const std::string& group, const ShardTables& tables,
                               TableBudget& budget) {
  if (file.attribute<std::uint64_t>(group, "fingerprint") != tables.fingerprint)
    reject(file, fmt::format("the partition table {} was made for another matrix; {}", group, kRewrite));
  StoredPartition stored;
  stored.partition.method = file.string_attribute(group, "method");
  stored.partition.row_starts = read_starts(file, group + format::kRowStarts, tables.rows, false, budget);
  const std::int64_t parts = file.attribute<std::int64_t>(group, "parts");
  if (parts != static_cast<std::int64_t>(stored.partition.row_starts.size()) - 1 || parts < 1 ||
      group != format::partition_group(stored.partition.method, parts))
    reject(file, fmt::format("the partition table {} has {} parts of method '{}', which is not what its name says; {}",
                             group, stored.partition.row_starts.size() - 1, stored.partition.method, kRewrite));
  if (file.attribute<std::uint64_t>(group, "checksum") != format::checksum(stored.partition.row_starts))
    reject(file,
           fmt::format("{}{}: the checksum differs, so the table is damaged; {}", group, format::kRowStarts, kRewrite));
  format::for_each_quality_field(stored.quality, [&](const char* name, auto& value) {
    value = file.attribute<std::decay_t<decltype(value)>>(group, name);
  });
  format::for_each_later_quality_field(stored.quality, [&](const char* name, std::int64_t& value) {
    value = file.has_attribute(group, name) ? file.attribute<std::int64_t>(group, name) : -1;
  });
  return stored;
}

RowOrder read_order(const Hdf5File& file, bool permuted) {
  if (!permuted) return RowOrder::as_source;
  if (!file.has_attribute(format::kGroup, "order")) return RowOrder::by_length;
  const std::string order = file.string_attribute(format::kGroup, "order");
  for (const RowOrder known : {RowOrder::by_length, RowOrder::rcm, RowOrder::graph})
    if (order == name(known)) return known;
  reject(file, fmt::format("has its rows in the unknown order '{}'; use a newer Shardmat", order));
}

void read_partitions(const Hdf5File& file, ShardTables& tables, TableBudget& budget) {
  for (const std::string& child : file.children(format::kPartitions))
    tables.partitions.push_back(read_partition(file, fmt::format("{}/{}", format::kPartitions, child), tables, budget));
  std::sort(tables.partitions.begin(), tables.partitions.end(), [](const StoredPartition& a, const StoredPartition& b) {
    return std::pair(a.partition.method, a.partition.parts()) < std::pair(b.partition.method, b.partition.parts());
  });
}

}  // namespace

ShardTables read_shard_tables(const Hdf5File& file) {
  ShardTables tables;
  tables.plain = !file.has(format::kGroup);
  if (!tables.plain) {
    const auto version = file.attribute<std::int64_t>(format::kGroup, "format_version");
    if (version < 1 || version > format::kVersion)
      reject(file, fmt::format("is a shard file of version {}, but this program reads versions up to {}; use a newer "
                               "Shardmat",
                               version, format::kVersion));
  }
  read_descriptor(file, tables);
  check_matrix(file, tables);
  if (tables.plain) return tables;
  const auto number = [&](const char* name) { return file.attribute<std::int64_t>(format::kGroup, name); };
  if (number("rows") != tables.rows || number("cols") != tables.cols || number("nnz") != tables.nnz)
    reject(file,
           fmt::format("{} speaks of a matrix of other sizes than the Binsparse descriptor; {}", format::kGroup, kRewrite));
  tables.sort_local = number("sort_local") != 0;
  if (file.has_attribute(format::kGroup, "node_block_size")) {
    tables.node_block_size = number("node_block_size");
    if (tables.node_block_size < 1 || tables.rows % tables.node_block_size != 0)
      reject(file,
             fmt::format("nodes of {} unknowns do not make {} rows; {}", tables.node_block_size, tables.rows, kRewrite));
  }
  tables.allow_nonfinite = number("allow_nonfinite") != 0;
  tables.how = file.string_attribute(format::kGroup, "how");
  tables.source = file.string_attribute(format::kGroup, "source");
  if (file.has_attribute(format::kGroup, "source_checksum"))
    tables.source_checksum = file.string_attribute(format::kGroup, "source_checksum");
  TableBudget budget(file);
  read_checksums(file, tables, budget);
  tables.order = read_order(file, tables.permuted);
  tables.has_unknowns = file.has(format::kUnknowns);
  if (tables.has_unknowns) {
    typed(file, format::kUnknowns, {tables.rows, 2}, true);
    tables.unknowns_checksum = file.attribute<std::uint64_t>(format::kUnknowns, "checksum");
  }
  read_partitions(file, tables, budget);
  return tables;
}

}  // namespace shardmat
