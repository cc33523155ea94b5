#include "comm/communicator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <new>
#include <numeric>
#include <thread>

#include "comm/backoff.h"
#include "comm/between_phases.h"
#include "comm/call_watch.h"
#include "comm/launcher.h"
#include "comm/mpi_error.h"
#include "comm/slices.h"
#include "kernels/base/memory_error.h"
#include "kernels/base/narrow.h"

namespace shardmat {
namespace {

constexpr const char* kLookFor =
    "Look for a rank with an error of its own, or that was killed (out of memory?) or stopped; if the ranks are only slow, "
    "raise the deadline";
constexpr const char* kDeadline = "timeout_seconds";  // the setting that raises it

/// What an MPI error means for the job: a wrong call of ours, memory, or (all that transports report) a lost
/// peer.
ErrorKind kind_of(int mpi_error) {
  int error_class = MPI_ERR_UNKNOWN;
  MPI_Error_class(mpi_error, &error_class);
  switch (error_class) {
    case MPI_ERR_BUFFER:
    case MPI_ERR_COUNT:
    case MPI_ERR_TYPE:
    case MPI_ERR_TAG:
    case MPI_ERR_COMM:
    case MPI_ERR_RANK:
    case MPI_ERR_ROOT:
    case MPI_ERR_OP:
    case MPI_ERR_ARG:
    case MPI_ERR_REQUEST:
    case MPI_ERR_TRUNCATE:
      return ErrorKind::internal;
    case MPI_ERR_NO_MEM:
      return ErrorKind::resources;
    default:
      return ErrorKind::rank_lost;
  }
}

/// A slice of `bytes` out of every slot of `slot_bytes`, as a datatype of which each rank sends one: MPI then
/// multiplies ranks by 64-bit extents and never by int counts.
class SliceType {
 public:
  SliceType(std::size_t bytes, std::size_t slot_bytes) {
    MPI_Datatype contiguous = MPI_DATATYPE_NULL;
    check_local(MPI_Type_contiguous(narrow<int>(bytes, "slice bytes"), MPI_BYTE, &contiguous), "MPI_Type_contiguous");
    const int status = MPI_Type_create_resized(contiguous, 0, narrow<MPI_Aint>(slot_bytes, "slot bytes"), &type_);
    MPI_Type_free(&contiguous);
    check_local(status, "MPI_Type_create_resized");
    check_local(MPI_Type_commit(&type_), "MPI_Type_commit");
  }
  ~SliceType() { MPI_Type_free(&type_); }  // MPI keeps it alive while a request uses it
  SliceType(const SliceType&) = delete;
  SliceType& operator=(const SliceType&) = delete;
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

double fold(double a, double b, Reduction reduction) {
  if (reduction == Reduction::sum) return a + b;
  if (std::isnan(a) || std::isnan(b)) return a + b;
  return reduction == Reduction::min ? std::min(a, b) : std::max(a, b);
}

MPI_Op mpi_op(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return MPI_SUM;
    case Reduction::min:
      return MPI_MIN;
    case Reduction::max:
      return MPI_MAX;
  }
  throw Error(ErrorKind::internal, "unknown reduction");
}

struct Failure {
  ErrorKind kind = ErrorKind::internal;
  std::string message, setting;
  std::int64_t missing_bytes = 0;  ///< on this rank
};

Failure describe(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const MemoryError& e) {
    return {e.kind(), e.what(), e.setting(), e.missing_bytes()};
  } catch (const Error& e) {
    return {e.kind(), e.what(), e.setting(), 0};
  } catch (const std::bad_alloc&) {
    return {ErrorKind::resources, "out of host memory; use more hosts or a smaller matrix", {}, 1};
  } catch (const std::exception& e) {
    return {ErrorKind::internal, e.what(), {}, 0};
  } catch (...) {
    return {ErrorKind::internal, "unknown error", {}, 0};
  }
}

}  // namespace

template <class F>
void Communicator::call(const char* function, const char* what, F&& mpi) {
  if (caller_ != nullptr) caller_->enter(function);
  const int result = mpi();
  if (caller_ != nullptr) caller_->leave();
  check(result, what);
}

Communicator::Communicator(MPI_Comm parent, double timeout_seconds) : timeout_(timeout_seconds) {
  require_world_of_launcher();
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(name, &length);
  host_ = name;
  check(MPI_Comm_rank(parent, &rank_), "MPI_Comm_rank");
  known_as_ = rank_;
  take(duplicate_of(parent));
  find_local_rank();
}

