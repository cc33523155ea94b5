#include "runtime/solvers/multigrid/operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/blocks/parts.h"
#include "kernels/blocks/setup.h"
#include "kernels/choose/registry.h"
#include "kernels/choose/spmm_registry.h"
#include "kernels/conversion.h"
#include "kernels/formats/bcsr.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/packed.h"

namespace shardmat::multigrid {
namespace {

constexpr int kLargestBlock = 6;

/// The largest size of square blocks that divides those of the rows; 1: single entries.
template <class Rows>
int stored_block(const Rows& rows) {
  const int common = std::gcd(rows.row_size, rows.col_size);
  for (int b = std::min(common, kLargestBlock); b > 1; --b)
    if (common % b == 0) return b;
  return 1;
}

/// Rows cut into blocks of b × b: block rows from top to bottom, in each the blocks from left to right.
struct Blocks {
  const NodeRows& rows;
  int b;

  std::int64_t block_rows() const { return rows.count() * (rows.row_size / b); }
  std::int64_t count() const { return rows.blocks() * (rows.block_entries() / (b * b)); }
  std::int64_t begin(std::int64_t block_row) const {
    const std::int64_t down = rows.row_size / b, across = rows.col_size / b, node = block_row / down,
                       of_node = rows.start[at(node)], length = rows.start[at(node) + 1] - of_node;
    return (of_node * down + block_row % down * length) * across;
  }
};

template <class Offset>
void fill_offsets(const Blocks& blocks, Offset* out) {
  parallel_ranges(blocks.block_rows(), 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[i] = static_cast<Offset>(blocks.begin(i));
  });
  out[blocks.block_rows()] = static_cast<Offset>(blocks.count());
}

/// place(j): of node j among the nodes of x.
template <class Place>
void fill_columns(const Blocks& blocks, const Place& place, std::int32_t* out) {
  const NodeRows& m = blocks.rows;
  const int down = m.row_size / blocks.b, across = m.col_size / blocks.b;
  parallel_ranges(m.count(), m.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      for (int d = 0; d < down; ++d) {
        std::int32_t* to = out + blocks.begin(i * down + d);
        for (std::int64_t k = m.start[at(i)]; k < m.start[at(i) + 1]; ++k)
          for (int a = 0; a < across; ++a) *to++ = place(m.column[at(k)]) * across + a;
      }
  });
}

template <class T>
void fill_values(const Blocks& blocks, T* out) {
  const NodeRows& m = blocks.rows;
  const int b = blocks.b, down = m.row_size / b, across = m.col_size / b;
  parallel_ranges(m.count(), m.grain(), [&](std::int64_t begin, std::int64_t end) {
    if (down == 1 && across == 1) {
      const double* const from = m.block(m.start[at(begin)]);
      const std::int64_t first = m.start[at(begin)] * b * b, count = m.start[at(end)] * b * b - first;
      for (std::int64_t e = 0; e < count; ++e) out[first + e] = static_cast<T>(from[e]);
      return;
    }
    for (std::int64_t i = begin; i < end; ++i)
      for (int d = 0; d < down; ++d) {
        T* to = out + blocks.begin(i * down + d) * b * b;
        for (std::int64_t k = m.start[at(i)]; k < m.start[at(i) + 1]; ++k)
          for (int a = 0; a < across; ++a)
            for (int r = 0; r < b; ++r)
              for (int c = 0; c < b; ++c) *to++ = static_cast<T>(m.block(k)[(d * b + r) * m.col_size + a * b + c]);
      }
  });
}

/// An array on the device that `fill` writes in host memory.
template <class T, class Fill>
void write(const Buffer& buffer, std::int64_t count, Stream& stream, const Fill& fill) {
  if (stream.device().backend == Backend::host) return fill(buffer.as<T>());
  HostVector<T> array(at(count));
  fill(array.data());
  copy_to_device(buffer.data(), array.data(), array.size() * sizeof(T), stream);
}

void write_values(const Storage& storage, const Blocks& blocks, Stream& stream) {
  dispatch(storage.type, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    write<T>(*storage.value_arrays()[0], blocks.count() * blocks.b * blocks.b, stream,
             [&](T* out) { fill_values(blocks, out); });
  });
}

