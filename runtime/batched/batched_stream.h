// Streams the chunks of a batch through a device in three concurrent stages: a thread reads one chunk, the device copies and
// multiplies another, and the caller uses the result of a third.
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
#include "runtime/context/context.h"

namespace shardmat {

class BatchedStream {
 public:
  /// All arguments but `plan` must outlive this object. Lock `files` to read or write files meanwhile, because HDF5 takes
  /// one thread at a time. The kernel is chosen on the first chunk. A later chunk that this kernel cannot multiply gets the
  /// kernel that is predicted to be the fastest.
  BatchedStream(Context& context, const std::vector<BatchRange>& ranges, const ChunkOptions& options, std::int64_t columns,
                const BatchedRequest& plan, const Epilogue& epilogue, std::mutex& files);
  ~BatchedStream();
  BatchedStream(const BatchedStream&) = delete;
  BatchedStream& operator=(const BatchedStream&) = delete;

  /// The next chunk with its result on the host; return it by give_back(). REQUIRES: fewer calls than ranges so far. Throws
  /// what reading or multiplying threw.
  BatchedChunk* next();
  void give_back(BatchedChunk& chunk);

  double read_seconds() const;
  double device_seconds() const { return device_seconds_; }  ///< copies and products
  std::int64_t device_bytes() const;
  /// Chunks that the chosen kernel could not multiply.
  std::int64_t other_kernels() const { return other_kernels_; }
  /// The plan of the first chunk; null before it was chosen.
  const ChosenBatchedPlan* chosen() const { return chosen_ ? &*chosen_ : nullptr; }

 private:
  struct Slot {
    BatchedChunk chunk;
    std::unique_ptr<BatchedPlan> plan;
    Event uploaded, multiplied, begun, done;
    Slot(Device device);
  };

  void read_all();
  /// Enqueues the next chunk that has been read on the device's streams; false if none is left.
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
  std::deque<Slot*> running_;  ///< enqueued on the device, in order
  std::optional<ChosenBatchedPlan> chosen_;
  std::size_t begun_ = 0;
  double device_seconds_ = 0;
  std::int64_t other_kernels_ = 0;
  std::mutex& files_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Slot*> free_, read_;  ///< mutex_ guards these and the members below
  std::exception_ptr failed_;
  bool stop_ = false;
  double read_seconds_ = 0;
  std::thread reader_;
};

}  // namespace shardmat
