// Chunks of a batch through a device, each in three stages at once: while one is multiplied and copied, the next is read by
// a thread and the one before is used.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "kernels/batched/batched_tuner.h"
#include "runtime/batched/batched_chunk.h"
#include "runtime/context.h"

namespace shardmat {

class BatchedStream {
 public:
  /// All arguments but `plan` live as long as this; `files` is held by whoever reads or writes files meanwhile, because HDF5
  /// takes one thread at a time. The kernel is chosen on the first chunk; a later one that it cannot take
  /// gets what is expected to be the fastest.
  BatchedStream(Context& context, const std::vector<BatchRange>& ranges, const ChunkOptions& options, std::int64_t columns,
                const BatchedRequest& plan, const Epilogue& epilogue, std::mutex& files);
  ~BatchedStream();
  BatchedStream(const BatchedStream&) = delete;
  BatchedStream& operator=(const BatchedStream&) = delete;

  /// The next range with its result on the host; give_back() it. REQUIRES: fewer calls so far than ranges. Throws what
  /// reading or multiplying threw.
  BatchedChunk* next();
  void give_back(BatchedChunk& chunk);

  double read_seconds() const;
  double device_seconds() const { return device_seconds_; }  ///< copies and products
  std::int64_t device_bytes() const;
  /// Chunks that the chosen kernel could not take.
  std::int64_t other_kernels() const { return other_kernels_; }
  /// What the first chunk's kernel was chosen by; null before.
  const ChosenBatchedPlan* chosen() const { return chosen_ ? &*chosen_ : nullptr; }

 private:
  struct Slot {
    BatchedChunk chunk;
    std::unique_ptr<BatchedPlan> plan;
    Event uploaded, multiplied, begun, done;
    Slot(Device device);
  };

  void read_all();
  /// Puts the next chunk that has been read onto the device's queues; false if all are there.
  bool begin_next();
  std::unique_ptr<BatchedPlan> plan_for(const BatchedChunk& chunk);

  Context& context_;
  const std::vector<BatchRange>& ranges_;
  const ChunkOptions& options_;
  std::int64_t columns_;
  BatchedRequest request_;
  Epilogue epilogue_;
  Stream upload_, download_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::deque<Slot*> running_;  ///< on the device's queues, in order
  std::optional<ChosenBatchedPlan> chosen_;
  std::size_t begun_ = 0;
  double device_seconds_ = 0;
  std::int64_t other_kernels_ = 0;
  std::mutex& files_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Slot*> free_, read_;  ///< guarded, as is what follows
  std::exception_ptr failed_;
  bool stop_ = false;
  double read_seconds_ = 0;
  std::thread reader_;
};

}  // namespace shardmat