/// The arrays that both formats have. Returns the offsets' width.
template <class Place>
bool fill_pattern(const Blocks& blocks, const Place& place, Stream& stream, Buffer& offsets, Buffer& columns) {
  const bool wide = blocks.count() > std::numeric_limits<std::int32_t>::max() - 256;
  const auto make_offsets = [&]<class Offset>(Offset) {
    offsets = Buffer(stream.device(), at(blocks.block_rows() + 1) * sizeof(Offset));
    write<Offset>(offsets, blocks.block_rows() + 1, stream, [&](Offset* out) { fill_offsets(blocks, out); });
  };
  if (wide) make_offsets(std::int64_t());
  else make_offsets(std::int32_t());
  columns = Buffer(stream.device(), at(blocks.count()) * sizeof(std::int32_t));
  write<std::int32_t>(columns, blocks.count(), stream, [&](std::int32_t* out) { fill_columns(blocks, place, out); });
  return wide;
}

template <class Place>
std::shared_ptr<Storage> stored(const Blocks& blocks, std::int64_t cols, const Place& place, ValueType type,
                                Stream& stream) {
  const NodeRows& m = blocks.rows;
  const std::int64_t values = blocks.count() * blocks.b * blocks.b * static_cast<std::int64_t>(size_of(type)),
                     indices = 8 * (blocks.block_rows() + 1) + 4 * blocks.count();
  require_memory(stream.device(), values + indices, "a level of multigrid");
  const auto describe = [&](auto& storage, std::string format) {
    storage->device = stream.device();
    storage->type = type;
    storage->rows = m.count() * m.row_size, storage->cols = cols;
    storage->nnz = m.blocks() * m.block_entries();
    storage->format = std::move(format);
    storage->values = Buffer(stream.device(), at(values));
    write_values(*storage, blocks, stream);
    stream.synchronize();
  };
  if (blocks.b == 1) {
    auto csr = std::make_shared<CsrStorage>();
    csr->wide_offsets = fill_pattern(blocks, place, stream, csr->row_ptr, csr->col_idx);
    describe(csr, "csr");
    csr->bytes = static_cast<std::int64_t>(csr->row_ptr.bytes() + csr->col_idx.bytes()) + values;
    return csr;
  }
  auto bcsr = std::make_shared<BcsrStorage>();
  bcsr->layout = Policy{{"block", blocks.b}};
  bcsr->block_rows = blocks.block_rows(), bcsr->block_cols = cols / blocks.b;
  bcsr->wide_offsets = fill_pattern(blocks, place, stream, bcsr->block_ptr, bcsr->block_col);
  auto offsets = std::make_shared<HostVector<std::int64_t>>(at(blocks.block_rows() + 1));
  fill_offsets(blocks, offsets->data());
  bcsr->host_block_ptr = std::move(offsets);
  describe(bcsr, "bcsr");
  bcsr->bytes = static_cast<std::int64_t>(bcsr->block_ptr.bytes() + bcsr->block_col.bytes()) + values;
  return bcsr;
}

/// Rows of single entries, as conversions read them.
class SingleEntries {
 public:
  template <class Place>
  SingleEntries(const NodeRows& m, std::int64_t cols, const Place& place) : columns_(m.value.size()) {
    view_.rows = m.count() * m.row_size, view_.cols = cols;
    if (m.block_entries() == 1) {
      fill_columns({m, 1}, place, columns_.data());
      view_.row_ptr = m.start, view_.col_idx = columns_, view_.values = m.value;
      return;
    }
    starts_.resize(at(view_.rows + 1)), values_.resize(m.value.size());
    fill_offsets(Blocks{m, 1}, starts_.data());
    fill_columns({m, 1}, place, columns_.data());
    fill_values(Blocks{m, 1}, values_.data());
    view_.row_ptr = starts_, view_.col_idx = columns_, view_.values = values_;
  }
  const CsrView& view() const { return view_; }

 private:
  HostVector<std::int64_t> starts_;
  HostVector<std::int32_t> columns_;
  HostVector<double> values_;
  CsrView view_;
};

/// Entries a row, on average. Packing longer ones took 26 and 38 ms on two levels of Poisson's 64³ nodes, and a whole solve
/// of 8 iterations was no faster for it.
constexpr std::int64_t kLongestToPack = 16;

/// Short indices where the pattern repeats: such a product reads 0.6 of the bytes of csr.
std::shared_ptr<Storage> packed(const SingleEntries& rows, ValueType type, int columns, Stream& stream) {
  const Format& format = find_format("packed");
  ConversionInput input(rows.view(), type, stream);
  return store(format, input, columns == 1 ? format.layouts(input)[0] : format.spmm_layout(input));
}

