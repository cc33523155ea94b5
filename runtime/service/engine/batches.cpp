#include "runtime/service/engine/batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/timer.h"
#include "kernels/batched/batch.h"
#include "kernels/batched/batched_tuner.h"
#include "kernels/batched/device_batch.h"
#include "kernels/vector.h"
#include "partition/batched/batch_body.h"

namespace shardmat::service {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

/// Which matrices of a request this rank multiplies.
struct Batches::Range {
  std::size_t request = 0;
  BatchBody body;
  std::int64_t begin = 0, end = 0;
};

/// The same, as it multiplies them.
struct Batches::Piece {
  const std::byte* x = nullptr;  ///< of all matrices of the request, and their y
  std::byte* y = nullptr;
  HostVector<double> values;
  BatchView batch;
};

Batches::Batches(Context& context, Memories& memories, bool at_home) : context_(context), memories_(memories) {
  const std::vector<int> all = context.communicator().all_gather(at_home ? 1 : 0);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (static_cast<int>(rank) == context.communicator().rank() && all[rank] != 0) place_ = at_home_;
    at_home_ += all[rank];
  }
}

std::vector<Batches::Range> Batches::own_ranges(const MultiplyBatches& command, std::vector<std::string>& wrong) {
  std::vector<std::optional<BatchBody>> bodies;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < command.parts.size(); ++i) {
    const BatchPart& part = command.parts[i];
    const BatchBody body(part.shape, memories_.at({0, part.offset, 0}, part.shape.bytes()));
    wrong[i] = body.fault_of_offsets();
    bodies.push_back(wrong[i].empty() ? std::optional(body) : std::nullopt);
    if (wrong[i].empty()) all += body.weight();
  }
  // The matrices that begin in this rank's part of all weights, one after another.
  const std::int64_t each = all / at_home_ + 1;
  std::int64_t before = 0;
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    if (!bodies[i]) continue;
    const BatchBody& body = *bodies[i];
    std::int64_t begin = 0, end = 0;
    for (std::int64_t m = 0; m < body.shape().count; ++m) {
      if (before / each == place_) {
        if (end == 0) begin = m;
        end = m + 1;
      }
      before += body.weight(m);
    }
    if (end > 0) ranges.push_back({i, body, begin, end});
  }
  return ranges;
}

/// Throws Error(resources) unless this rank has the memory for all that it takes for its part of a product, before it takes
/// any: what views, a merged batch, its block and X and Y need beside the bodies in the arena.
void Batches::require_room(const std::vector<Range>& ranges) const {
  if (ranges.empty()) return;
  BatchBody::Sizes all;
  for (const Range& range : ranges) {
    const BatchBody::Sizes one = range.body.sizes(range.begin, range.end);
    all.count += one.count, all.rows += one.rows, all.cols += one.cols, all.nnz += one.nnz;
  }
  const BatchShape& like = ranges.front().body.shape();
  const std::int64_t values = 8 * all.nnz,
                     merged = ranges.size() > 1 ? 16 * (all.count + 1) + 8 * (all.rows + 1) + 12 * all.nnz : 0,
                     offsets = 20 * (all.count + 1),  // of the block, in 32 bits, and its first entries
      block = static_cast<std::int64_t>(csr_block_bytes(all.rows, all.nnz, like.type)),
                     x_and_y = (all.rows + all.cols) * like.columns * static_cast<std::int64_t>(like.entry());
  const bool on_host = context_.device().backend == Backend::host;
  require_host_memory(values + merged + offsets + block + (on_host ? x_and_y : 0), "the batch on this rank");
  if (!on_host) require_memory(context_.device(), block + x_and_y, "the batch on this rank");
}

std::vector<Batches::Piece> Batches::make_pieces(const MultiplyBatches& command, const std::vector<Range>& ranges,
                                                 std::vector<std::string>& wrong) {
  std::vector<Piece> pieces;
  for (const Range& range : ranges) {
    Piece piece;
    piece.x = range.body.x();
    piece.y = memories_.at({0, command.parts[range.request].y_offset, 0}, range.body.shape().y_bytes()).data();
    piece.batch = range.body.view(range.begin, range.end, piece.values);
    try {
      validate(piece.batch, "the batch", range.begin);
      pieces.push_back(std::move(piece));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::input) throw;
      wrong[range.request] = error.what();
    }
  }
  return pieces;
}

Multiplied Batches::multiply(const std::vector<Piece>& pieces, const BatchShape& like) {
  Multiplied took;
  if (pieces.empty()) return took;
  Timer timer;
  Stream& stream = context_.stream();
  const std::size_t row = place(like.columns) * like.entry();
  HostBatch all;
  if (pieces.size() > 1) {
    std::int64_t count = 0, rows = 0, nnz = 0;
    for (const Piece& piece : pieces) count += piece.batch.count(), rows += piece.batch.rows(), nnz += piece.batch.nnz();
    all.reserve(count, rows, nnz);
    for (const Piece& piece : pieces) all.append(piece.batch);
  }
  const BatchView batch = pieces.size() > 1 ? all.view() : pieces.front().batch;
  const auto stored = upload(batch, like.type, stream);
  const std::size_t x_bytes = place(batch.cols()) * row, y_bytes = place(batch.rows()) * row;
  Buffer x(context_.device(), x_bytes), y(context_.device(), y_bytes);
  std::size_t at = 0;
  for (const Piece& piece : pieces) {
    const std::size_t bytes = place(piece.batch.cols()) * row;
    if (bytes > 0)
      copy_to_device(x.as<std::byte>() + at, piece.x + place(piece.batch.first_col.front()) * row, bytes, stream);
    at += bytes;
  }
  took.copy_in = timer.seconds();
  timer = Timer();
  BatchedRequest request;
  request.measure = false, request.reproducible = true;
  const ChosenBatchedPlan chosen = choose_batched_plan(stored, like.columns, request, stream);
  chosen.plan->multiply(x.data(), like.columns, y.data(), like.columns, {}, stream);
  stream.synchronize();
  took.product = timer.seconds();
  timer = Timer();
  at = 0;
  for (const Piece& piece : pieces) {
    const std::size_t bytes = place(piece.batch.rows()) * row;
    if (bytes > 0) copy_to_host(piece.y + place(piece.batch.first_row.front()) * row, y.as<std::byte>() + at, bytes, stream);
    at += bytes;
  }
  stream.synchronize();
  took.copy_out = timer.seconds();
  return took;
}

BatchesMultiplied Batches::multiply(const MultiplyBatches& command) {
  BatchesMultiplied told;
  told.wrong.resize(command.parts.size());
  context_.communicator().run_agreed([&] {
    if (place_ < 0 || command.parts.empty()) return;
    const std::vector<Range> ranges = own_ranges(command, told.wrong);
    require_room(ranges);
    told.seconds = multiply(make_pieces(command, ranges, told.wrong), command.parts.front().shape);
  });
  return told;
}

}  // namespace shardmat::service
