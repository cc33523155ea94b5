// Writes shard files: one pass over the row lengths, then one over the rows. While one thread writes a slice,
// others check it, hash it and measure the partitions, so that writing takes about as long as copying the
// file would.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"
#include "partition/files/atomic_file.h"
#include "partition/hdf5/shard_file_format.h"
#include "partition/hdf5/writer.h"
#include "partition/shard/shard_file.h"
#include "partition/shard/summed_table.h"
#include "partition/source/node_blocks.h"
#include "partition/source/ordered_source.h"

namespace shardmat {
namespace {

namespace format = shard_format;

std::string binsparse_descriptor(const RowSource& source, std::int64_t nnz) {
  const bool narrow = source.cols() <= format::kNarrowCols;
  const nlohmann::ordered_json descriptor = {
      {"binsparse",
       {{"version", format::kBinsparseVersion},
        {"format", "CSR"},
        {"shape", {source.rows(), source.cols()}},
        {"number_of_stored_values", nnz},
        {"data_types", {{"pointers_to_1", "int64"}, {"indices_1", narrow ? "int32" : "int64"}, {"values", "float64"}}}}}};
  return descriptor.dump();
}

std::int64_t matrix_bytes(const RowSource& source, std::int64_t nnz) {
  return 8 * (source.rows() + 1) + nnz * (source.cols() <= format::kNarrowCols ? 12 : 16);
}

/// What is stored of nodes.
struct StoredNodes {
  const NodeFacts& facts;
  std::shared_ptr<const UnknownList> unknowns;  ///< may be null
  std::vector<MidEdge> mid_edges;

  explicit StoredNodes(const NodeFacts& known) : facts(known), unknowns(known.unknowns()), mid_edges(known.mid_edges()) {}
  std::int64_t bytes(std::int64_t rows) const {
    return (unknowns ? 16 * rows : 0) + 24 * (facts.placed_nodes() + std::ssize(mid_edges)) +
           (facts.has_axes() ? 72 * facts.placed_nodes() : 0) + 8 * rows * facts.near_null_count();
  }
};

/// Fails before the first byte is written where the disk is known to be too small.
void require_disk_space(const std::filesystem::path& path, std::int64_t bytes) {
  std::error_code error;
  const auto directory = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const auto space = std::filesystem::space(directory, error);
  if (!error && static_cast<std::uintmax_t>(bytes) > space.available)
    throw Error(ErrorKind::resources,
                fmt::format("{} needs {} of disk but only {} is free in {}; free some or write elsewhere", path.string(),
                            human_bytes(static_cast<double>(bytes)), human_bytes(static_cast<double>(space.available)),
                            directory.string()));
}

/// One file being written.
class Writer {
 public:
  Writer(const AtomicFile& target, const RowSource& source, std::span<const std::int64_t> row_ptr, const StoredNodes& nodes,
         const WriteOptions& options)
      : source_(source),
        row_ptr_(row_ptr),
        nodes_(nodes),
        options_(options),
        file_(target, matrix_bytes(source, row_ptr.back()) + nodes.bytes(source.rows())) {
    const std::int64_t nnz = row_ptr.back();
    narrow_ = source.cols() <= format::kNarrowCols;
    file_.write_attribute(format::kRoot, format::kDescriptor, binsparse_descriptor(source, nnz));
    write_dataset(format::kPointers, row_ptr);
    indices_ = narrow_ ? file_.create_dataset<std::int32_t>(format::kIndices, {nnz})
                       : file_.create_dataset<std::int64_t>(format::kIndices, {nnz});
    values_ = file_.create_dataset<double>(format::kValues, {nnz});
    block_rows_ = format::block_rows(row_ptr);
    checksums_.resize(block_rows_.size() - 1);
    require_node_block_size(options.node_block_size, source.rows());
    node_block_size_ = options.node_block_size > 0 ? options.node_block_size : find_node_block_size(source);
    if (options.node_block_size > 1 && source.permuted()) require_nodes_in_order(options.node_block_size, source);
    for (const int parts : options.parts) {
      const bool known = std::any_of(partitions_.begin(), partitions_.end(),
                                     [&](const StoredPartition& p) { return p.partition.parts() == parts; });
      if (!known) partitions_.push_back({make_partition(options.method, row_ptr, parts, node_block_size_), {}});
    }
    for (const Partition& partition : options.partitions) partitions_.push_back({partition, {}});
    for (const StoredPartition& stored : partitions_) meters_.emplace_back(stored.partition, source.cols());
  }

