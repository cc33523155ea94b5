#include "partition/shard/shard_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/matrix/ordering.h"
#include "partition/files/checksum.h"
#include "partition/hdf5/file.h"
#include "partition/hdf5/shard_file_format.h"
#include "partition/nodes/mid_edges.h"
#include "partition/shard/shard_tables.h"
#include "partition/shard/summed_table.h"

namespace shardmat {

namespace format = shard_format;

namespace {
struct Piece;
}

struct ShardFile::Impl {
  Hdf5File file;
  Hdf5Dataset pointers, indices, values, permutation, unknowns;
  ShardTables tables;
  SummedTable<double> coordinates, axes, near_null_vectors;
  SummedTable<std::int64_t> mid_edges;
  bool allow_nonfinite = false;
  bool values_unchecked = false;
  std::optional<std::uint64_t> plain_fingerprint;
  // Per block: its checksums were compared.
  std::vector<bool> checked, pointers_checked, permutation_checked;

  void open_datasets() {
    pointers = file.dataset(format::kPointers);
    indices = file.dataset(format::kIndices);
    values = file.dataset(format::kValues);
    if (tables.permuted) permutation = file.dataset(format::kPermutation);
    if (tables.has_unknowns) unknowns = file.dataset(format::kUnknowns);
    if (tables.plain) return;
    coordinates = SummedTable<double>(file, format::kCoordinates);
    axes = SummedTable<double>(file, format::kAxes);
    mid_edges = SummedTable<std::int64_t>(file, format::kMidEdges);
    near_null_vectors = SummedTable<double>(file, format::kNearNullVectors);
    const auto require = [](const auto& table, bool fits) {
      if (table.rows() == 0 || fits) return;
      throw Error(ErrorKind::input, fmt::format("{} has shape [{}, {}], which does not fit the matrix",
                                                table.dataset().place(), table.rows(), table.columns()));
    };
    require(coordinates, coordinates.columns() == NodeFacts::kDimensions && tables.rows % coordinates.rows() == 0);
    require(axes, axes.columns() == NodeFacts::kAxes && axes.rows() == coordinates.rows());
    require(mid_edges, mid_edges.columns() == 3 && mid_edges.rows() <= tables.rows);
    require(near_null_vectors,
            near_null_vectors.columns() <= NodeFacts::kMostVectors && near_null_vectors.rows() == tables.rows);
  }

  [[noreturn]] void reject(const Hdf5Dataset& dataset, const std::string& why) const {
    const std::string remedy =
        dataset.place() != values.place()
            ? ""
            : fmt::format(
                  ". If its values were changed on purpose, give them new checksums: shardmat convert {0} NEW.h5 "
                  "--values {0}:{1}",
                  file.path(), format::kValues);
    throw Error(ErrorKind::input,
                fmt::format("{}: {}; the file is damaged: restore it from a copy, or make it again{}{}", dataset.place(),
                            why, tables.how.empty() ? " from its source" : ". It was made by: " + tables.how, remedy));
  }

  /// For SummedTable::read().
  auto rejecting(const Hdf5Dataset& dataset) const {
    return [this, &dataset](const std::string& why) { reject(dataset, why); };
  }

  [[noreturn]] void reject_block(const Hdf5Dataset& dataset, std::size_t block) const {
    reject(dataset,
           fmt::format("the checksum of rows [{}, {}) differs", tables.block_rows[block], tables.block_rows[block + 1]));
  }

  void require_range(std::int64_t begin, std::int64_t end) const {
    if (begin < 0 || begin > end || end > tables.rows)
      throw Error(ErrorKind::internal,
                  fmt::format("{}: rows [{}, {}) asked of a matrix with {} rows", file.path(), begin, end, tables.rows));
  }

  /// The pointers of rows [begin, end), end - begin + 1 of them, as stored.
  HostVector<std::int64_t> raw_pointers(std::int64_t begin, std::int64_t end) const {
    HostVector<std::int64_t> result(static_cast<std::size_t>(end - begin + 1));
    pointers.read(begin, end - begin + 1, result.data());
    return result;
  }

