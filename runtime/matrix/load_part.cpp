#include "runtime/matrix/load_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "kernels/matrix/ordering.h"
#include "partition/shard/shard_file.h"
#include "partition/source/node_blocks.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/own_rows.h"
#include "runtime/matrix/put_on_maps.h"
#include "runtime/order/find_node_blocks.h"
#include "runtime/source/matrix_source.h"

namespace shardmat {
namespace {

constexpr int kLengthsTag = 11;

/// Row pointers of the whole matrix on rank 0 (empty elsewhere); each rank counts an even share of the rows.
std::vector<std::int64_t> gather_row_ptr(const RowSource& source, Communicator& communicator) {
  const auto shares = even_starts(source.rows(), communicator.size());
  const auto begin = shares[static_cast<std::size_t>(communicator.rank())],
             end = shares[static_cast<std::size_t>(communicator.rank()) + 1];
  std::vector<std::int64_t> row_ptr;
  const auto lengths = communicator.run_agreed([&] {
    const bool root = communicator.rank() == 0;
    require_host_memory(8 * (end - begin) + (root ? 8 * (source.rows() + 1) : 0), "counting the nonzeros of all rows");
    if (root) row_ptr.resize(static_cast<std::size_t>(source.rows()) + 1);
    return source.row_lengths(begin, end);
  });
  if (communicator.rank() != 0) {
    communicator.send(lengths.data(), lengths.size() * sizeof(std::int64_t), 0, kLengthsTag);
    return {};
  }
  std::copy(lengths.begin(), lengths.end(), row_ptr.begin() + 1);
  for (int rank = 1; rank < communicator.size(); ++rank) {
    const auto first = shares[static_cast<std::size_t>(rank)], last = shares[static_cast<std::size_t>(rank) + 1];
    communicator.receive(row_ptr.data() + first + 1, static_cast<std::size_t>(last - first) * sizeof(std::int64_t), rank,
                         kLengthsTag);
  }
  std::partial_sum(row_ptr.begin(), row_ptr.end(), row_ptr.begin());
  return row_ptr;
}

/// Rows of a part in the order of its places, which count from `begin`. The source checks them.
CompactCsr read_part(const RowSource& source, std::int64_t begin, std::span<const std::int64_t> lengths,
                     const RowMapParts& order, const PartOptions& options) {
  HostVector<std::int64_t> row_ptr(lengths.size() + 1), begins(order.places.empty() ? 0 : lengths.size());
  row_ptr[0] = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto row = static_cast<std::size_t>(order.place(i));
    row_ptr[i + 1] = row_ptr[i] + lengths[row];
    if (!begins.empty()) begins[row] = row_ptr[i];
  }
  CompactCsr part(source.cols(), std::move(row_ptr), options.type);
  const std::span<const std::int64_t> in_order = std::span<const std::int64_t>(part.row_ptr).first(lengths.size());
  RowTarget target{lengths, begins.empty() ? in_order : begins, nullptr, nullptr, nullptr, nullptr, options.type};
  part.change_columns([&](auto columns) {
    if constexpr (sizeof(columns[0]) == 4) target.narrow_columns = columns.data();
    else target.wide_columns = columns.data();
  });
  part.change_values([&](auto values) {
    if constexpr (sizeof(values[0]) == 4) target.narrow_values = values.data();
    else target.wide_values = values.data();
  });
  source.read_rows_into(begin, target, options.progress);
  return part;
}

/// Throws Error(resources) unless this rank's entries of x fit with their numbers, one column of them at least.
void require_x(std::int64_t entries, ValueType type) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::int64_t bytes = 8 + static_cast<std::int64_t>(size_of(type));
  require_host_memory(entries > kMost / bytes ? kMost : entries * bytes,
                      fmt::format("x of {} entries on a rank", human_count(entries)).c_str());
}

struct NodeBlocks {
  std::int64_t size = 1;
  const char* origin = "";
};

std::int64_t find_in_pattern(const RowSource& rows, Communicator& communicator) {
  if (rows.rows() != rows.cols()) return 1;
  const auto shares = even_starts(rows.rows(), communicator.size());
  const auto rank = static_cast<std::size_t>(communicator.rank());
  return find_node_block_size(rows, shares[rank], shares[rank + 1], communicator);
}

