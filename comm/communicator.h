// Everything between ranks on the host: collectives with a deadline, and agreement on errors.
//
// Open MPI with MPI_ERRORS_RETURN waits for ever for a dead peer. So every collective here is non-blocking, and is polled
// until a deadline. After a deadline or an MPI error the communicator is *broken*: further calls throw at once, and nothing
// is freed collectively. The program must then end with MpiSession::leave() instead of
// MPI_Finalize.
// Ownership: move-only; it owns its duplicate of the caller's MPI communicator. Collective: everything but the accessors.
// Threads: one thread at a time uses a communicator; give_up() may be called from any. Two threads may use two communicators
// at once if mpi_takes_threads(); they make them one after another if both have the same parent.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/error.h"

namespace shardmat {

class CallWatch;
class WatchedCaller;

enum class Reduction { sum, min, max };

/// An error that is the same on all ranks. The communicator stays usable, and MPI can be ended properly.
class AgreedError final : public Error {
 public:
  using Error::Error;
  AgreedError(ErrorKind kind, const std::string& message, std::string setting, std::int64_t missing_bytes)
      : Error(kind, message, std::move(setting)), missing_bytes_(missing_bytes) {}
  /// Bytes of memory that this rank itself lacked when it failed; 0 if it did not lack any.
  std::int64_t missing_bytes() const { return missing_bytes_; }

 private:
  std::int64_t missing_bytes_ = 0;
};

/// This process among the ranks of a job, on a private duplicate of the given MPI communicator. Move-only,
/// and moved only before anything refers to it. All calls but the accessors are collective.
class Communicator {
 public:
  /// Duplicates `parent` and sets MPI_ERRORS_RETURN on the duplicate. `timeout_seconds` is the deadline of each call.
  explicit Communicator(MPI_Comm parent, double timeout_seconds = 60);
  /// This process as the only rank. Makes no MPI call, now or later: the program need not start MPI. native() is
  /// MPI_COMM_NULL.
  static Communicator alone(double timeout_seconds = 60);
  /// A new communicator of the same ranks, for another thread. `timeout_seconds` is the deadline of the new communicator.
  /// Collective, with the deadline of this communicator.
  Communicator duplicate(double timeout_seconds);
  /// A new communicator of the first `count` ranks; nothing on the other ranks. Collective over the first `count` ranks. MPI
  /// makes it in one call without a deadline: only watch_calls() notices a rank that does not call. Later calls have the
  /// deadline of the new communicator.
  std::optional<Communicator> first_ranks(int count, double timeout_seconds);
  /// The same for any ranks, in ascending order. Messages name its ranks by their numbers in this communicator.
  std::optional<Communicator> some_ranks(std::span<const int> ranks, double timeout_seconds);
  ~Communicator();
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// This rank's number among the ranks on this host. Taken from the launcher's variables (OMPI_COMM_WORLD_LOCAL_RANK,
  /// MPI_LOCALRANKID, MV2_COMM_WORLD_LOCAL_RANK, PMI_LOCAL_RANK, SLURM_LOCALID) if they are consistent over all ranks and
  /// the parent spans MPI_COMM_WORLD. Otherwise counted among the ranks with the same host name and boot.
  int local_rank() const { return local_rank_; }
  /// Number of ranks on this host.
  int local_size() const { return local_size_; }
  const std::string& host() const { return host_; }
  /// Number of hosts, and the host of a rank. Hosts are numbered as their lowest ranks.
  int hosts() const { return hosts_; }
  int host_of(int rank) const { return host_of_[static_cast<std::size_t>(rank)]; }
  double timeout_seconds() const { return timeout_; }
  void set_timeout(double seconds) { timeout_ = seconds; }
  MPI_Comm native() const { return comm_; }

  bool broken() const { return broken_; }
  /// Marks the communicator broken (e.g. NCCL found that a rank is lost). The first call runs the on_broken() functions.
  /// `setting`: as Error::setting().
  void mark_broken(const std::string& why, const std::string& setting = {});
  /// `action` runs when the communicator breaks, on the thread that notices it, before the Error is thrown. It must neither
  /// throw nor use the communicator.
  void on_broken(std::function<void(const Error& why)> action) { on_broken_.push_back(std::move(action)); }