template <class Place>
blocks::BlockRows uploaded(const NodeRows& m, std::int64_t cols, const Place& place, Stream& stream) {
  blocks::BlockRows out{m.row_size, m.col_size, m.count(), cols, m.blocks(), {}, {}, {}};
  require_memory(stream.device(), 8 * (m.count() + 1) + m.blocks() * (4 + 8 * m.block_entries()), "a level of multigrid");
  out.start = Buffer(stream.device(), m.start.size() * sizeof(std::int64_t));
  out.column = Buffer(stream.device(), m.column.size() * sizeof(std::int32_t));
  out.value = Buffer(stream.device(), m.value.size() * sizeof(double));
  HostVector<std::int32_t> columns(m.column.size());
  parallel_ranges(m.blocks(), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) columns[at(k)] = place(m.column[at(k)]);
  });
  copy_to_device(out.start.data(), m.start.data(), out.start.bytes(), stream);
  copy_to_device(out.column.data(), columns.data(), out.column.bytes(), stream);
  copy_to_device(out.value.data(), m.value.data(), out.value.bytes(), stream);
  return out;
}

/// Most slots of stencils share their columns: then fewer bytes than indices alone would take come with the values.
bool is_stencil(std::int64_t bytes_beside_values, std::int64_t nonzeros) { return bytes_beside_values < nonzeros; }

/// From so many rows on, the packed format streams single entries with shorter indices than rows of blocks.
constexpr std::int64_t kManyOfSingleRows = 100'000;

/// Single entries as CSR, which shares nothing with `rows`.
std::shared_ptr<CsrStorage> csr_of(const blocks::BlockRows& rows, ValueType type, Stream& stream) {
  blocks::SingleEntries entries = blocks::single_entries(rows, type, stream);
  auto csr = std::make_shared<CsrStorage>();
  csr->device = stream.device(), csr->type = type, csr->format = "csr";
  csr->rows = rows.count * rows.row_size, csr->cols = rows.cols * rows.col_size;
  csr->nnz = rows.blocks * rows.block_entries();
  csr->wide_offsets = true;
  csr->row_ptr = std::move(entries.row_ptr), csr->col_idx = std::move(entries.column);
  csr->values = std::move(entries.value);
  return csr;
}

/// In blocks of `block`, rows as they come, or sorted by their length within windows where they differ. Single rows of
/// stencils are sorted by their pattern, so that nearly all slices share their columns.
std::shared_ptr<Storage> packed(const blocks::BlockRows& rows, int block, ValueType type, Stream& stream) {
  const Format& format = find_format("packed");
  ConversionInput input(csr_of(rows, type, stream), stream);
  const auto layout = [block](int window) {
    return Policy{{"block", block}, {"lanes", block <= 3 ? 1 : block}, {"shift", 0}, {"window", window}};
  };
  const Policy plain = layout(1), sorted = layout(1024), alike = layout(16384);
  const std::int64_t values = input.nnz() * static_cast<std::int64_t>(size_of(type));
  const auto choice = [&]() -> const Policy& {
    if (block == 1 && is_stencil(format.bytes(input, alike) - values, input.nnz())) return alike;
    return format.bytes(input, plain) > format.bytes(input, sorted) + values / 8 ? sorted : plain;
  };
  const Policy& taken = choice();
  require_memory(stream.device(), format.bytes(input, taken), "a level of multigrid");
  std::shared_ptr<Storage> storage = format.convert(input, taken);
  storage->format = format.name, storage->layout = taken;
  stream.synchronize();
  return storage;
}

/// The first kernel in the list that runs on the format: no measuring.
template <class Kernels>
const auto& kernel_on(const Kernels& list, const Storage& storage) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const auto& kernel) {
    return kernel.format == storage.format && kernel.backend == storage.device.backend;
  });
  if (found == list.end())
    throw Error(ErrorKind::internal, fmt::format("no kernel multiplies {} on this backend", storage.format));
  return *found;
}

const Kernel& packed_kernel(const Storage& storage) {
  const std::int64_t indices = storage.bytes - storage.nnz * static_cast<std::int64_t>(size_of(storage.type));
  const char* const name = is_stencil(indices, storage.nnz) ? "packed_stencil" : "packed";
  const auto taken = [&](const Kernel& kernel) {
    return kernel.name == name && kernel.backend == storage.device.backend &&
           (kernel.supports == nullptr || kernel.supports(storage));
  };
  const auto found = std::find_if(kernels().begin(), kernels().end(), taken);
  return found != kernels().end() ? *found : kernel_on(kernels(), storage);
}

