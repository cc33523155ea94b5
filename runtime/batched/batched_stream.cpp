#include "runtime/batched/batched_stream.h"

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "runtime/context/context_scope.h"

namespace shardmat {
namespace {

constexpr int kSlots = 3;  ///< being read, on the device, being used

}  // namespace

BatchedStream::Slot::Slot(Device device)
    : chunk(device, true), uploaded(device), multiplied(device), begun(device), done(device) {}

BatchedStream::BatchedStream(Context& context, const std::vector<BatchRange>& ranges, const ChunkOptions& options,
                             std::int64_t columns, const BatchedRequest& plan, const Epilogue& epilogue, std::mutex& files)
    : context_(context),
      ranges_(ranges),
      options_(options),
      columns_(columns),
      request_(plan),
      epilogue_(epilogue),
      upload_(context.device()),
      download_(context.device()),
      files_(files) {
  for (int i = 0; i < kSlots; ++i) {
    slots_.push_back(std::make_unique<Slot>(context.device()));
    free_.push_back(slots_.back().get());
  }
  reader_ = std::thread([this] { read_all(); });
}

BatchedStream::~BatchedStream() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  reader_.join();
}

void BatchedStream::read_all() {
  try {
    const ContextScope scope(context_);
    for (const BatchRange& range : ranges_) {
      Slot* slot = nullptr;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || !free_.empty(); });
        if (stop_) return;
        slot = free_.front();
        free_.pop_front();
      }
      const Timer timer;
      slot->chunk.read(range, options_, files_);
      const std::lock_guard lock(mutex_);
      read_seconds_ += timer.seconds();
      read_.push_back(slot);
      changed_.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failed_ = std::current_exception();
    changed_.notify_all();
  }
}

std::unique_ptr<BatchedPlan> BatchedStream::plan_for(const BatchedChunk& chunk) {
  if (!chosen_) chosen_ = choose_batched_plan(chunk.batch(), columns_, request_, context_.stream());
  const BatchedKernel& kernel = find_batched_kernel(chosen_->plan->kernel, context_.device().backend);
  try {
    return make_batched_plan(kernel, chunk.batch(), columns_, chosen_->plan->policy);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::usage || request_.kernel != "auto") throw;
  }
  ++other_kernels_;
  BatchedRequest unmeasured = request_;
  unmeasured.measure = false;
  return choose_batched_plan(chunk.batch(), columns_, unmeasured, context_.stream()).plan;
}

bool BatchedStream::begin_next() {
  if (begun_ == ranges_.size()) return false;
  Slot* slot = nullptr;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failed_ || !read_.empty(); });
    if (read_.empty()) std::rethrow_exception(failed_);
    slot = read_.front();
    read_.pop_front();
  }
  ++begun_;
  Stream& stream = context_.stream();
  slot->begun.record(upload_);
  slot->chunk.upload(upload_);
  slot->uploaded.record(upload_);
  stream.wait_for(slot->uploaded);
  slot->plan = plan_for(slot->chunk);
  slot->chunk.place(*slot->plan, stream);
  slot->plan->multiply(slot->chunk.x(), columns_, slot->chunk.y(), columns_, epilogue_, stream);
  slot->multiplied.record(stream);
  download_.wait_for(slot->multiplied);
  slot->chunk.download(download_);
  slot->done.record(download_);
  running_.push_back(slot);
  return true;
}

BatchedChunk* BatchedStream::next() {
  if (running_.empty()) begin_next();
  // Another one keeps the device busy while the first is waited for and used; if it is not there yet, nothing waits for it.
  bool ready = false;
  {
    const std::lock_guard lock(mutex_);
    ready = !read_.empty();
  }
  if (ready && running_.size() < 2) begin_next();
  Slot* slot = running_.front();
  running_.pop_front();
  slot->done.synchronize();
  device_seconds_ += slot->done.seconds_since(slot->begun);
  return &slot->chunk;
}

void BatchedStream::give_back(BatchedChunk& chunk) {
  const auto slot = std::find_if(slots_.begin(), slots_.end(), [&](const auto& s) { return &s->chunk == &chunk; });
  const std::lock_guard lock(mutex_);
  free_.push_back(slot->get());
  changed_.notify_all();
}

double BatchedStream::read_seconds() const {
  const std::lock_guard lock(mutex_);
  return read_seconds_;
}

std::int64_t BatchedStream::device_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& slot : slots_) bytes += slot->chunk.device_bytes();
  return bytes;
}

}  // namespace shardmat