  /// From now on a thread watches the MPI calls made through this communicator, and through those that duplicate() and
  /// some_ranks() make of it. If a call does not return within `seconds`, because a rank died or was stopped inside MPI, the
  /// thread calls `stuck` once with an Error(rank_lost). Nothing can end such a call: `stuck` should end the process.
  void watch_calls(double seconds, std::function<void(const Error& why)> stuck);

  /// May be called from any thread. Every present and later wait in this communicator throws `why`, an Error(rank_lost).
  /// Only the first call has an effect.
  void give_up(Error why);

  void barrier();

  template <class T>
  void broadcast(std::span<T> data, int root = 0) {
    static_assert(std::is_trivially_copyable_v<T>);
    broadcast_bytes(data.data(), data.size_bytes(), root);
  }
  std::string broadcast(std::string text, int root = 0);

  /// Element-wise reduction over the ranks. T is double, int or std::int64_t; `data` has the same length on every rank.
  /// Doubles are added in rank order, so the sum is the same on every rank and in every run. A NaN on any rank gives NaN,
  /// for min and max too.
  template <class T>
  void all_reduce(std::span<T> data, Reduction reduction);
  template <class T>
  requires std::is_arithmetic_v<T> T all_reduce(T value, Reduction reduction) {
    all_reduce(std::span<T>(&value, 1), reduction);
    return value;
  }

  /// One value of every rank, in rank order.
  template <class T>
  requires std::is_trivially_copyable_v<T> std::vector<T> all_gather(const T& value) {
    std::vector<T> all(static_cast<std::size_t>(size_));
    all[static_cast<std::size_t>(rank_)] = value;
    all_gather_slots(all.data(), sizeof(T));
    return all;
  }
  /// One text of every rank, in rank order.
  std::vector<std::string> all_gather(const std::string& text);

  /// In-place all-gather: slot p of `data` starts at p·slot_bytes and is filled on rank p. 64-bit sizes.
  void all_gather_slots(void* data, std::size_t slot_bytes);

  /// Blocking point-to-point of any size, with the deadline. Both sides know `bytes`; 0 sends nothing.
  void send(const void* data, std::size_t bytes, int to, int tag);
  void receive(void* data, std::size_t bytes, int from, int tag);

  /// Sends values[p] to rank p; result[p] is the value that rank p sent to this rank.
  std::vector<std::int64_t> all_to_all(const std::vector<std::int64_t>& values);

  /// Messages under way. Their memory must stay valid and unchanged until finish(). Messages between two ranks arrive in
  /// order.
  class Transfer {
   public:
    /// Both sides know `bytes`; 0 sends nothing.
    struct Outgoing {
      int to;
      const void* data;
      std::size_t bytes;
    };
    struct Incoming {
      int from;
      void* data;
      std::size_t bytes;
    };

   private:
    friend class Communicator;
    std::vector<MPI_Request> requests;
    std::vector<std::size_t> received;  ///< bytes expected by the first requests
    std::vector<MPI_Status> status;
  };
  Transfer start(std::span<const Transfer::Outgoing> sends, std::span<const Transfer::Incoming> receives, int tag);
  void finish(Transfer& transfer);
  /// True, as after finish(), if all messages have come and gone. Waits for nothing.
  bool finish_if_done(Transfer& transfer);

  /// What start() and send() have sent from this rank to ranks of other hosts.
  struct Sent {
    std::int64_t messages = 0, bytes = 0;
  };
  const Sent& sent_to_other_hosts() const { return sent_to_other_hosts_; }

  /// Call it at the end of a phase that can fail on one rank: every rank passes its exception or null. If any rank failed,
  /// all ranks throw the same AgreedError, with kind, setting and message of the lowest failing rank. With several ranks,
  /// the message names this rank and says how many more failed. Error(rank_lost) is rethrown at once: lost ranks cannot
  /// agree.
  void agree(std::exception_ptr mine);

