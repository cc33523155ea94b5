#include "comm/shared_gpu/rank_group.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "comm/shared_gpu/peer_process.h"
#include "kernels/base/error.h"

namespace shardmat {
namespace {

using Word = std::atomic<std::uint32_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == sizeof(std::uint32_t));

constexpr std::size_t kMostOperands = 8, kPage = 4096;
constexpr const char* kHandedOver = "what ranks hand over to the rank that owns their rows";

// The steps of a call. They are counted on from call to call.
constexpr std::uint32_t kEntered = 1, kGo = 2, kDone = 3, kStepsOfOwner = 3;
constexpr std::uint32_t kArrived = 1, kGave = 2, kStepsOfFeeder = 2;

bool before(std::uint32_t count, std::uint32_t target) { return static_cast<std::int32_t>(count - target) < 0; }

/// Sleeps until reached(count) for the count in `word`; calls look(seconds waited) about ten times a second.
template <class Reached, class Look>
void sleep_until(Word& word, const Reached& reached, const Look& look) {
  using Clock = std::chrono::steady_clock;
  constexpr int kPolls = 200;  // for some microseconds
  constexpr double kQuietSeconds = 0.05;
  for (int i = 0; i < kPolls; ++i)
    if (reached(word.load())) return;
  const Clock::time_point start = Clock::now();
  for (;;) {
    const double waited = std::chrono::duration<double>(Clock::now() - start).count();  // before the count, see wait_until()
    const std::uint32_t count = word.load();
    if (reached(count)) return;
    if (waited > kQuietSeconds) look(waited);
    const timespec nap{0, 100'000'000};
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, count, &nap, nullptr, 0);
  }
}

void wake_all(Word& word) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

template <std::size_t Size>
void write_text(char (&to)[Size], const std::string& text) {
  const std::size_t length = std::min(text.size(), Size - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

}  // namespace

/// An error, or none.
struct RankGroup::Said {
  std::int32_t kind = 0;  ///< of ErrorKind; 0: no error
  std::int32_t agreed = 0;
  char message[2040] = {}, setting[64] = {};

  static Said of(const std::exception_ptr& error) {
    Said said;
    const auto set = [&](ErrorKind kind, const std::string& message, const std::string& setting, bool agreed) {
      said.kind = static_cast<std::int32_t>(kind), said.agreed = agreed ? 1 : 0;
      write_text(said.message, message), write_text(said.setting, setting);
    };
    try {
      std::rethrow_exception(error);
    } catch (const AgreedError& e) {
      set(e.kind(), e.what(), e.setting(), true);
    } catch (const Error& e) {
      set(e.kind(), e.what(), e.setting(), false);
    } catch (const std::bad_alloc&) {
      set(ErrorKind::resources, "out of host memory; use more hosts or a smaller matrix", {}, false);
    } catch (const std::exception& e) {
      set(ErrorKind::internal, e.what(), {}, false);
    } catch (...) {
      set(ErrorKind::internal, "unknown error", {}, false);
    }
    return said;
  }
};

/// What one rank of the group says. Written by that rank.
struct alignas(64) RankGroup::Seat {
  PeerProcess process;
  Word step{0};
  std::uint32_t operands = 0;
  std::uint64_t bytes[kMostOperands] = {};
  char name[64] = {};
  Said failure;
};

/// The head of the shared memory: what the owner says, then the seats.
struct alignas(64) RankGroup::Board {
  PeerProcess owner;             ///< first, see share_memory()
  Word owner_step{0};            ///< feeders sleep on it
  alignas(64) Word arrivals{0};  ///< steps of all feeders; the owner sleeps on it
  Word awaited{0};               ///< the count for which the owner is woken
  std::uint64_t answer_begin = 0, answer_bytes = 0;
  Said failure;
};

Operand Operand::given(const void* from, std::size_t bytes) {
  return {bytes,
          [=](void* to) {
            if (bytes > 0) std::memcpy(to, from, bytes);
          },
          {}};
}

Operand Operand::taken(void* to, std::size_t bytes) {
  return {bytes, {}, [=](const void* from) {
            if (bytes > 0) std::memcpy(to, from, bytes);
          }};
}

RankGroup::RankGroup(Communicator& all, const std::vector<int>& owners) : all_(all) {
  const int mine = owners[static_cast<std::size_t>(all.rank())];
  std::vector<int> owning;
  for (int rank = 0; rank < all.size(); ++rank) {
    const int owner = owners[static_cast<std::size_t>(rank)];
    if (owner == rank) owning.push_back(rank);
    if (owner != mine) continue;
    if (rank == all.rank()) place_ = static_cast<int>(members_.size());
    members_.push_back(rank);
  }
  join();
  if (std::optional<Communicator> made = all.some_ranks(owning, all.timeout_seconds())) owners_.emplace(std::move(*made));
  if (owners_) owners_->on_broken([&all](const Error& why) { all.mark_broken(why.what(), why.setting()); });
  if (owns() && size() > 1) watch_ = std::thread([this] { watch_feeders(); });
}

RankGroup::~RankGroup() {
  if (!watch_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  watch_.join();
}

/// While in scope, the owner works and its feeders are watched.
class RankGroup::Working {
 public:
  explicit Working(RankGroup& group) : group_(group) { set(true); }
  ~Working() { set(false); }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;

 private:
  void set(bool working) {
    const std::lock_guard lock(group_.mutex_);
    group_.working_ = working;
  }
  RankGroup& group_;
};

/// Looks once a second, while the owner works, whether all feeders are there: it may wait for other owners for long.
void RankGroup::watch_feeders() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::seconds(1), [this] { return end_; })) {
    if (!working_ || is_complete()) continue;
    lost_ = true;
    owners_->give_up(Error(ErrorKind::rank_lost,
                           fmt::format("rank {} ({}): a rank that hands its rows to it has ended. Look for a rank that was "
                                       "killed (out of memory?)",
                                       all_.rank(), all_.host())));
    return;
  }
}