  void check_pointers(std::int64_t begin, const HostVector<std::int64_t>& p) const {
    if (p.front() < 0 || p.back() > tables.nnz)
      reject(pointers, fmt::format("rows [{}, {}) lie at [{}, {}) of {} nonzeros", begin,
                                   begin + static_cast<std::int64_t>(p.size()) - 1, p.front(), p.back(), tables.nnz));
    for (std::size_t i = 0; i + 1 < p.size(); ++i)
      if (p[i + 1] < p[i])
        reject(pointers,
               fmt::format("row {} has a negative length ({} to {})", begin + static_cast<std::int64_t>(i), p[i], p[i + 1]));
  }

  /// Rows [begin, end) with their pointers still counted from the start of the file; columns and values
  /// unchecked.
  HostCsr read_unchecked(std::int64_t begin, std::int64_t end, HostVector<std::int64_t> row_ptr) const {
    HostCsr part;
    part.rows = end - begin;
    part.cols = tables.cols;
    part.row_ptr = std::move(row_ptr);
    const std::int64_t first = part.row_ptr.front(), count = part.row_ptr.back() - first;
    part.col_idx.resize(static_cast<std::size_t>(count));
    part.values.resize(static_cast<std::size_t>(count));
    indices.read(first, count, part.col_idx.data());
    values.read(first, count, part.values.data());
    return part;
  }