Communicator::Communicator(MPI_Comm own, const Communicator& maker, double timeout_seconds)
    : known_as_(maker.known_as_),
      host_(maker.host_),
      timeout_(timeout_seconds),
      watch_(maker.watch_),
      caller_(watch_ == nullptr ? nullptr : watch_->add()) {
  take(own);
}

void Communicator::take(MPI_Comm own) {
  comm_ = own;
  check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
}

MPI_Comm Communicator::duplicate_of(MPI_Comm parent) {
  MPI_Comm duplicate = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  call("MPI_Comm_idup", "joining the ranks", [&] { return MPI_Comm_idup(parent, &duplicate, &request); });
  complete(request, "joining the ranks");
  return duplicate;
}

Communicator Communicator::duplicate(double timeout_seconds) {
  require_intact("joining of the ranks");
  if (without_mpi()) return alone(timeout_seconds);
  Communicator made(duplicate_of(comm_), *this, timeout_seconds);
  // Known without messages, which would have no deadline where `timeout_seconds` is infinite.
  made.local_rank_ = local_rank_;
  made.local_size_ = local_size_;
  made.hosts_ = hosts_, made.host_of_ = host_of_;
  return made;
}

std::optional<Communicator> Communicator::first_ranks(int count, double timeout_seconds) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return some_ranks(ranks, timeout_seconds);
}

std::optional<Communicator> Communicator::some_ranks(std::span<const int> ranks, double timeout_seconds) {
  if (!std::binary_search(ranks.begin(), ranks.end(), rank_)) return std::nullopt;
  constexpr int kTag = 24;
  constexpr const char* kWhat = "joining some of the ranks";
  require_intact(kWhat);
  if (without_mpi()) return alone(timeout_seconds);
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_group(comm_, &all), "MPI_Comm_group");
  check(MPI_Group_incl(all, narrow<int>(ranks.size(), "ranks"), ranks.data(), &some), "MPI_Group_incl");
  call("MPI_Comm_create_group", kWhat, [&] { return MPI_Comm_create_group(comm_, some, kTag, &comm); });
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  std::optional<Communicator> made(Communicator(comm, *this, timeout_seconds));
  made->find_local_rank();
  return made;
}

std::string Communicator::who() const { return fmt::format("rank {} ({})", known_as_, host_); }

Communicator::~Communicator() {
  if (without_mpi()) return;
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (broken_ || given_up_ || finalized != 0) return;
  if (caller_ != nullptr) caller_->enter("MPI_Comm_free");
  MPI_Comm_free(&comm_);
  if (caller_ != nullptr) caller_->leave();
}

void Communicator::watch_calls(double seconds, std::function<void(const Error& why)> stuck) {
  const auto say = [who = who(), seconds, stuck = std::move(stuck)](const std::string& function) {
    stuck(Error(ErrorKind::rank_lost,
                fmt::format("{}: {} did not return within {:g} s: another rank has died, was stopped, or is late. {}", who,
                            function, seconds, kLookFor),
                kDeadline));
  };
  watch_ = std::make_shared<CallWatch>(seconds, say);
  caller_ = watch_->add();
}

Communicator::Communicator(Communicator&& other) noexcept
    : comm_(std::exchange(other.comm_, MPI_COMM_NULL)),
      rank_(other.rank_),
      size_(other.size_),
      local_rank_(other.local_rank_),
      local_size_(other.local_size_),
      known_as_(other.known_as_),
      host_(std::move(other.host_)),
      hosts_(other.hosts_),
      host_of_(std::move(other.host_of_)),
      sent_to_other_hosts_(other.sent_to_other_hosts_),
      timeout_(other.timeout_),
      slice_bytes_(other.slice_bytes_),
      broken_(other.broken_),
      why_broken_(std::move(other.why_broken_)),
      on_broken_(std::move(other.on_broken_)),
      watch_(std::move(other.watch_)),
      caller_(std::move(other.caller_)) {}

void Communicator::count(int to, std::size_t bytes) {
  if (bytes == 0 || host_of(to) == host_of(rank_)) return;
  ++sent_to_other_hosts_.messages;
  sent_to_other_hosts_.bytes += static_cast<std::int64_t>(bytes);
}

void Communicator::mark_broken(const std::string& why, const std::string& setting) {
  if (broken_) return;
  broken_ = true;
  why_broken_ = why;
  for (const auto& action : on_broken_) action(Error(ErrorKind::rank_lost, why, setting));
}