void RankGroup::join() {
  const std::size_t bytes = sizeof(Board) + members_.size() * sizeof(Seat);
  memory_ = share_memory(all_, members_.front(), bytes, [&](void* head) {
    board_ = new (head) Board;
    for (int place = 0; place < size(); ++place) new (&seat(place)) Seat;
  });
  board_ = static_cast<Board*>(memory_->head());
  seat(place_).process = this_process();
  all_.barrier();  // nobody looks for a process before it is written
}

RankGroup::Seat& RankGroup::seat(int place) const { return reinterpret_cast<Seat*>(board_ + 1)[place]; }

std::string RankGroup::name_of(int place) const { return fmt::format("rank {}", members_[static_cast<std::size_t>(place)]); }

void RankGroup::lose(const std::string& problem) {
  try {
    all_.lose(problem);
  } catch (const Error& error) {
    if (owners_) owners_->mark_broken(error.what(), error.setting());
    throw;
  }
}

void RankGroup::require_intact() {
  all_.wait_until([] { return true; }, "further work");  // throws if ranks were lost
}

bool RankGroup::is_complete() const {
  for (int place = 1; place < size(); ++place)
    if (state_of(seat(place).process) == PeerState::gone) return false;
  return true;
}

void RankGroup::require_feeders(const char* name) {
  if (!is_complete()) lose(fmt::format("{}: a rank that hands its rows to it has ended", name));
}

void RankGroup::step(std::uint32_t phase) {
  if (owns()) {
    board_->owner_step.store(calls_ * kStepsOfOwner + phase);
    wake_all(board_->owner_step);
    return;
  }
  seat(place_).step.store(calls_ * kStepsOfFeeder + phase);
  if (board_->arrivals.fetch_add(1) + 1 == board_->awaited.load()) wake_all(board_->arrivals);
}

void RankGroup::wait_for_feeders(const char* name, std::uint32_t phase) {
  const std::uint32_t feeders = static_cast<std::uint32_t>(size()) - 1, target = feeders * (calls_ * kStepsOfFeeder + phase);
  board_->awaited.store(target);
  sleep_until(
      board_->arrivals, [&](std::uint32_t count) { return !before(count, target); },
      [&](double waited) {
        require_intact();
        for (int place = 1; place < size(); ++place) {
          const PeerState state = state_of(seat(place).process);  // before its step, which it may take and then end
          if (!before(seat(place).step.load(), calls_ * kStepsOfFeeder + phase)) continue;
          if (state == PeerState::gone)
            lose(fmt::format("{}: {}, which hands its rows to it, has ended", name, name_of(place)));
          if (waited > all_.timeout_seconds())
            lose(fmt::format("{}: {}, which hands its rows to it, {} for {:g} s", name, name_of(place),
                             state == PeerState::stopped ? "has been stopped" : "has not made this call", waited));
        }
      });
}

