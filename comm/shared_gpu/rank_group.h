// The ranks of a host that work through one of them, the owner: the others, its feeders, hand over what they have in shared
// memory, and sleep until the owner has done the work.
//
// A call, made by all ranks of a group:
//
//   feeder  says how much it has ─► sleeps ─► copies it to its place ─► sleeps ───────────────────► takes its results
//   owner   waits for all ranks, makes room ─► copies its own, waits for all ─► works on all of it ─► says that it is done
//
// Feeders make no MPI call meanwhile: they sleep on a futex. Owners meet in a communicator of their own, also to agree on
// errors, so that a call fails on all ranks alike.
//
// Threads: one thread at a time of each rank.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "comm/shared_gpu/shared_memory.h"

namespace shardmat {

/// What one rank hands over or takes back in a call: `bytes` in a row of its group's, by rank.
struct Operand {
  std::size_t bytes = 0;
  std::function<void(void* to)> give;          ///< writes all bytes; null: nothing is handed over
  std::function<void(const void* from)> take;  ///< reads all bytes; null: nothing is taken back

  static Operand given(const void* from, std::size_t bytes);
  static Operand taken(void* to, std::size_t bytes);
};

/// An operand of the whole group in shared memory, aligned to pages.
struct GroupOperand {
  std::byte* data = nullptr;
  std::vector<std::size_t> starts;  ///< of each rank's bytes, and their end

  std::size_t bytes() const { return starts.back(); }
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data), bytes() / sizeof(T)};
  }
};

class RankGroup {
 public:
  /// `owners`: as owners_of_ranks() gives them. Collective; the same error on all ranks. `all` must outlive the group; its
  /// deadline is that of the group.
  RankGroup(Communicator& all, const std::vector<int>& owners);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  bool owns() const { return place_ == 0; }
  int place() const { return place_; }  ///< this rank's number in its group
  int size() const { return static_cast<int>(members_.size()); }
  int owner() const { return members_.front(); }  ///< its rank among all ranks
  Communicator& all() const { return all_; }
  /// The ranks that own rows. REQUIRES: owns().
  Communicator& owners() { return *owners_; }

  enum class Keep {
    memory,   ///< shared memory stays for the next call
    nothing,  ///< it is given back after work(); for operands without results
  };
  /// Collective over all ranks. prepare() returns this rank's operands, as many on each rank and at most 8, whose give()
  /// does not throw; work() gets those of the group, on the owner, and makes results in them. Returns on all ranks of a
  /// group what work() returned. An error of prepare() on any rank is thrown on all ranks of all groups (AgreedError), and
  /// work() is not called; an error of work() is thrown on all ranks of its group. `name` is for messages: "the product".
  /// Throws Error(rank_lost) if a rank of the group has ended, is stopped, or does not call within the deadline; the work
  /// itself may take any time, and waits of owners end if a feeder ends meanwhile. On feeders, meanwhile() is called with
  /// the operands of the group about ten times a second while the owner works, and once when it is done. It must not throw.
  std::string call(const char* name, const std::function<std::vector<Operand>()>& prepare,
                   const std::function<std::string(std::span<const GroupOperand>)>& work, Keep keep = Keep::memory,
                   const std::function<void(std::span<const GroupOperand>)>& meanwhile = {});

  /// On the owner, in work(): a feeder has ended, as it was seen a second ago at most. Work that takes long should ask now
  /// and then. From any thread.
  bool lost_a_feeder() const { return lost_; }
  /// On the owner: throws Error(rank_lost) if a feeder has ended.
  void require_feeders(const char* name);

 private:
  struct Board;
  struct Seat;
  struct Said;
  class Working;
  /// Where the operands of a call lie.
  struct Layout {
    std::vector<GroupOperand> operands;
    std::vector<std::size_t> begins;  ///< in the body of the shared memory
    std::size_t bytes = 0;
    void put_at(std::byte* base);
  };

  void join();
  void require_intact();
  static std::vector<Operand> prepared(const std::function<std::vector<Operand>()>& prepare);
  std::string call_as_owner(const char* name, const std::function<std::vector<Operand>()>& prepare,
                            const std::function<std::string(std::span<const GroupOperand>)>& work, Keep keep);
  std::string call_as_feeder(const char* name, const std::function<std::vector<Operand>()>& prepare,
                             const std::function<void(std::span<const GroupOperand>)>& meanwhile);
  std::vector<Operand> prepare_all(const char* name, const std::function<std::vector<Operand>()>& prepare);
  void require_same_call(const char* name, std::size_t operands) const;
  void arrive(const char* name, const std::vector<Operand>& mine, const Said& failure);
  void give(const std::vector<Operand>& mine, std::span<const GroupOperand> all);
  void take(const std::vector<Operand>& mine, std::span<const GroupOperand> all) const;
  Layout layout(std::size_t operands) const;
  void wait_for_feeders(const char* name, std::uint32_t phase);
  void wait_for_owner(const char* name, std::uint32_t phase, const std::function<void()>& meanwhile);
  void watch_feeders();
  bool is_complete() const;  ///< all feeders are there
  void step(std::uint32_t phase);
  [[noreturn]] void throw_failure(const Said& failure);
  [[noreturn]] void lose(const std::string& problem);
  std::string name_of(int place) const;
  Seat& seat(int place) const;

  Communicator& all_;
  std::vector<int> members_;  ///< ranks, ascending; the owner first
  int place_ = 0;
  std::optional<Communicator> owners_;
  std::unique_ptr<SharedMemory> memory_;
  Board* board_ = nullptr;
  std::uint32_t calls_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool working_ = false, end_ = false;  ///< with the mutex
  std::atomic<bool> lost_ = false;
  std::thread watch_;  ///< last: it uses the others
};

}  // namespace shardmat