  /// Compares the checksums of all blocks that hold some of the rows of `part`, which begin at `begin`, unless that was
  /// done before. Of blocks that reach beyond these rows the rest is read for it.
  void check_blocks(std::int64_t begin, const HostCsr& part);
  void compare(std::size_t block, const format::BlockChecksums& found) const;
  /// Reads a block for its checksums alone.
  void check_block(std::size_t block) const;
  /// The rows from `begin` on, with pointers `p`, cut for read_pieces() at the ends of blocks.
  std::vector<Piece> pieces(std::int64_t begin, const HostVector<std::int64_t>& p) const;
  template <class Column, class Value>
  void read_piece(const Piece& piece, std::int64_t begin, const HostVector<std::int64_t>& p, const RowTarget& target,
                  Column* columns, Value* values_out) const;
  void read_pieces(const std::vector<Piece>& all, std::int64_t begin, const HostVector<std::int64_t>& p,
                   const RowTarget& target, const Progress& progress) const;
  /// As check_blocks() an integer dataset of rows alone, with `more` entries after the last row of a block, against
  /// stored(block).
  template <class Stored>
  void check_entries(const Hdf5Dataset& dataset, std::vector<bool>& done, std::int64_t more, std::int64_t begin,
                     std::int64_t end, Stored stored) const;
  void check_row_pointers(std::int64_t begin, std::int64_t end) {
    check_entries(pointers, pointers_checked, 1, begin, end,
                  [&](std::size_t block) { return tables.checksums[block].pointers; });
  }
  /// Where the file has checksums for it.
  void check_permutation(std::int64_t begin, std::int64_t end) {
    check_entries(permutation, permutation_checked, 0, begin, end,
                  [&](std::size_t block) { return tables.permutation_checksums[block]; });
  }
  void require_intact(const HostVector<std::int64_t>& whole_permutation) const;
  void verify_permutation();
  /// `found`: what the rows give.
  void verify_quality(const StoredPartition& stored, PartitionQuality found) const;
  std::size_t block_of(std::int64_t row) const {
    const auto& starts = tables.block_rows;
    return static_cast<std::size_t>(std::upper_bound(starts.begin(), starts.end(), row) - starts.begin() - 1);
  }
};

ShardFile::ShardFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ShardFile::~ShardFile() = default;

std::vector<std::string> ShardFile::objects() {
  return {format::kPointers, format::kIndices, format::kValues, format::kGroup};
}

std::unique_ptr<ShardFile> ShardFile::open(const std::filesystem::path& path, bool allow_nonfinite) {
  auto impl = std::make_unique<Impl>();
  impl->file = Hdf5File::open(path, objects());
  impl->tables = read_shard_tables(impl->file);
  impl->allow_nonfinite = allow_nonfinite || impl->tables.allow_nonfinite;
  impl->open_datasets();
  impl->checked.resize(impl->tables.checksums.size());
  impl->pointers_checked.resize(impl->tables.checksums.size());
  impl->permutation_checked.resize(impl->tables.permutation_checksums.size());
  return std::unique_ptr<ShardFile>(new ShardFile(std::move(impl)));
}

std::int64_t ShardFile::rows() const { return impl_->tables.rows; }
std::int64_t ShardFile::cols() const { return impl_->tables.cols; }
std::int64_t ShardFile::nnz() const { return impl_->tables.nnz; }
std::string ShardFile::name() const { return impl_->file.path(); }
std::int64_t ShardFile::node_block_size() const { return impl_->tables.node_block_size; }
RowOrder ShardFile::row_order() const { return impl_->tables.order; }
void ShardFile::leave_values_unchecked() { impl_->values_unchecked = true; }
bool ShardFile::plain_binsparse() const { return impl_->tables.plain; }
std::string ShardFile::how() const { return impl_->tables.how; }
std::string ShardFile::source() const { return impl_->tables.source; }
std::string ShardFile::source_checksum() const { return impl_->tables.source_checksum; }
bool ShardFile::wants_local_sort() const { return impl_->tables.sort_local; }
bool ShardFile::allows_nonfinite() const { return impl_->allow_nonfinite; }
const std::vector<StoredPartition>& ShardFile::partitions() const { return impl_->tables.partitions; }

std::uint64_t ShardFile::fingerprint() const {
  if (!impl_->tables.plain) return impl_->tables.fingerprint;
  if (!impl_->plain_fingerprint) {
    std::uint64_t hash = format::fingerprint(rows(), cols(), nnz(), 0, {});
    for (std::int64_t begin = 0; begin < rows(); begin += kSliceEntries) {
      const std::uint64_t pair[] = {hash,
                                    format::checksum(impl_->raw_pointers(begin, std::min(rows(), begin + kSliceEntries)))};
      hash = format::checksum({reinterpret_cast<const std::int64_t*>(pair), 2});
    }
    impl_->plain_fingerprint = hash;
  }
  return *impl_->plain_fingerprint;
}

HostVector<std::int64_t> ShardFile::row_lengths(std::int64_t begin, std::int64_t end) const {
  impl_->require_range(begin, end);
  if (!plain_binsparse()) impl_->check_row_pointers(begin, end);
  HostVector<std::int64_t> p = impl_->raw_pointers(begin, end);
  impl_->check_pointers(begin, p);
  for (std::size_t i = 0; i + 1 < p.size(); ++i) p[i] = p[i + 1] - p[i];
  p.pop_back();
  return p;
}

HostCsr ShardFile::read_rows(std::int64_t begin, std::int64_t end) const {
  impl_->require_range(begin, end);
  HostVector<std::int64_t> p = impl_->raw_pointers(begin, end);
  impl_->check_pointers(begin, p);
  HostCsr part = impl_->read_unchecked(begin, end, std::move(p));
  if (!plain_binsparse()) impl_->check_blocks(begin, part);
  validate(part.view(), {allows_nonfinite() || impl_->values_unchecked, begin, name()});
  const std::int64_t first = part.row_ptr.front();
  for (std::int64_t& pointer : part.row_ptr) pointer -= first;
  return part;
}

namespace {

/// Stored rows [begin, end) that one thread reads at a time.
struct Piece {
  std::int64_t begin, end;
  std::optional<std::size_t> block;  ///< the block with these rows, if its checksums are to be compared
};

/// Where a piece goes: into the target itself if its rows lie there one after another, else into memory of the thread.
bool in_order(std::span<const std::int64_t> lengths, std::span<const std::int64_t> places) {
  for (std::size_t i = 1; i < places.size(); ++i)
    if (places[i] != places[i - 1] + lengths[i - 1]) return false;
  return true;
}

/// Reads a piece step by step, so that its numbers are in the cache when the checksum needs them.
class PieceReader {
 public:
  PieceReader(const Hdf5Dataset& indices, const Hdf5Dataset& values, ValueType type)
      : indices_(indices), values_(values), limit_(least_out_of_range(type)) {}