void Communicator::give_up(Error why) {
  if (giving_up_.exchange(true)) return;
  why_given_up_ = std::move(why);
  given_up_ = true;
}

void Communicator::lose(const std::string& problem) {
  const std::string message = fmt::format("{}: {}. {}", who(), problem, kLookFor);
  mark_broken(message, kDeadline);
  throw Error(ErrorKind::rank_lost, message, kDeadline);
}

void Communicator::require_intact(const char* what) {
  if (given_up_ && !broken_) {
    mark_broken(why_given_up_->what(), why_given_up_->setting());
    throw *why_given_up_;
  }
  if (broken_)
    throw Error(ErrorKind::rank_lost, fmt::format("{}: no {} after the ranks were lost: {}", who(), what, why_broken_));
}

void Communicator::check(int mpi_error, const char* what) {
  if (mpi_error == MPI_SUCCESS) return;
  const std::string problem = fmt::format("{} failed: {}", what, mpi_text(mpi_error));
  const ErrorKind kind = kind_of(mpi_error);
  if (kind == ErrorKind::rank_lost) lose(problem);
  const std::string message = fmt::format("{}: {}", who(), problem);
  mark_broken(message);
  throw Error(kind, message);
}

void Communicator::wait_until(const std::function<bool()>& done, const char* what) {
  require_intact(what);
  Backoff backoff;
  for (;;) {
    const double waited = backoff.elapsed();  // before the poll, so that a rank resumed after a stop polls once more
    if (done()) return;
    if (given_up_) require_intact(what);
    if (waited > timeout_)
      lose(fmt::format("{} did not finish within {:g} s: another rank has died, was stopped, or is late", what, timeout_));
    backoff.pause();
  }
}

MPI_Status Communicator::complete(MPI_Request& request, const char* what) {
  // At a deadline the request and its buffer are left to the end of the process: MPI can neither complete nor
  // cancel a collective that a rank never joins. No MPI call follows, so nothing writes to the buffer later.
  MPI_Status status{};
  wait_until(
      [&] {
        int done = 0;
        call("MPI_Test", what, [&] { return MPI_Test(&request, &done, &status); });
        return done != 0;
      },
      what);
  return status;
}

void Communicator::barrier() {
  require_intact("barrier");
  check_in();
  if (without_mpi()) return;
  MPI_Request request = MPI_REQUEST_NULL;
  call("MPI_Ibarrier", "barrier", [&] { return MPI_Ibarrier(comm_, &request); });
  complete(request, "barrier");
}

void Communicator::broadcast_bytes(void* data, std::size_t bytes, int root) {
  require_intact("broadcast");
  check_in();
  if (size_ == 1) return;
  for_each_message_slice(bytes, slice_bytes_, [&](std::size_t offset, std::size_t length) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int count = narrow<int>(length, "slice bytes");
    call("MPI_Ibcast", "broadcast",
         [&] { return MPI_Ibcast(static_cast<char*>(data) + offset, count, MPI_BYTE, root, comm_, &request); });
    complete(request, "broadcast");
  });
}

std::string Communicator::broadcast(std::string text, int root) {
  std::uint64_t length = text.size();
  broadcast(std::span<std::uint64_t>(&length, 1), root);
  text.resize(length);
  broadcast_bytes(text.data(), text.size(), root);
  return text;
}

template <>
void Communicator::all_reduce(std::span<double> data, Reduction reduction) {
  require_intact("all-reduce");
  if (size_ == 1) return;
  constexpr std::size_t kGatheredValues = std::size_t{1} << 17;
  const std::size_t ranks = static_cast<std::size_t>(size_), mine = static_cast<std::size_t>(rank_);
  const std::size_t chunk = std::max<std::size_t>(1, std::min(data.size(), kGatheredValues / ranks));
  std::vector<double> gathered(chunk * ranks);
  for_each_message_slice(data.size(), chunk, [&](std::size_t first, std::size_t count) {
    std::copy_n(data.begin() + first, count, gathered.begin() + mine * count);
    all_gather_slots(gathered.data(), count * sizeof(double));
    for (std::size_t i = 0; i < count; ++i) {
      double value = gathered[i];
      for (std::size_t r = 1; r < ranks; ++r) value = fold(value, gathered[r * count + i], reduction);
      data[first + i] = value;
    }
  });
}