void RankGroup::wait_for_owner(const char* name, std::uint32_t phase, const std::function<void()>& meanwhile) {
  const std::uint32_t target = calls_ * kStepsOfOwner + phase, entered = calls_ * kStepsOfOwner + kEntered;
  double working = 0;  // seconds waited when the owner was last seen at work
  sleep_until(
      board_->owner_step, [&](std::uint32_t count) { return !before(count, target); },
      [&](double waited) {
        require_intact();
        if (meanwhile) meanwhile();
        const PeerState state = state_of(board_->owner);  // before its step, which it may take and then end
        if (!before(board_->owner_step.load(), target)) return;
        if (state == PeerState::gone) lose(fmt::format("{}: {}, which owns its rows, has ended", name, name_of(0)));
        if (state == PeerState::runs && !before(board_->owner_step.load(), entered)) working = waited;
        if (waited - working > all_.timeout_seconds())
          lose(fmt::format("{}: {}, which owns its rows, {} for {:g} s", name, name_of(0),
                           state == PeerState::stopped ? "has been stopped" : "has not made this call", waited - working));
      });
}

RankGroup::Layout RankGroup::layout(std::size_t operands) const {
  Layout made;
  for (std::size_t k = 0; k < operands; ++k) {
    GroupOperand& one = made.operands.emplace_back();
    one.starts.push_back(0);
    for (int place = 0; place < size(); ++place) one.starts.push_back(one.starts.back() + seat(place).bytes[k]);
    made.begins.push_back(made.bytes);
    made.bytes += (one.bytes() + kPage - 1) / kPage * kPage;
  }
  return made;
}

void RankGroup::Layout::put_at(std::byte* base) {
  for (std::size_t k = 0; k < operands.size(); ++k) operands[k].data = base + begins[k];
}

std::vector<Operand> RankGroup::prepared(const std::function<std::vector<Operand>()>& prepare) {
  std::vector<Operand> mine = prepare();
  if (mine.size() > kMostOperands)
    throw Error(ErrorKind::internal, fmt::format("a call with {} operands; {} are possible", mine.size(), kMostOperands));
  return mine;
}

void RankGroup::arrive(const char* name, const std::vector<Operand>& mine, const Said& failure) {
  Seat& own = seat(place_);
  std::strncpy(own.name, name, sizeof own.name - 1);
  own.failure = failure;
  own.operands = static_cast<std::uint32_t>(mine.size());
  for (std::size_t k = 0; k < mine.size(); ++k) own.bytes[k] = mine[k].bytes;
}

void RankGroup::require_same_call(const char* name, std::size_t operands) const {
  for (int place = 1; place < size(); ++place) {
    const Seat& of = seat(place);
    if (std::strncmp(of.name, name, sizeof of.name - 1) != 0 || of.operands != operands)
      throw Error(
          ErrorKind::usage,
          fmt::format("{} is in the call \"{}\", but {}, which owns its rows, in \"{}\"; all ranks must make the same "
                      "calls in the same order",
                      name_of(place), of.name, name_of(0), name));
  }
}

std::vector<Operand> RankGroup::prepare_all(const char* name, const std::function<std::vector<Operand>()>& prepare) {
  return owners_->run_agreed([&] {
    std::vector<Operand> mine;
    std::exception_ptr error;
    try {
      mine = prepared(prepare);
    } catch (...) {
      error = std::current_exception();
    }
    wait_for_feeders(name, kArrived);
    if (error) std::rethrow_exception(error);
    for (int place = 1; place < size(); ++place)
      if (const Said& failure = seat(place).failure; failure.kind != 0)
        throw Error(static_cast<ErrorKind>(failure.kind), fmt::format("of {}: {}", name_of(place), failure.message),
                    failure.setting);
    require_same_call(name, mine.size());
    arrive(name, mine, {});
    const std::size_t bytes = layout(mine.size()).bytes;
    memory_->reserve(bytes, kHandedOver);
    memory_->body(bytes);
    return mine;
  });
}

