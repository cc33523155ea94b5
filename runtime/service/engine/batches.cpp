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
#include "kernels/vector.h"
#include "partition/batched/batch_body.h"

namespace shardmat::service {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

/// Matrices of a request that this rank multiplies.
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

std::vector<Batches::Piece> Batches::own_pieces(const MultiplyBatches& command, std::vector<std::string>& wrong) {
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
  std::vector<Piece> pieces;
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
    if (end == 0) continue;
    Piece piece;
    piece.x = body.x();
    piece.y = memories_.at({0, command.parts[i].y_offset, 0}, body.shape().y_bytes()).data();
    piece.batch = body.view(begin, end, piece.values);
    try {
      validate(piece.batch, "the batch", begin);
      pieces.push_back(std::move(piece));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::input) throw;
      wrong[i] = error.what();
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
  for (const Piece& piece : pieces) all.append(piece.batch);
  const BatchView batch = all.view();
  const auto stored = upload(batch, like.type, stream);
  const std::size_t x_bytes = place(batch.cols()) * row, y_bytes = place(batch.rows()) * row;
  require_memory(context_.device(), static_cast<std::int64_t>(x_bytes + y_bytes), "X and Y of batches");
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
    const std::vector<Piece> pieces = own_pieces(command, told.wrong);
    told.seconds = multiply(pieces, command.parts.front().shape);
  });
  return told;
}

}  // namespace shardmat::service