  /// The checksum of columns [first, first + count) of the file, which are written to `out`.
  template <class Column>
  std::uint64_t read_columns(std::int64_t first, std::int64_t count, Column* out) const {
    Xxh64 hash;
    for (std::int64_t done = 0; done < count; done += kStep) {
      const std::int64_t now = std::min(kStep, count - done);
      indices_.read(first + done, now, out + done);
      if constexpr (sizeof(Column) == 4) hash.add_widened(std::span(out + done, static_cast<std::size_t>(now)));
      else hash.add(out + done, static_cast<std::size_t>(8 * now));
    }
    return hash.digest();
  }

  /// Likewise of values. Sets beyond() if a value is out of the type's range.
  template <class Value>
  std::uint64_t read_values(std::int64_t first, std::int64_t count, Value* out) {
    Xxh64 hash;
    for (std::int64_t done = 0; done < count; done += kStep) {
      const std::int64_t now = std::min(kStep, count - done);
      double* step = nullptr;
      if constexpr (sizeof(Value) == 8) {
        step = out + done;
      } else {
        step_.resize(static_cast<std::size_t>(kStep));
        step = step_.data();
      }
      values_.read(first + done, now, step);
      hash.add(step, static_cast<std::size_t>(8 * now));
      for (std::int64_t k = 0; k < now && limit_ < std::numeric_limits<double>::infinity(); ++k)
        if (beyond_ < 0 && std::abs(step[k]) >= limit_ && std::isfinite(step[k]))
          beyond_ = done + k, value_beyond_ = step[k];
      if constexpr (sizeof(Value) == 4)
        std::transform(step, step + now, out + done, [](double v) { return static_cast<float>(v); });
    }
    return hash.digest();
  }

  /// Place in the piece of the first value that is out of range, or -1; and this value.
  std::int64_t beyond() const { return beyond_; }
  double value_beyond() const { return value_beyond_; }

 private:
  static constexpr std::int64_t kStep = 1 << 14;

  const Hdf5Dataset &indices_, &values_;
  double limit_;
  HostVector<double> step_;
  std::int64_t beyond_ = -1;
  double value_beyond_ = 0;
};

}  // namespace

std::vector<Piece> ShardFile::Impl::pieces(std::int64_t begin, const HostVector<std::int64_t>& p) const {
  const std::int64_t end = begin + std::ssize(p) - 1;
  std::vector<Piece> all;
  if (tables.plain) {
    for (std::int64_t row = begin, first = begin; row < end; ++row)
      if (row + 1 == end || p[static_cast<std::size_t>(row + 2 - begin)] - p[static_cast<std::size_t>(first - begin)] >
                                format::kBlockEntries) {
        all.push_back({first, row + 1, std::nullopt});
        first = row + 1;
      }
    return all;
  }
  const auto& starts = tables.block_rows;
  for (std::size_t block = block_of(begin); begin < end && starts[block] < end; ++block) {
    const bool whole = starts[block] >= begin && starts[block + 1] <= end;
    all.push_back({std::max(begin, starts[block]), std::min(end, starts[block + 1]),
                   whole && !checked[block] ? std::optional(block) : std::nullopt});
  }
  return all;
}

template <class Column, class Value>
void ShardFile::Impl::read_piece(const Piece& piece, std::int64_t begin, const HostVector<std::int64_t>& p,
                                 const RowTarget& target, Column* columns, Value* values_out) const {
  const auto row = static_cast<std::size_t>(piece.begin - begin), rows = static_cast<std::size_t>(piece.end - piece.begin);
  const std::span<const std::int64_t> offsets = std::span(p).subspan(row, rows + 1);
  const std::int64_t first = offsets.front(), count = offsets.back() - first;
  const bool straight = in_order(target.lengths.subspan(row, rows), target.places.subspan(row, rows));
  HostVector<Column> own_columns(straight ? 0 : static_cast<std::size_t>(count));
  HostVector<Value> own_values(own_columns.size());
  Column* const to_columns = straight ? columns + target.places[row] : own_columns.data();
  Value* const to_values = straight ? values_out + target.places[row] : own_values.data();
  PieceReader reader(indices, values, target.type);
  format::BlockChecksums found;
  found.indices = reader.read_columns(first, count, to_columns);
  found.values = reader.read_values(first, count, to_values);
  if (piece.block) {
    found.pointers = format::checksum(offsets);
    compare(*piece.block, found);
  }
  if (const std::int64_t beyond = first + reader.beyond(); beyond >= first) {
    const auto of = static_cast<std::size_t>(std::upper_bound(offsets.begin(), offsets.end(), beyond) - offsets.begin() - 1);
    refuse_out_of_range(target.type, target.places[row + of] + beyond - offsets[of], reader.value_beyond(),
                        fmt::format("the values of {}", file.path()));
  }
  const auto entries = static_cast<std::size_t>(count);
  const CsrView view{piece.end - piece.begin,
                     tables.cols,
                     offsets,
                     std::span<const Column>(to_columns, entries),
                     std::span<const Value>(to_values, entries),
                     nullptr};
  validate(view, {allow_nonfinite || values_unchecked, piece.begin, file.path()});
  if (!straight) put_rows(view, piece.begin - begin, begin, target, file.path());
}

/// Each thread takes neighbouring pieces. The error of the first wrong piece is thrown.
void ShardFile::Impl::read_pieces(const std::vector<Piece>& all, std::int64_t begin, const HostVector<std::int64_t>& p,
                                  const RowTarget& target, const Progress& progress) const {
  std::vector<std::exception_ptr> wrong(all.size());
  std::atomic<std::int64_t> done = 0;
  const std::thread::id caller = std::this_thread::get_id();
  parallel_ranges(std::ssize(all), 1, [&](std::int64_t first, std::int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
      try {
        target.visit([&](auto* columns, auto* values_out) { read_piece(all[i], begin, p, target, columns, values_out); });
      } catch (...) {
        wrong[i] = std::current_exception();
        return;
      }
      done += p[static_cast<std::size_t>(all[i].end - begin)] - p[static_cast<std::size_t>(all[i].begin - begin)];
      if (std::this_thread::get_id() == caller) report(progress, "loading", done, p.back() - p.front());
    }
  });
  for (const std::exception_ptr& error : wrong)
    if (error != nullptr) std::rethrow_exception(error);
  report(progress, "loading", done, p.back() - p.front());
}