template <class T>
void Communicator::all_reduce(std::span<T> data, Reduction reduction) {
  static_assert(std::is_integral_v<T>);
  require_intact("all-reduce");
  check_in();
  if (size_ == 1) return;
  const MPI_Datatype type = sizeof(T) == 8 ? MPI_INT64_T : MPI_INT32_T;
  for_each_message_slice(
      data.size(), std::max<std::size_t>(1, slice_bytes_ / sizeof(T)), [&](std::size_t first, std::size_t count) {
        MPI_Request request = MPI_REQUEST_NULL;
        const int values = narrow<int>(count, "values");
        call("MPI_Iallreduce", "all-reduce", [&] {
          return MPI_Iallreduce(MPI_IN_PLACE, data.data() + first, values, type, mpi_op(reduction), comm_, &request);
        });
        complete(request, "all-reduce");
      });
}
template void Communicator::all_reduce(std::span<int>, Reduction);
template void Communicator::all_reduce(std::span<std::int64_t>, Reduction);

std::vector<std::string> Communicator::all_gather(const std::string& text) {
  const std::vector<std::uint64_t> lengths = all_gather(std::uint64_t{text.size()});
  const std::size_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::vector<char> slots(longest * lengths.size());
  std::copy(text.begin(), text.end(), slots.begin() + static_cast<std::size_t>(rank_) * longest);
  all_gather_slots(slots.data(), longest);
  std::vector<std::string> all;
  for (std::size_t r = 0; r < lengths.size(); ++r) all.emplace_back(slots.data() + r * longest, lengths[r]);
  return all;
}

void Communicator::all_gather_slots(void* data, std::size_t slot_bytes) {
  require_intact("all-gather");
  check_in();
  if (size_ == 1) return;
  for_each_message_slice(slot_bytes, slice_bytes_, [&](std::size_t offset, std::size_t length) {
    const SliceType type(length, slot_bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    call("MPI_Iallgather", "all-gather", [&] {
      return MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, static_cast<char*>(data) + offset, 1, type.get(), comm_,
                            &request);
    });
    complete(request, "all-gather");
  });
}

void Communicator::send_slice(const void* data, std::size_t bytes, int to, int tag, MPI_Request& request, const char* what) {
  const int count = narrow<int>(bytes, "slice bytes");
  call("MPI_Isend", what, [&] { return MPI_Isend(data, count, MPI_BYTE, to, tag, comm_, &request); });
}

void Communicator::receive_slice(void* data, std::size_t bytes, int from, int tag, MPI_Request& request, const char* what) {
  const int count = narrow<int>(bytes, "slice bytes");
  call("MPI_Irecv", what, [&] { return MPI_Irecv(data, count, MPI_BYTE, from, tag, comm_, &request); });
}

void Communicator::send(const void* data, std::size_t bytes, int to, int tag) {
  require_intact("send");
  const std::string what = fmt::format("send to rank {}", to);
  count(to, bytes);
  for_each_message_slice(bytes, slice_bytes_, [&](std::size_t offset, std::size_t length) {
    MPI_Request request = MPI_REQUEST_NULL;
    send_slice(static_cast<const char*>(data) + offset, length, to, tag, request, what.c_str());
    complete(request, what.c_str());
  });
}

void Communicator::receive(void* data, std::size_t bytes, int from, int tag) {
  require_intact("receive");
  const std::string what = fmt::format("receive from rank {}", from);
  for_each_message_slice(bytes, slice_bytes_, [&](std::size_t offset, std::size_t length) {
    MPI_Request request = MPI_REQUEST_NULL;
    receive_slice(static_cast<char*>(data) + offset, length, from, tag, request, what.c_str());
    const MPI_Status status = complete(request, what.c_str());
    int received = 0;
    MPI_Get_count(&status, MPI_BYTE, &received);
    if (static_cast<std::size_t>(received) != length)
      throw Error(ErrorKind::internal, fmt::format("{}: {} bytes came instead of {}", what, received, length));
  });
}

std::vector<std::int64_t> Communicator::all_to_all(const std::vector<std::int64_t>& values) {
  require_intact("all-to-all");
  std::vector<std::int64_t> result(values.size());
  if (size_ == 1) return values;
  check_in();
  MPI_Request request = MPI_REQUEST_NULL;
  call("MPI_Ialltoall", "all-to-all",
       [&] { return MPI_Ialltoall(values.data(), 1, MPI_INT64_T, result.data(), 1, MPI_INT64_T, comm_, &request); });
  complete(request, "all-to-all");
  return result;
}