/// Whether a product can leave the exchange out. On GPUs all ranks call it, or none. Collective.
bool nothing_moves(const Nodes& nodes, Device device) {
  const int here = nodes.stays_here() ? 1 : 0;
  return (device.backend == Backend::host ? here : nodes.ranks().all_reduce(here, Reduction::min)) == 1;
}

/// An exchange of the nodes of x. Where kernels reach the memory of other GPUs, these write there: on two H200 that takes
/// 7 µs, and 11 by NCCL. Collective.
MappedExchange exchange_of(const Nodes& nodes, bool stays_here, const ExchangeContext& context) {
  const bool peer = !stays_here && why_no_exchange("peer", context).empty();
  return make_mapped_exchange(peer ? "peer" : "halo", context, {nodes.starts(), {}}, nodes.ghosts());
}

}  // namespace

Operator::Operator(const NodeRows& rows, Context& context, ValueType type, int columns)
    : columns_(columns), type_(sum_type(type)), rows_(rows.count() * rows.row_size) {
  Communicator& ranks = context.communicator();
  Stream& stream = context.stream();
  const Nodes& nodes = *rows.cols;
  // An entry that moves is all values of a node.
  stays_here_ = nothing_moves(nodes, context.device());
  MappedExchange moving =
      exchange_of(nodes, stays_here_, context.exchange_context(type, std::int64_t{rows.col_size} * columns));
  exchange_ = std::move(moving.exchange);
  ranks.run_agreed([&] {
    find_places(nodes, *moving.map);
    const auto to = [this](std::int32_t j) { return place(j); };
    x_bytes_ = nodes.own() * rows.col_size * columns * static_cast<std::int64_t>(size_of(type));
    const std::int64_t cols = moving.map->length() * rows.col_size;
    const bool on_gpu = context.device().backend == Backend::cuda, square = rows.rows == rows.cols;
    if (on_gpu && columns == 1) return keep(uploaded(rows, moving.map->length(), to, stream), square, context, type);
    const bool packs =
        on_gpu || (rows.block_entries() == 1 && square && columns == 1 && rows.blocks() <= kLongestToPack * rows.count());
    storage_ = packs ? packed(SingleEntries(rows, cols, to), type, columns, stream)
                     : stored({rows, stored_block(rows)}, cols, to, type, stream);
    if (columns == 1) {
      RowStatistics statistics;
      statistics.rows = storage_->rows, statistics.nnz = storage_->nnz;
      statistics.mean_row =
          storage_->rows == 0 ? 0 : static_cast<double>(storage_->nnz) / static_cast<double>(storage_->rows);
      const Kernel& kernel = kernel_on(kernels(), *storage_);
      one_ = make_plan(kernel, storage_, kernel.policies(statistics)[0], stream);
    } else {
      plan_several(stream);
    }
  });
  moving.map->forget_columns();
}

void Operator::plan_several(Stream& stream) {
  const SpmmKernel& kernel = kernel_on(spmm_kernels(), *storage_);
  const RightHandSides sides{columns_, DenseOrder::row_major, DenseOrder::row_major};
  several_ = make_spmm_plan(kernel, storage_, sides, kernel.policies(*storage_, sides)[0], stream);
}

Operator::Operator(const blocks::BlockRows& rows, const Nodes& cols, bool square, Context& context, ValueType type,
                   int columns, const Buffer* modes)
    : columns_(columns), type_(sum_type(type)), rows_(rows.count * rows.row_size) {
  Communicator& ranks = context.communicator();
  Stream& stream = context.stream();
  stays_here_ = nothing_moves(cols, context.device());
  MappedExchange moving =
      exchange_of(cols, stays_here_, context.exchange_context(type_, std::int64_t{rows.col_size} * columns));
  exchange_ = std::move(moving.exchange);
  ranks.run_agreed([&] {
    find_places(cols, *moving.map);
    x_bytes_ = cols.own() * rows.col_size * columns * static_cast<std::int64_t>(size_of(type_));
    with_places(rows, stream, [&](const blocks::BlockRows& placed) {
      if (columns == 1) return keep(placed, square, context, square ? type : type_, modes);
      if (blocks::ColumnsProduct::takes(placed.row_size, placed.col_size, columns, placed.count)) {
        columns_on_gpu_.emplace(placed, type_, columns, stream);
        return;
      }
      // The packed format has no blocks of 5, and none that are wider than the matrix.
      const int block = placed.cols == 0 ? 1 : stored_block(placed);
      storage_ = packed(placed, block == 5 ? 1 : block, type_, stream);
      plan_several(stream);
    });
  });
  moving.map->forget_columns();
}