void ShardFile::read_rows_into(std::int64_t begin, const RowTarget& target, const Progress& progress) const {
  const Impl& shard = *impl_;
  const std::int64_t end = begin + std::ssize(target.lengths);
  shard.require_range(begin, end);
  const Hdf5Type column = target.narrow_columns != nullptr ? Hdf5Type::i32 : Hdf5Type::i64;
  const bool direct = shard.indices.contiguous() && shard.values.contiguous() && shard.indices.type() == column &&
                      shard.values.type() == Hdf5Type::f64;
  if (!direct || begin == end) return RowSource::read_rows_into(begin, target, progress);
  const HostVector<std::int64_t> p = shard.raw_pointers(begin, end);
  shard.check_pointers(begin, p);
  require_lengths(p, 0, begin, target, name());
  const std::vector<Piece> pieces = shard.pieces(begin, p);
  for (const Piece& piece : pieces) {  // parts of blocks
    if (plain_binsparse() || piece.block || shard.checked[shard.block_of(piece.begin)]) continue;
    shard.check_block(shard.block_of(piece.begin));
    impl_->checked[shard.block_of(piece.begin)] = true;
  }
  shard.read_pieces(pieces, begin, p, target, progress);
  for (const Piece& piece : pieces)
    if (piece.block) impl_->checked[*piece.block] = true;
}

std::int64_t ShardFile::best_end(std::int64_t begin, std::int64_t end) const {
  const std::int64_t last = impl_->tables.block_rows[impl_->block_of(end)];
  return last > begin ? last : end;
}

HostVector<std::int64_t> ShardFile::permutation(std::int64_t begin, std::int64_t end) const {
  impl_->require_range(begin, end);
  if (!permuted()) return RowSource::permutation(begin, end);
  impl_->check_permutation(begin, end);
  HostVector<std::int64_t> result(static_cast<std::size_t>(end - begin));
  impl_->permutation.read(begin, end - begin, result.data());
  if (end - begin == rows()) impl_->require_intact(result);
  for (const std::int64_t row : result)
    if (row < 0 || row >= rows()) impl_->reject(impl_->permutation, fmt::format("row {} is out of range", row));
  return result;
}