  /// Streams the rows: whole blocks, about kSliceEntries nonzeros at a time.
  void write_matrix() {
    for (std::size_t first = 0, next = 0; first < checksums_.size(); first = next) {
      next = first + 1;
      while (next < checksums_.size() && at(block_rows_[next + 1]) - at(block_rows_[first]) <= kSliceEntries &&
             block_rows_[next + 1] - block_rows_[first] <= kSliceEntries)
        ++next;
      source_.visit_rows(block_rows_[first], block_rows_[next], [&](const CsrView& rows) {
        require_as_counted(block_rows_[first], rows);
        auto checked = std::async(std::launch::async, [&, threads = thread_count()] {
          const ThreadCount scope(threads);
          check_and_measure(first, next, rows);
        });
        write_slice(block_rows_[first], rows);
        checked.get();
      });
      report(options_.progress, "writing", at(block_rows_[next]), row_ptr_.back());
    }
  }

  /// Everything beside the matrix; then the file is complete and closed.
  void write_tables() {
    file_.create_group(format::kGroup);
    attribute("format_version", format::kVersion);
    attribute("rows", source_.rows());
    attribute("cols", source_.cols());
    attribute("nnz", row_ptr_.back());
    attribute("source", source_.name());
    if (!options_.source_checksum.empty()) attribute("source_checksum", options_.source_checksum);
    attribute("how", options_.how);
    attribute("sort_local", std::int64_t{options_.sort_local});
    attribute("node_block_size", node_block_size_);
    if (source_.permuted()) attribute("order", std::string(name(source_.row_order())));
    attribute("allow_nonfinite", std::int64_t{options_.allow_nonfinite});
    write_dataset(format::kBlockRows, block_rows_);
    file_.create_dataset<std::uint64_t>(format::kChecksums, {static_cast<std::int64_t>(checksums_.size()), 3})
        .write(0, static_cast<std::int64_t>(checksums_.size()), reinterpret_cast<const std::uint64_t*>(checksums_.data()));
    const std::uint64_t fingerprint =
        format::fingerprint(source_.rows(), source_.cols(), row_ptr_.back(), write_permutation(), checksums_);
    attribute("fingerprint", fingerprint);
    write_unknowns();
    write_node_facts();
    file_.create_group(format::kPartitions);
    for (std::size_t i = 0; i < partitions_.size(); ++i) {
      partitions_[i].quality = meters_[i].result();
      write_partition(partitions_[i], fingerprint);
    }
    indices_ = {};
    values_ = {};
    file_.close();
  }

  std::vector<StoredPartition> partitions_as_asked() const {
    std::vector<StoredPartition> result;
    for (const int parts : options_.parts)
      result.push_back(*std::find_if(partitions_.begin(), partitions_.end(),
                                     [&](const StoredPartition& p) { return p.partition.parts() == parts; }));
    return result;
  }

 private:
  std::int64_t at(std::int64_t row) const { return row_ptr_[static_cast<std::size_t>(row)]; }

  void write_dataset(const char* name, std::span<const std::int64_t> data) {
    const auto count = static_cast<std::int64_t>(data.size());
    file_.create_dataset<std::int64_t>(name, {count}).write(0, count, data.data());
  }
  template <class T>
  void attribute(const char* name, T value) {
    file_.write_attribute(format::kGroup, name, value);
  }