/// Collective: the unknowns of a node.
NodeBlocks find_nodes(const MatrixSource& source, Communicator& communicator, std::int64_t given) {
  const RowSource& rows = *source.rows;
  communicator.run_agreed([&] { require_node_block_size(given, rows.rows()); });
  if (given > 0 && (given == 1 || !rows.permuted() || source.by_part)) return {given, "given"};
  const std::int64_t known = rows.node_block_size();
  if (given > 0) {
    const std::int64_t found = known > 0 ? known : find_in_pattern(rows, communicator);
    communicator.run_agreed([&] { require_nodes_in_order(given, found, rows); });
    return {given, "given"};
  }
  if (known > 0) return {known, source.file != nullptr ? "stored in the file" : "found in the pattern"};
  if (rows.rows() != rows.cols() || source.by_part) return {1, "found in the pattern"};
  return {find_in_pattern(rows, communicator), "found in the pattern"};
}

bool keeps_whole(const std::vector<std::int64_t>& starts, std::int64_t size) {
  return std::all_of(starts.begin(), starts.end(), [&](std::int64_t start) { return start % size == 0; });
}

void find_partition(const MatrixSource& source, Communicator& communicator, const PartOptions& options, LoadedPart& part) {
  const std::string& method = options.method;
  const NodeBlocks nodes = find_nodes(source, communicator, options.node_block_size);
  const int parts = communicator.size();
  part.partition_origin = "computed when loading";
  if (options.y_rows && !source.by_part) {
    part.y.starts = options.y_rows->starts();
    part.partition_origin = "given";
  } else if (source.file != nullptr)
    for (const StoredPartition& stored : source.file->partitions())
      // What was stored is kept, unless the caller says that it cuts nodes.
      if (stored.partition.parts() == parts && stored.partition.method == method &&
          (options.node_block_size == 0 || keeps_whole(stored.partition.row_starts, nodes.size))) {
        part.y.starts = stored.partition.row_starts;
        part.partition_origin = "stored in the file";
      }
  if (part.y.starts.empty()) {
    const std::vector<std::int64_t> row_ptr = gather_row_ptr(*source.rows, communicator);
    part.y.starts.resize(static_cast<std::size_t>(parts) + 1);
    communicator.run_agreed([&] {
      if (communicator.rank() == 0) part.y.starts = make_partition(method, row_ptr, parts, nodes.size).row_starts;
    });
    communicator.broadcast(std::span<std::int64_t>(part.y.starts));
  }
  part.node_block_size = nodes.size, part.node_block_origin = nodes.origin;
  part.nodes_are_whole = keeps_whole(part.y.starts, nodes.size);
}

/// This rank's rows in their local order, and the indices of rows and of x.
void read_rows(const MatrixSource& source, std::size_t rank, const PartOptions& options, LoadedPart& part) {
  const std::int64_t begin = part.y.starts[rank], end = part.y.starts[rank + 1];
  part.first_row = begin;
  const HostVector<std::int64_t> lengths = source.rows->row_lengths(begin, end);
  HostVector<std::int64_t> row_ptr(lengths.size() + 1);
  row_ptr[0] = 0;
  std::partial_sum(lengths.begin(), lengths.end(), row_ptr.begin() + 1);
  constexpr std::int64_t kBytesARow = 72;  // lengths, orders and indices, next to the matrix
  require_host_memory(kBytesARow * (end - begin + 1) + CompactCsr::entry_bytes(part.cols, options.type) * row_ptr.back() +
                          16 * kSliceEntries,
                      "loading this rank's rows");
  if (part.sort == LocalSort::by_length) part.y.places = order_by_row_length(row_ptr);
  HostVector<std::int64_t> original;
  if (source.rows->permuted()) original = source.rows->permutation(begin, end);
  part.y.ids.resize(lengths.size());
  part.value_starts.resize(lengths.size());
  for (std::size_t i = 0; i < part.y.ids.size(); ++i) {
    const auto at = static_cast<std::size_t>(part.y.place(i));
    part.y.ids[i] = original.empty() ? begin + part.y.place(i) : original[at];
    part.value_starts[i] = row_ptr[at];
  }
  if (!part.square()) {
    const auto ranks = static_cast<int>(std::ssize(part.y.starts)) - 1;
    require_x((part.cols + ranks - 1) / ranks, options.type);
    part.x = even_share(part.cols, ranks, static_cast<int>(rank));
  }
  row_ptr = HostVector<std::int64_t>();  // makes room
  part.csr = read_part(*source.rows, begin, lengths, part.y, options);
}

/// Collective: each rank can read the rows that the map gives it.
bool has_rows_of(const RowMap& map, const MatrixSource& source, const LoadedPart& part, Communicator& communicator) {
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const bool here = communicator.run_agreed([&] {
    if (part.y.starts != map.starts()) return false;
    const std::int64_t begin = part.y.starts[rank], end = part.y.starts[rank + 1];
    if (end - begin != map.local_rows()) return false;
    HostVector<std::int64_t> original;
    if (source.rows->permuted()) original = source.rows->permutation(begin, end);
    for (std::size_t i = 0; i < map.ids().size(); ++i) {
      const std::int64_t place = map.place(i);
      if (map.ids()[i] != (original.empty() ? begin + place : original[static_cast<std::size_t>(place)])) return false;
    }
    return true;
  });
  return communicator.all_reduce(here ? 1 : 0, Reduction::min) == 1;
}

