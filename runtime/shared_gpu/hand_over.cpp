#include "runtime/shared_gpu/hand_over.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/host_vector.h"
#include "kernels/vector.h"
#include "runtime/matrix/dense_copy.h"
#include "runtime/matrix/vectors.h"

namespace shardmat {
namespace {

std::size_t packed_bytes(std::int64_t rows, std::int64_t columns, ValueType type) {
  return static_cast<std::size_t>(rows * columns) * size_of(type);
}

/// Bytes from the first entry to the last. REQUIRES: there are entries.
std::size_t extent(const ConstDense& view) {
  const bool by_rows = view.order == DenseOrder::row_major;
  const std::int64_t lines = by_rows ? view.rows : view.columns, length = by_rows ? view.columns : view.rows;
  return static_cast<std::size_t>((lines - 1) * view.leading + length) * size_of(view.type);
}

Dense packed_at(void* memory, const ConstDense& view) {
  return {memory, view.rows, view.columns, view.columns, DenseOrder::row_major, view.type, view.device};
}

/// The same entries; one column lies row by row if it has no gaps.
Dense by_rows_if_one_column(Dense view) {
  if (view.columns == 1 && view.order == DenseOrder::column_major) view.order = DenseOrder::row_major, view.leading = 1;
  return view;
}

/// In memory of the host, of one type.
void copy_on_host(const ConstDense& from, const Dense& to) {
  Stream stream{Device{}};
  copy_matrix(from, to, stream);
}

}  // namespace

void HandOver::give(std::string_view what, const ConstDense& view, ValueType type) {
  const Dense read_only{
      const_cast<void*>(view.data), view.rows, view.columns, view.leading, view.order, view.type, view.device};
  add(what, read_only, type, true, false);
}

void HandOver::give_and_take(std::string_view what, const Dense& view, ValueType type, bool read) {
  add(what, view, type, read, true);
}

void HandOver::add(std::string_view what, const Dense& given, ValueType type, bool read, bool taken) {
  if (views_.size() == kMost)
    throw Error(ErrorKind::internal, fmt::format("a call hands over more than {} matrices", kMost));
  const Dense view = by_rows_if_one_column(given);
  Piece& piece = mine_.pieces[views_.size()];
  piece.rows = view.rows, piece.columns = view.columns, piece.leading = view.leading, piece.order = view.order;
  piece.type = type, piece.read = read, piece.taken = taken;
  views_.push_back(view);
  const std::size_t bytes = packed_bytes(view.rows, view.columns, type);
  const bool on_gpu = view.device.backend == Backend::cuda && bytes > 0;
  if (on_gpu) {
    const DeviceAddress address = context_.require_on_device(what, view.data, extent(view));
    wait_for_caller();
    if (view.type == type && (context_.owns() || address.can_be_shared)) {
      piece.place = context_.owns() ? Place::own : Place::opened;
      if (!context_.owns()) {
        piece.allocation = context_.allocations().pass_on(address, context_.device());
        piece.offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(view.data) - address.base);
      }
      operands_.emplace_back();
      return;
    }
  }
  if (on_gpu || view.type != type) return add_converted(what, view, piece);
  Operand operand{bytes, {}, {}};
  if (read && bytes > 0) operand.give = [view](void* to) { copy_on_host(view, packed_at(to, view)); };
  if (taken && bytes > 0)
    operand.take = [view](const void* from) { copy_on_host(packed_at(const_cast<void*>(from), view), view); };
  operands_.push_back(std::move(operand));
}

/// By way of f64 in host memory.
void HandOver::add_converted(std::string_view what, const Dense& view, const Piece& piece) {
  const std::size_t bytes = packed_bytes(view.rows, view.columns, piece.type);
  Stream& stream = context_.stream_of(view.device);
  Operand operand{bytes, {}, {}};
  if (piece.read) {
    const HostVector<double> values = to_host(view, stream);
    require_in_range(piece.type, values, what);
    const auto converted = std::make_shared<HostVector<std::byte>>(bytes);
    Stream host{Device{}};
    to_device(converted->data(), values, piece.type, host);
    operand.give = [converted, bytes](void* to) {
      if (bytes > 0) std::memcpy(to, converted->data(), bytes);
    };
  }
  if (piece.taken)
    operand.take = [view, &stream, type = piece.type](const void* from) {
      Stream host{Device{}};
      from_host(to_host(from, view.rows * view.columns, type, host), view, stream);
    };
  operands_.push_back(std::move(operand));
}

