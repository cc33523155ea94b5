// Local work between collective calls that may fail on one rank: Communicator::run_guarded().
#include <algorithm>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/error.h"

namespace shardmat {
namespace {

/// Another rank failed: this one leaves the guarded work, and learns why in agree().
struct OtherRankFailed {};

/// Communicators whose guarded work this thread does. Work that pauses lets other threads use its communicator.
thread_local std::vector<const Communicator*> guarded;

bool is_guarded(const Communicator& ranks) { return std::find(guarded.begin(), guarded.end(), &ranks) != guarded.end(); }

class Guarded {
 public:
  explicit Guarded(const Communicator& ranks) { guarded.push_back(&ranks); }
  ~Guarded() { guarded.pop_back(); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
};

/// For one call.
class NotGuarded {
 public:
  NotGuarded() : before_(std::move(guarded)) { guarded.clear(); }
  ~NotGuarded() { guarded = std::move(before_); }
  NotGuarded(const NotGuarded&) = delete;
  NotGuarded& operator=(const NotGuarded&) = delete;

 private:
  std::vector<const Communicator*> before_;
};

}  // namespace

void Communicator::check_in() {
  if (size_ == 1 || !is_guarded(*this)) return;
  const bool failed = [&] {
    const NotGuarded call;
    return all_reduce(0, Reduction::max) != 0;
  }();
  if (failed) throw OtherRankFailed();
}

void Communicator::run_guarded(const std::function<void()>& work) {
  if (is_guarded(*this)) return work();
  std::exception_ptr mine;
  bool agreed = false, lost = false;
  try {
    const Guarded scope(*this);
    work();
    check_in();  // for a rank that fails after its last call
    agreed = true;
  } catch (const AgreedError&) {
    agreed = true, mine = std::current_exception();
  } catch (const OtherRankFailed&) {
  } catch (const Error& error) {
    lost = error.kind() == ErrorKind::rank_lost, mine = std::current_exception();
  } catch (...) {
    mine = std::current_exception();
  }
  if (agreed || lost) {
    if (mine) std::rethrow_exception(mine);
    return;
  }
  if (mine && size_ > 1) all_reduce(1, Reduction::max);  // what the other ranks check in with
  agree(mine);
}

}  // namespace shardmat