/// The rows that `map` gives to this rank, in the order of its source.
OwnTriplets rows_wanted(const RowMap& map, std::int64_t cols) {
  OwnTriplets wanted;
  wanted.cols = cols;
  for (const std::int64_t id : map.ids_by_place()) {
    RowRange& last = wanted.further.empty() ? wanted.range : wanted.further.back();
    if (last.count == 0) last = {id, 1};
    else if (last.first + last.count == id) ++last.count;
    else wanted.further.push_back({id, 1});
  }
  return wanted;
}

/// Collective: rows go to the ranks that the map names, from those that read them in `read`.
LoadedPart send_rows(const MatrixSource& source, const LoadedPart& read, const PartOptions& options, Context& context) {
  Communicator& communicator = context.communicator();
  const RowMap& map = *options.y_rows;
  HostVector<std::int64_t> rows, columns;
  HostVector<double> values;
  OwnTriplets triplets = communicator.run_agreed([&] {
    if (source.rows->permuted())
      throw Error(ErrorKind::usage,
                  fmt::format("{} has its rows in another order than the row map y_rows; make both matrices from files of "
                              "one order",
                              source.rows->name()),
                  "y_rows");
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const std::int64_t begin = read.y.starts[rank], end = read.y.starts[rank + 1];
    const HostVector<std::int64_t> lengths = source.rows->row_lengths(begin, end);
    const std::int64_t nnz = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    require_host_memory(24 * nnz + 16 * (end - begin), "the rows that move to other ranks");
    rows.reserve(static_cast<std::size_t>(nnz)), columns.reserve(rows.capacity()), values.reserve(rows.capacity());
    for_each_row_slice(*source.rows, begin, end, [&](std::int64_t first, const CsrView& slice) {
      for (std::int64_t row = 0; row < slice.rows; ++row)
        for (auto k = static_cast<std::size_t>(slice.row_ptr[static_cast<std::size_t>(row)]);
             k < static_cast<std::size_t>(slice.row_ptr[static_cast<std::size_t>(row) + 1]); ++k)
          rows.push_back(first + row), columns.push_back(slice.col_idx[k]), values.push_back(slice.values[k]);
    });
    return rows_wanted(map, source.rows->cols());
  });
  triplets.rows = rows, triplets.columns = columns, triplets.values = values.data();
  const MatrixPart taken = take_triplets(triplets, context, options.type, "", options.node_block_size);
  LoadedPart part = std::move(*taken);
  part.route = nullptr;
  part.value_starts.assign(part.csr.row_ptr.begin(), part.csr.row_ptr.end() - 1);
  return part;
}

/// They are read when somebody asks for them. A source that knows nothing is not kept: it may be a matrix in memory.
std::shared_ptr<const NodeFacts> nodes_of(const MatrixSource& source) {
  return source.rows->knows_nodes() ? source.rows : nullptr;
}

}  // namespace

std::int64_t node_block_size_of(const MatrixSource& source, Communicator& communicator, std::int64_t given) {
  return find_nodes(source, communicator, given).size;
}

LoadedPart load_part(const MatrixSource& source, Context& context, const PartOptions& asked) {
  const ContextScope scope(context);
  Communicator& communicator = context.communicator();
  LoadedPart part;
  part.rows = part.y.size = source.rows->rows(), part.cols = source.rows->cols();
  PartOptions options = asked;
  require_maps(part.rows, part.cols, options.y_rows.get(), options.x_rows.get(), context);
  if (!options.y_rows && part.rows == part.cols) options.y_rows = options.x_rows;
  part.nodes = nodes_of(source);
  part.sort = options.sort;
  if (part.sort == LocalSort::as_file)
    part.sort = source.file != nullptr && source.file->wants_local_sort() ? LocalSort::by_length : LocalSort::none;
  Timer timer;
  find_partition(source, communicator, options, part);
  part.times.partition = timer.seconds();
  timer = Timer();
  if (options.y_rows && !has_rows_of(*options.y_rows, source, part, communicator)) {
    part = send_rows(source, part, options, context);
    part.nodes = nodes_of(source);
    part.times.read = timer.seconds();
    return part;
  }
  communicator.run_agreed([&] { read_rows(source, static_cast<std::size_t>(communicator.rank()), options, part); });
  part.nnz = communicator.all_reduce(part.csr.nnz(), Reduction::sum);
  part.times.read = timer.seconds();
  return part;
}

}  // namespace shardmat