void HandOver::wait_for_caller() {
  if (waited_) return;
  waited_ = true;
  if (stream_.device().backend == Backend::cuda) stream_.synchronize();
  else wait_for_default_streams(context_.device());
}

std::vector<Operand> HandOver::operands() {
  std::vector<Operand> all(1);
  if (context_.backend() == Backend::cuda) {
    if (!context_.owns()) mine_.kept_count = context_.allocations().list_kept(mine_.kept, context_.device());
    all[0] = Operand::given(&mine_, sizeof mine_);
  }
  for (Operand& operand : operands_) all.push_back(std::move(operand));
  return all;
}

void HandOver::gather(std::span<const GroupOperand> all) {
  all_ = all;
  notes_ = all[0].as<Note>();
  context_.group().owners().run_agreed([&] {
    for (std::size_t place = 1; place < notes_.size(); ++place)
      context_.allocations().close_others(static_cast<int>(place), {notes_[place].kept, notes_[place].kept_count});
    for (std::size_t index = 0; index < views_.size(); ++index) {
      const Piece& mine = mine_.pieces[index];
      bool on_gpu = false;
      for (const Note& note : notes_) on_gpu = on_gpu || note.pieces[index].place != Place::host;
      if (on_gpu) {
        wholes_.push_back(gather_on_device(index));
        continue;
      }
      const auto entries = static_cast<std::int64_t>(all[index + 1].bytes() / size_of(mine.type));
      wholes_.push_back({all[index + 1].data, entries / mine.columns, mine.columns, mine.columns, DenseOrder::row_major,
                         mine.type, Device{}});
    }
  });
}

/// Calls f(piece, its rows in the matrix of the group, its rows in shared memory of the host) for each rank of the group.
template <class F>
void HandOver::for_pieces(std::size_t index, const Dense& whole, const F& f) const {
  Dense part = whole;
  for (std::size_t place = 0; place < notes_.size(); ++place) {
    const Piece& piece = notes_[place].pieces[index];
    part.rows = piece.rows;
    Dense here = part;
    if (piece.place == Place::host) {
      here.device = Device{}, here.data = all_[index + 1].data + all_[index + 1].starts[place];
    } else if (piece.place == Place::own) {
      here = views_[index];
    } else {
      std::byte* const base = context_.allocations().open(static_cast<int>(place), piece.allocation, context_.stream());
      here.data = base + piece.offset, here.order = piece.order, here.leading = piece.leading;
    }
    if (piece.rows > 0) f(piece, part, here);
    part.data = static_cast<std::byte*>(part.data) + packed_bytes(piece.rows, piece.columns, piece.type);
  }
}

Dense HandOver::gather_on_device(std::size_t index) {
  const Piece& mine = mine_.pieces[index];
  std::int64_t rows = 0;
  for (const Note& note : notes_) rows += note.pieces[index].rows;
  const Device device = context_.device();
  void* const memory = context_.allocations().room(index, device, packed_bytes(rows, mine.columns, mine.type));
  const Dense whole{memory, rows, mine.columns, mine.columns, DenseOrder::row_major, mine.type, device};
  for_pieces(index, whole, [&](const Piece& piece, const Dense& part, const Dense& here) {
    if (!piece.read) return;
    if (piece.place != Place::host) return copy_matrix(here, part, context_.stream());
    copy_to_device(part.data, here.data, packed_bytes(part.rows, part.columns, part.type), context_.stream());
  });
  return whole;
}

void HandOver::give_back() {
  for (std::size_t index = 0; index < views_.size(); ++index) {
    if (wholes_[index].device.backend == Backend::host) continue;
    for_pieces(index, wholes_[index], [&](const Piece& piece, const Dense& part, const Dense& here) {
      if (!piece.taken) return;
      if (piece.place != Place::host) return copy_matrix(part, here, context_.stream());
      copy_to_host(here.data, part.data, packed_bytes(part.rows, part.columns, part.type), context_.stream());
    });
  }
  context_.stream().synchronize();
}

}  // namespace shardmat