std::shared_ptr<const UnknownList> ShardFile::unknowns() const {
  const Impl& shard = *impl_;
  if (!shard.tables.has_unknowns) return nullptr;
  require_host_memory(16 * rows(), shard.unknowns.place().c_str());
  auto list = std::make_shared<UnknownList>(static_cast<std::size_t>(rows()));
  shard.unknowns.read(0, rows(), reinterpret_cast<std::int64_t*>(list->data()));
  if (format::checksum(format::numbers_of(*list)) != shard.tables.unknowns_checksum)
    shard.reject(shard.unknowns, "the checksum differs");
  return list;
}

std::int64_t ShardFile::placed_nodes() const { return impl_->coordinates.rows(); }
HostVector<double> ShardFile::coordinates(std::int64_t begin, std::int64_t end) const {
  return impl_->coordinates.read(begin, end, impl_->rejecting(impl_->coordinates.dataset()));
}
bool ShardFile::has_axes() const { return impl_->axes.rows() > 0; }
HostVector<double> ShardFile::axes(std::int64_t begin, std::int64_t end) const {
  return has_axes() ? impl_->axes.read(begin, end, impl_->rejecting(impl_->axes.dataset())) : HostVector<double>();
}
bool ShardFile::knows_nodes() const { return RowSource::knows_nodes() || impl_->mid_edges.rows() > 0; }

int ShardFile::near_null_count() const { return impl_->near_null_vectors.columns(); }
HostVector<double> ShardFile::near_null_vectors(std::int64_t begin, std::int64_t end) const {
  return impl_->near_null_vectors.read(begin, end, impl_->rejecting(impl_->near_null_vectors.dataset()));
}

std::vector<MidEdge> ShardFile::mid_edges() const {
  const auto& table = impl_->mid_edges;
  const auto numbers = impl_->mid_edges.read(0, table.rows(), impl_->rejecting(table.dataset()));
  std::vector<MidEdge> list;
  for (std::size_t i = 0; i < numbers.size(); i += 3) list.push_back({numbers[i], numbers[i + 1], numbers[i + 2]});
  const std::int64_t nodes = placed_nodes() > 0 ? placed_nodes() : rows();
  return checked_mid_edges(std::move(list), nodes,
                           [&](std::int64_t i) { return fmt::format("{}, row {}", table.dataset().place(), i); });
}

void ShardFile::Impl::compare(std::size_t block, const format::BlockChecksums& found) const {
  const format::BlockChecksums& stored = tables.checksums[block];
  const auto require = [&](const Hdf5Dataset& dataset, bool same) {
    if (!same)
      reject(dataset,
             fmt::format("the checksum of rows [{}, {}) differs", tables.block_rows[block], tables.block_rows[block + 1]));
  };
  require(pointers, found.pointers == stored.pointers);
  require(indices, found.indices == stored.indices);
  require(values, values_unchecked || found.values == stored.values);
}

void ShardFile::Impl::check_blocks(std::int64_t begin, const HostCsr& part) {
  const auto& starts = tables.block_rows;
  const std::int64_t end = begin + part.rows;
  std::vector<std::size_t> whole, beyond;
  for (std::size_t block = block_of(begin); begin < end && starts[block] < end; ++block)
    if (!checked[block]) (starts[block] >= begin && starts[block + 1] <= end ? whole : beyond).push_back(block);

  std::vector<format::BlockChecksums> found(whole.size());
  parallel_tasks(static_cast<std::int64_t>(whole.size()), [&](std::int64_t i) {
    const CsrView rows = part.view().rows_between(starts[whole[static_cast<std::size_t>(i)]] - begin,
                                                  starts[whole[static_cast<std::size_t>(i)] + 1] - begin);
    found[static_cast<std::size_t>(i)] = format::checksums(rows.row_ptr, rows.col_idx, rows.values);
  });
  for (std::size_t i = 0; i < whole.size(); ++i) compare(whole[i], found[i]);
  for (const std::size_t block : beyond) check_block(block);
  for (const auto& blocks : {whole, beyond})
    for (const std::size_t block : blocks) checked[block] = true;
}