  /// Runs `phase` on every rank, then agree(). Returns the result of `phase`, whose type must have a default value.
  template <class F>
  auto run_agreed(F&& phase) {
    std::exception_ptr error;
    if constexpr (std::is_void_v<decltype(phase())>) {
      try {
        phase();
      } catch (...) {
        error = std::current_exception();
      }
      agree(error);
    } else {
      decltype(phase()) result{};
      try {
        result = phase();
      } catch (...) {
        error = std::current_exception();
      }
      agree(error);
      return result;
    }
  }

  /// Runs `work` on every rank: local work, which may fail on one rank, between collective calls of this communicator. A
  /// rank that throws waits for the other ranks at their next collective call; there they leave `work`, and all ranks throw
  /// the same AgreedError, as agree() does. For this each collective call costs one more reduction meanwhile. Messages
  /// between two ranks (start(), send()) and calls of other communicators in `work` need a check_in() just before them. What
  /// an AgreedError leaves behind must be freed without collective calls. What another thread does with this communicator
  /// while `work` pauses (between_phases.h) is not guarded. Collective.
  void run_guarded(const std::function<void()>& work);
  /// Inside run_guarded(): throws if another rank failed. Elsewhere nothing. Collective.
  void check_in();

  /// Polls until done() is true. After the deadline it marks the communicator broken and throws Error(rank_lost), which says
  /// that `what` did not finish. Collectives here use it, and waits for device work that depends on other ranks.
  void wait_until(const std::function<bool()>& done, const char* what);
  /// Marks the communicator broken and throws Error(rank_lost): "rank R (host): `problem`", and what the user should check.
  [[noreturn]] void lose(const std::string& problem);

  /// Sets the largest message that is given to MPI. Only tests of the slicing need it.
  void set_slice_bytes(std::size_t bytes) { slice_bytes_ = bytes; }

 private:
  /// Takes over `own`, which `maker` made for ranks of its own. The watch of `maker` watches its calls.
  Communicator(MPI_Comm own, const Communicator& maker, double timeout_seconds);

  /// alone().
  struct WithoutMpi {};
  Communicator(WithoutMpi, double timeout_seconds);

  bool without_mpi() const { return comm_ == MPI_COMM_NULL; }
  /// Messages of the only rank to itself.
  static void copy_to_self(std::span<const Transfer::Outgoing> sends, std::span<const Transfer::Incoming> receives);
  /// "rank 3 (host)", for messages.
  std::string who() const;
  void take(MPI_Comm own);
  void find_local_rank();
  void number_hosts(const std::vector<std::string>& names);
  void count(int to, std::size_t bytes);
  MPI_Comm duplicate_of(MPI_Comm parent);
  /// Runs one MPI call, and throws if it fails.
  template <class F>
  void call(const char* function, const char* what, F&& mpi);
  void broadcast_bytes(void* data, std::size_t bytes, int root);
  void send_slice(const void* data, std::size_t bytes, int to, int tag, MPI_Request& request, const char* what);
  void receive_slice(void* data, std::size_t bytes, int from, int tag, MPI_Request& request, const char* what);
  /// Throws Error(rank_lost) if ranks were lost or given up.
  void require_intact(const char* what);
  MPI_Status complete(MPI_Request& request, const char* what);
  void check(int mpi_error, const char* what);

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  int known_as_ = 0;  ///< this rank's number in messages
  std::string host_;
  int hosts_ = 1;
  std::vector<int> host_of_ = {0};
  Sent sent_to_other_hosts_;
  double timeout_ = 60;
  std::size_t slice_bytes_ = std::size_t{256} << 20;  ///< each slice also renews the deadline
  bool broken_ = false;
  std::atomic<bool> giving_up_ = false, given_up_ = false;
  std::optional<Error> why_given_up_;
  std::string why_broken_;
  std::vector<std::function<void(const Error&)>> on_broken_;
  std::shared_ptr<CallWatch> watch_;
  std::shared_ptr<WatchedCaller> caller_;  ///< null without a watch
};

template <>
void Communicator::all_reduce(std::span<double> data, Reduction reduction);

}  // namespace shardmat
