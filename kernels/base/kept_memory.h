// Memory of one kind: what is in use, and what was freed and is kept for the next allocation while a KeptArrays lives.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace shardmat {

/// Objects live as long as the process: static ones may hold memory.
class KeptMemory {
 public:
  KeptMemory();
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  /// Null if there is not enough.
  void* allocate(std::size_t bytes);
  void free(void* memory) noexcept;
  void free_kept() noexcept;
  std::size_t kept_bytes();

  /// A KeptArrays begins to live (1), or ends (-1).
  void keep(int more) noexcept;

 protected:
  ~KeptMemory() = default;

  struct Block {
    std::size_t bytes;
    std::uint64_t freed;            ///< counts the frees
    std::shared_ptr<void> part_of;  ///< null: it is no part of anything
  };
  bool keeps() const { return keepers_ > 0; }

 private:
  using Blocks = std::map<void*, Block>;  ///< by their memory; they change hands without an allocation that could fail

  /// What is allocated for `bytes`: more, where blocks of several sizes should serve each other.
  virtual std::size_t rounded(std::size_t bytes) const { return bytes; }
  /// Null if there is not enough. Sets what the block holds.
  virtual void* fresh(std::size_t bytes, Block& block) = 0;
  virtual void release(void* memory, Block& block) noexcept = 0;
  /// What may be kept beyond the most that was in use at once.
  virtual std::size_t slack([[maybe_unused]] std::size_t most_in_use) const { return 0; }
  /// Nobody works on blocks any more that were freed before.
  virtual void settle() {}
  /// Nothing is kept from now on.
  virtual void stop_keeping() noexcept {}

  Blocks::node_type take_kept(std::size_t bytes);
  void free_kept_beyond(std::size_t most) noexcept;
  void bound_kept() noexcept { free_kept_beyond(most_in_use_ + slack(most_in_use_) - bytes_in_use_); }

  std::mutex mutex_;
  Blocks in_use_, kept_;
  std::uint64_t frees_ = 0, settled_ = 0;
  std::size_t bytes_in_use_ = 0, most_in_use_ = 0, bytes_kept_ = 0;
  int keepers_ = 0;
};

}  // namespace shardmat