void ShardFile::Impl::check_block(std::size_t block) const {
  const std::int64_t begin = tables.block_rows[block], end = tables.block_rows[block + 1];
  require_host_memory(8 * (end - begin + 1), pointers.place().c_str());
  HostVector<std::int64_t> row_ptr = raw_pointers(begin, end);
  check_pointers(begin, row_ptr);
  require_host_memory(16 * (row_ptr.back() - row_ptr.front()), values.place().c_str());
  const HostCsr rows = read_unchecked(begin, end, std::move(row_ptr));
  compare(block, format::checksums(rows.row_ptr, rows.col_idx, rows.values));
}

template <class Stored>
void ShardFile::Impl::check_entries(const Hdf5Dataset& dataset, std::vector<bool>& done, std::int64_t more,
                                    std::int64_t begin, std::int64_t end, Stored stored) const {
  const auto& starts = tables.block_rows;
  for (std::size_t block = block_of(begin); begin < end && block < done.size() && starts[block] < end; ++block) {
    if (done[block]) continue;
    const std::int64_t count = starts[block + 1] - starts[block] + more;
    require_host_memory(8 * count, dataset.place().c_str());
    HostVector<std::int64_t> all(static_cast<std::size_t>(count));
    dataset.read(starts[block], std::ssize(all), all.data());
    if (format::checksum(all) != stored(block)) reject_block(dataset, block);
    done[block] = true;
  }
}

void ShardFile::Impl::require_intact(const HostVector<std::int64_t>& whole_permutation) const {
  if (format::checksum(whole_permutation) != tables.permutation_checksum) reject(permutation, "the checksum differs");
}

void ShardFile::Impl::verify_permutation() {
  permutation_checked.assign(permutation_checked.size(), false);
  check_permutation(0, tables.rows);
  require_host_memory(16 * tables.rows, permutation.place().c_str());
  HostVector<std::int64_t> order(static_cast<std::size_t>(tables.rows));
  permutation.read(0, tables.rows, order.data());
  require_intact(order);
  try {
    invert_permutation(order);
  } catch (const Error& e) {
    reject(permutation, e.what());
  }
}

void ShardFile::Impl::verify_quality(const StoredPartition& stored, PartitionQuality found) const {
  std::vector<double> right;
  const auto remember = [&](const char*, auto value) { right.push_back(static_cast<double>(value)); };
  format::for_each_quality_field(found, remember);
  format::for_each_later_quality_field(found, remember);
  auto expected = right.begin();
  const auto compare = [&](const char* name, auto value) {
    const double is = static_cast<double>(value), must = *expected++;
    if (is != must)
      throw Error(ErrorKind::input,
                  fmt::format("{}: {} of {} is {} but the matrix gives {}; make the file again from its source", file.path(),
                              name, format::partition_group(stored.partition.method, stored.partition.parts()), is, must));
  };
  format::for_each_quality_field(stored.quality, compare);
  if (stored.quality.neighbours_max >= 0) format::for_each_later_quality_field(stored.quality, compare);
}

void ShardFile::verify(const Progress& progress) const {
  if (permuted()) impl_->verify_permutation();
  unknowns();
  impl_->coordinates.verify(impl_->rejecting(impl_->coordinates.dataset()));
  impl_->axes.verify(impl_->rejecting(impl_->axes.dataset()));
  impl_->near_null_vectors.verify(impl_->rejecting(impl_->near_null_vectors.dataset()));
  impl_->mid_edges.verify(impl_->rejecting(impl_->mid_edges.dataset()));
  mid_edges();
  impl_->checked.assign(impl_->checked.size(), false);
  std::vector<QualityMeter> meters;
  for (const StoredPartition& stored : partitions()) meters.emplace_back(stored.partition, cols());
  for_each_row_slice(*this, 0, rows(), [&](std::int64_t first_row, const CsrView& slice) {
    parallel_tasks(std::ssize(meters), [&](std::int64_t i) { meters[static_cast<std::size_t>(i)].add(slice); });
    report(progress, "verifying", first_row + slice.rows, rows());
  });
  for (std::size_t i = 0; i < meters.size(); ++i) impl_->verify_quality(partitions()[i], meters[i].result());
  impl_->file.verify_description();
}

}  // namespace shardmat