void RankGroup::give(const std::vector<Operand>& mine, std::span<const GroupOperand> all) {
  for (std::size_t k = 0; k < mine.size(); ++k)
    if (mine[k].give) mine[k].give(all[k].data + all[k].starts[static_cast<std::size_t>(place_)]);
}

void RankGroup::take(const std::vector<Operand>& mine, std::span<const GroupOperand> all) const {
  for (std::size_t k = 0; k < mine.size(); ++k)
    if (mine[k].take) mine[k].take(all[k].data + all[k].starts[static_cast<std::size_t>(place_)]);
}

void RankGroup::throw_failure(const Said& failure) {
  const auto kind = static_cast<ErrorKind>(failure.kind);
  if (failure.agreed != 0) throw AgreedError(kind, failure.message, failure.setting);
  if (kind == ErrorKind::rank_lost) all_.mark_broken(failure.message, failure.setting);
  throw Error(kind, failure.message, failure.setting);
}

std::string RankGroup::call(const char* name, const std::function<std::vector<Operand>()>& prepare,
                            const std::function<std::string(std::span<const GroupOperand>)>& work, Keep keep,
                            const std::function<void(std::span<const GroupOperand>)>& meanwhile) {
  require_intact();
  struct Count {
    std::uint32_t& calls;
    ~Count() { ++calls; }
  } const count{calls_};
  return owns() ? call_as_owner(name, prepare, work, keep) : call_as_feeder(name, prepare, meanwhile);
}

std::string RankGroup::call_as_owner(const char* name, const std::function<std::vector<Operand>()>& prepare,
                                     const std::function<std::string(std::span<const GroupOperand>)>& work, Keep keep) {
  constexpr double kLongSeconds = 0.2;
  std::string answer;
  std::vector<Operand> mine;
  Layout all;
  try {
    step(kEntered);
    mine = prepare_all(name, prepare);
    all = layout(mine.size());
    all.put_at(memory_->body(all.bytes));
    step(kGo);
    give(mine, all.operands);
    wait_for_feeders(name, kGave);
    const auto start = std::chrono::steady_clock::now();
    {
      const Working watched(*this);
      answer = work(all.operands);
    }
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > kLongSeconds)
      require_feeders(name);
    if (keep == Keep::nothing) memory_->release();
    const std::size_t begin = keep == Keep::nothing ? 0 : all.bytes;
    memory_->reserve(begin + answer.size(), kHandedOver);
    std::byte* const base = memory_->body(std::max(all.bytes, begin + answer.size()));
    std::memcpy(base + begin, answer.data(), answer.size());
    all.put_at(base);
    board_->answer_begin = begin, board_->answer_bytes = answer.size();
  } catch (...) {
    const Said failure = Said::of(std::current_exception());
    board_->failure = failure;
    step(kDone);
    throw;
  }
  board_->failure = {};
  step(kDone);
  take(mine, all.operands);
  return answer;
}

std::string RankGroup::call_as_feeder(const char* name, const std::function<std::vector<Operand>()>& prepare,
                                      const std::function<void(std::span<const GroupOperand>)>& meanwhile) {
  std::vector<Operand> mine;
  Said failure;
  try {
    mine = prepared(prepare);
  } catch (...) {
    failure = Said::of(std::current_exception());
    mine.clear();
  }
  arrive(name, mine, failure);
  step(kArrived);
  wait_for_owner(name, kGo, {});
  const bool failed = !before(board_->owner_step.load(), calls_ * kStepsOfOwner + kDone);  // before there was any work
  Layout all;
  if (!failed) {
    all = layout(mine.size());
    all.put_at(memory_->body(all.bytes));
    give(mine, all.operands);
  }
  step(kGave);
  wait_for_owner(name, kDone, [&] {
    if (meanwhile && !failed) meanwhile(all.operands);
  });
  if (board_->failure.kind != 0) throw_failure(board_->failure);
  const std::size_t begin = board_->answer_begin, bytes = board_->answer_bytes;
  std::byte* const base = memory_->body(std::max(all.bytes, begin + bytes));
  all.put_at(base);
  if (meanwhile) meanwhile(all.operands);
  take(mine, all.operands);
  return std::string(reinterpret_cast<const char*>(base + begin), bytes);
}

}  // namespace shardmat