Communicator::Transfer Communicator::start(std::span<const Transfer::Outgoing> sends,
                                           std::span<const Transfer::Incoming> receives, int tag) {
  require_intact("transfer");
  Transfer transfer;
  if (without_mpi()) {
    copy_to_self(sends, receives);
    return transfer;
  }
  for (const Transfer::Incoming& r : receives)
    for_each_message_slice(r.bytes, slice_bytes_, [&](std::size_t offset, std::size_t length) {
      transfer.received.push_back(length);
      receive_slice(static_cast<char*>(r.data) + offset, length, r.from, tag,
                    transfer.requests.emplace_back(MPI_REQUEST_NULL), "receive");
    });
  for (const Transfer::Outgoing& s : sends) {
    count(s.to, s.bytes);
    for_each_message_slice(s.bytes, slice_bytes_, [&](std::size_t offset, std::size_t length) {
      send_slice(static_cast<const char*>(s.data) + offset, length, s.to, tag,
                 transfer.requests.emplace_back(MPI_REQUEST_NULL), "send");
    });
  }
  return transfer;
}

void Communicator::finish(Transfer& transfer) {
  if (transfer.requests.empty()) return;
  wait_until([&] { return finish_if_done(transfer); }, "transfer");
}

bool Communicator::finish_if_done(Transfer& transfer) {
  if (transfer.requests.empty()) return true;
  transfer.status.resize(transfer.requests.size());
  int done = 0;
  call("MPI_Testall", "transfer", [&] {
    return MPI_Testall(narrow<int>(transfer.requests.size(), "messages"), transfer.requests.data(), &done,
                       transfer.status.data());
  });
  if (done == 0) return false;
  for (std::size_t i = 0; i < transfer.received.size(); ++i) {
    int bytes = 0;
    MPI_Get_count(&transfer.status[i], MPI_BYTE, &bytes);
    if (static_cast<std::size_t>(bytes) != transfer.received[i])
      throw Error(ErrorKind::internal, fmt::format("{} bytes came from rank {} instead of {}", bytes,
                                                   transfer.status[i].MPI_SOURCE, transfer.received[i]));
  }
  transfer = {};
  return true;
}

void Communicator::agree(std::exception_ptr mine) {
  Failure failure;
  if (mine) failure = describe(mine);
  if (mine && failure.kind == ErrorKind::rank_lost) std::rethrow_exception(mine);
  if (size_ == 1) {
    if (mine) throw AgreedError(failure.kind, failure.message, failure.setting, failure.missing_bytes);
    return BetweenPhases::pass(*this);
  }
  std::int64_t failed = 0, first = 0;
  try {
    // The largest of size - rank over the failing ranks names the lowest of them; 0 if there is none.
    first = size_ - all_reduce<std::int64_t>(mine ? size_ - rank_ : 0, Reduction::max);
    if (first == size_) return BetweenPhases::pass(*this);
    failed = all_reduce<std::int64_t>(mine ? 1 : 0, Reduction::sum);
    std::int64_t kind = static_cast<std::int64_t>(failure.kind);
    const int root = static_cast<int>(first);
    broadcast(std::span<std::int64_t>(&kind, 1), root);
    failure.kind = static_cast<ErrorKind>(kind);
    const std::string message = broadcast(failure.message, root);
    failure.setting = broadcast(failure.setting, root);
    // What failed everywhere alike (a wrong path, say) is nobody's in particular.
    const bool alike = failed == size_ && all_reduce<std::int64_t>(failure.message == message ? 1 : 0, Reduction::min) == 1;
    failure.message = message;
    if (!alike) failure.message = fmt::format("{}: {}", broadcast(who(), root), message);
    if (!alike && failed > 1)
      failure.message += fmt::format(" ... and {} more {}", failed - 1, failed == 2 ? "rank" : "ranks");
  } catch (const Error& e) {
    if (!mine || e.kind() != ErrorKind::rank_lost) throw;
    // The ranks cannot meet any more; the error at hand is nearer to the cause than that.
    const Failure cause = describe(mine);
    throw Error(cause.kind, fmt::format("{}: {} (and then: {})", who(), cause.message, e.what()), cause.setting);
  }
  throw AgreedError(failure.kind, failure.message, failure.setting, failure.missing_bytes);
}

}  // namespace shardmat