  /// Guards against a source that answers row_lengths and read_rows differently.
  void require_as_counted(std::int64_t first_row, const CsrView& rows) const {
    for (std::int64_t i = 0; i <= rows.rows; ++i)
      if (rows.row_ptr[static_cast<std::size_t>(i)] - rows.row_ptr[0] != at(first_row + i) - at(first_row))
        throw Error(ErrorKind::internal,
                    fmt::format("{}: row {} is not as long as it was counted", source_.name(), first_row + i - 1));
  }

  void check_and_measure(std::size_t first, std::size_t next, const CsrView& rows) {
    validate(rows, {options_.allow_nonfinite, block_rows_[first], source_.name()});
    const auto blocks = static_cast<std::int64_t>(next - first);
    parallel_tasks(blocks + static_cast<std::int64_t>(meters_.size()), [&](std::int64_t task) {
      if (task >= blocks) return meters_[static_cast<std::size_t>(task - blocks)].add(rows);
      const std::size_t block = first + static_cast<std::size_t>(task);
      const std::int64_t begin = block_rows_[block], end = block_rows_[block + 1];
      const auto skip = static_cast<std::size_t>(at(begin) - at(block_rows_[first]));
      const auto count = static_cast<std::size_t>(at(end) - at(begin));
      checksums_[block] =
          format::checksums(row_ptr_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin + 1)),
                            rows.col_idx.subspan(skip, count), rows.values.subspan(skip, count));
    });
  }

  void write_slice(std::int64_t first_row, const CsrView& rows) {
    const std::int64_t begin = at(first_row), count = rows.nnz();
    if (!narrow_) {
      rows.col_idx.visit([&](const auto& columns) { indices_.write(begin, count, columns.data()); });
    } else {
      // In pieces that stay in the cache between the conversion and the copy to the file.
      constexpr std::int64_t kPiece = 1 << 17;
      scratch_.resize(static_cast<std::size_t>(std::min(count, kPiece)));
      for (std::int64_t done = 0; done < count; done += kPiece) {
        const std::int64_t piece = std::min(kPiece, count - done);
        for (std::int64_t k = 0; k < piece; ++k)
          scratch_[static_cast<std::size_t>(k)] =
              static_cast<std::int32_t>(rows.col_idx[static_cast<std::size_t>(done + k)]);
        indices_.write(begin + done, piece, scratch_.data());
      }
    }
    rows.values.visit([&](const auto& values) { values_.write(begin, count, values.data()); });
  }

  /// Returns its checksum; 0 if the rows are in their original order.
  std::uint64_t write_permutation() {
    if (!source_.permuted()) return 0;
    const auto permutation = source_.permutation(0, source_.rows());
    write_dataset(format::kPermutation, permutation);
    const std::uint64_t checksum = format::checksum(permutation);
    file_.write_attribute(format::kPermutation, "checksum", checksum);
    std::vector<std::uint64_t> of_blocks;
    for (std::size_t block = 0; block < checksums_.size(); ++block)
      of_blocks.push_back(
          format::checksum(std::span(permutation)
                               .subspan(static_cast<std::size_t>(block_rows_[block]),
                                        static_cast<std::size_t>(block_rows_[block + 1] - block_rows_[block]))));
    const auto blocks = static_cast<std::int64_t>(of_blocks.size());
    file_.create_dataset<std::uint64_t>(format::kPermutationChecksums, {blocks}).write(0, blocks, of_blocks.data());
    return checksum;
  }

  void write_unknowns() {
    if (nodes_.unknowns == nullptr) return;
    const std::int64_t rows = std::ssize(*nodes_.unknowns);
    const auto numbers = format::numbers_of(*nodes_.unknowns);
    file_.create_dataset<std::int64_t>(format::kUnknowns, {rows, 2}).write(0, rows, numbers.data());
    file_.write_attribute(format::kUnknowns, "checksum", format::checksum(numbers));
  }

