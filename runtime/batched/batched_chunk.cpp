#include "runtime/batched/batched_chunk.h"

#include <algorithm>

#include "kernels/base/parallel.h"

namespace shardmat {
void BatchedChunk::read(const BatchRange& range, const ChunkOptions& options, std::mutex& files) {
  range_ = range;
  {
    const std::lock_guard lock(files);
    host_ = options.source->read(range.begin, range.end);
    x_values_ = options.x->read(range.first_col, range.first_col + range.cols);
  }
  if (options.transpose) host_ = transposed(host_.view());
  if (options.format == BatchFormat::coo) {
    coo_ = to_coo(host_.view());
    packed_ = std::make_unique<PackedBatch>(coo_.view(), options.type);
  } else {
    packed_ = std::make_unique<PackedBatch>(host_.view(), options.type);
  }
  const auto entries = [&](std::int64_t rows) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(options.columns);
  };
  x_place_ = aligned(packed_->bytes());
  outgoing_bytes_ = x_place_ + entries(range.cols) * size_of(options.type);
  y_place_ = aligned(outgoing_bytes_);
  result_bytes_ = entries(range.rows) * size_of(sum_type(options.type));
  outgoing_.reserve(outgoing_bytes_, device_, page_locked_);
  returned_.reserve(result_bytes_, device_, page_locked_);
  packed_->write(outgoing_.as<std::byte>());
  require_in_range(options.type, x_values_, "X");
  dispatch_operands(options.type, [&](auto of_a, auto) {
    using A = typename decltype(of_a)::type;
    A* out = reinterpret_cast<A*>(outgoing_.as<std::byte>() + x_place_);
    parallel_ranges(std::ssize(x_values_), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) out[i] = static_cast<A>(x_values_[static_cast<std::size_t>(i)]);
    });
  });
}

void BatchedChunk::upload(Stream& stream) {
  const std::size_t bytes = y_place_ + result_bytes_;
  if (memory_.bytes() < bytes) {
    memory_ = Buffer();
    require_memory(device_, static_cast<std::int64_t>(bytes), "a chunk of the batch with its X and Y");
    memory_ = Buffer(device_, bytes);
  }
  batch_ = std::make_shared<const DeviceBatch>(packed_->at(device_, memory_.data()));
  copy_to_device_async(memory_.data(), outgoing_.data(), outgoing_bytes_, stream);
}

void BatchedChunk::place(BatchedPlan& plan, Stream& stream) {
  if (work_.bytes() < plan.work_bytes()) {
    work_ = Buffer();
    work_ = Buffer(device_, plan.work_bytes());
  }
  staging_.reserve(plan.staging_bytes(), device_, page_locked_);
  plan.place(work_.data(), staging_.data(), stream);
}

void BatchedChunk::download(Stream& stream) { copy_to_host_async(returned_.data(), y(), result_bytes_, stream); }

}  // namespace shardmat