void Operator::find_places(const Nodes& nodes, ColumnMap& map) {
  own_ = static_cast<std::int32_t>(nodes.own());
  if (nodes.ghosts().empty()) return;
  std::int64_t first[] = {nodes.ghosts().front()};  // they lie in ascending order
  map.renumber(first);
  ghost_shift_ = static_cast<std::int32_t>(first[0] - own_);
}

template <class Use>
void Operator::with_places(const blocks::BlockRows& rows, Stream& stream, const Use& use) const {
  if (ghost_shift_ == 0) use(rows);
  else use(blocks::with_gap(rows, own_, ghost_shift_, stream));
}

void Operator::keep(const blocks::BlockRows& rows, bool square, Context& context, ValueType type, const Buffer* modes) {
  Stream& stream = context.stream();
  // BlockProduct has a kernel for many single entries in f32 and f16.
  if (square && type == ValueType::f64 && rows.block_entries() == 1 && rows.count >= kManyOfSingleRows) {
    storage_ = packed(rows, 1, type, stream);
    const auto& kernel = packed_kernel(*storage_);
    one_ = make_plan(kernel, storage_, kernel.policies({})[0], stream);
    return;
  }
  on_gpu_.emplace(rows, type, square, stream, modes);
  if (!stays_here_ || !square) return;
  require_memory(context.device(), x_bytes_, "a level of multigrid");
  other_x_ = Buffer(context.device(), at(x_bytes_));
}

void Operator::update(const blocks::BlockRows& rows, Stream& stream) {
  if (on_gpu_) return on_gpu_->update(rows, stream);
  if (columns_on_gpu_) return columns_on_gpu_->update(rows, stream);
  with_places(rows, stream, [&](const blocks::BlockRows& placed) {
    ConversionInput input(csr_of(placed, storage_->type, stream), stream);
    update_packed(*storage_, input);
    stream.synchronize();
  });
}

void Operator::update(const NodeRows& rows, Stream& stream) {
  const auto to = [this](std::int32_t j) { return place(j); };
  if (on_gpu_) return update(uploaded(rows, 0, to, stream), stream);
  if (storage_->format == "packed") return update_values(*storage_, SingleEntries(rows, storage_->cols, to).view(), stream);
  write_values(*storage_, {rows, stored_block(rows)}, stream);
}

void Operator::multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const {
  if (stays_here_) return run(alpha, x, beta, y, stream);
  copy_on_device(this->x(), x, at(x_bytes_), stream);
  multiply(alpha, beta, y, stream);
}

void Operator::multiply(double alpha, double beta, void* y, Stream& stream) const {
  if (stays_here_) return run(alpha, x(), beta, y, stream);
  exchange_->start(stream), exchange_->finish(stream);
  run(alpha, exchange_->x(), beta, y, stream);
}

void Operator::multiply(blocks::SmootherStep step, Stream& stream) const {
  const void* const d = x();
  x_is_other_ = !x_is_other_;
  step.e = x();
  on_gpu_->multiply(d, step, stream);
}

void Operator::run(double alpha, const void* x, double beta, void* y, Stream& stream) const {
  if (on_gpu_) on_gpu_->multiply(alpha, x, beta, y, stream);
  else if (columns_on_gpu_) columns_on_gpu_->multiply(alpha, x, beta, y, stream);
  else if (one_) one_->multiply(alpha, x, beta, y, stream);
  else several_->multiply(alpha, x, columns_, beta, y, columns_, stream);
}

std::int64_t Operator::matrix_bytes() const {
  return on_gpu_ ? on_gpu_->bytes() : columns_on_gpu_ ? columns_on_gpu_->bytes() : storage_->bytes;
}

std::int64_t Operator::device_bytes() const {
  return matrix_bytes() + exchange_->device_bytes() + static_cast<std::int64_t>(other_x_.bytes()) +
         (one_       ? one_->extra_bytes()
          : several_ ? several_->extra_bytes()
                     : 0);
}

std::int64_t Operator::compulsory_bytes(double beta) const {
  return matrix_bytes() + x_bytes_ + rows_ * columns_ * static_cast<std::int64_t>(size_of(type_)) * (beta == 0 ? 1 : 2);
}

}  // namespace shardmat::multigrid