  void write_node_facts() {
    const NodeFacts& facts = nodes_.facts;
    write_summed_table<double>(file_, format::kCoordinates, facts.placed_nodes(), NodeFacts::kDimensions,
                               [&](std::int64_t begin, std::int64_t end) { return facts.coordinates(begin, end); });
    write_summed_table<double>(file_, format::kAxes, facts.has_axes() ? facts.placed_nodes() : 0, NodeFacts::kAxes,
                               [&](std::int64_t begin, std::int64_t end) { return facts.axes(begin, end); });
    write_summed_table<std::int64_t>(
        file_, format::kMidEdges, std::ssize(nodes_.mid_edges), 3, [&](std::int64_t begin, std::int64_t end) {
          const auto* const first = nodes_.mid_edges.data();
          return HostVector<std::int64_t>((first + begin)->data(), (first + begin)->data() + 3 * (end - begin));
        });
    write_summed_table<double>(file_, format::kNearNullVectors, facts.near_null_count() > 0 ? source_.rows() : 0,
                               facts.near_null_count(),
                               [&](std::int64_t begin, std::int64_t end) { return facts.near_null_vectors(begin, end); });
  }

  void write_partition(const StoredPartition& stored, std::uint64_t fingerprint) {
    const std::string group = format::partition_group(stored.partition.method, stored.partition.parts());
    file_.create_group(group);
    write_dataset((group + format::kRowStarts).c_str(), stored.partition.row_starts);
    file_.write_attribute(group, "method", stored.partition.method);
    file_.write_attribute(group, "parts", std::int64_t{stored.partition.parts()});
    file_.write_attribute(group, "fingerprint", fingerprint);
    file_.write_attribute(group, "checksum", format::checksum(stored.partition.row_starts));
    const auto write = [&](const char* name, const auto& value) { file_.write_attribute(group, name, value); };
    format::for_each_quality_field(stored.quality, write);
    format::for_each_later_quality_field(stored.quality, write);
  }

  const RowSource& source_;
  std::span<const std::int64_t> row_ptr_;
  const StoredNodes& nodes_;
  const WriteOptions& options_;
  Hdf5Writer file_;
  Hdf5OutputDataset indices_, values_;
  bool narrow_ = false;
  std::int64_t node_block_size_ = 1;
  HostVector<std::int32_t> scratch_;
  std::vector<std::int64_t> block_rows_;
  std::vector<format::BlockChecksums> checksums_;
  std::vector<StoredPartition> partitions_;
  std::vector<QualityMeter> meters_;
};

/// Throws Error(input) for more rows or columns than a reader of shard files accepts.
void require_readable_sizes(const RowSource& source) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  if (source.rows() > kMost || source.cols() > kMost)
    throw Error(ErrorKind::input, fmt::format("{}: it is {} × {}; a shard file has at most 2^60 rows and columns",
                                              source.name(), source.rows(), source.cols()));
}

}  // namespace

std::vector<StoredPartition> write_shard_file(const std::filesystem::path& path, const RowSource& source,
                                              const WriteOptions& options) {
  require_readable_sizes(source);
  AtomicFile target(path);
  HostVector<std::int64_t> row_ptr = read_row_pointers(source, options.progress);
  const int most_parts = options.parts.empty() ? 0 : *std::max_element(options.parts.begin(), options.parts.end());
  const std::unique_ptr<RowSource> sorted =
      make_ordered_source(source, row_ptr, options.order, most_parts, options.allow_nonfinite, options.progress);
  if (sorted) row_ptr = read_row_pointers(*sorted, {});
  const StoredNodes nodes(options.nodes != nullptr ? *options.nodes : source);
  require_disk_space(path, matrix_bytes(source, row_ptr.back()) + nodes.bytes(source.rows()));
  Writer writer(target, sorted ? *sorted : source, row_ptr, nodes, options);
  writer.write_matrix();
  writer.write_tables();
  target.commit();
  return writer.partitions_as_asked();
}

}  // namespace shardmat
