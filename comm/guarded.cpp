// Local work between collective calls that may fail on one rank: Communicator::run_guarded().
#include "comm/communicator.h"
#include "kernels/base/error.h"

namespace shardmat {
namespace {

/// Another rank failed: this one leaves the guarded work, and learns why in agree().
struct OtherRankFailed {};

}  // namespace

void Communicator::check_in() {
  if (!guarded_ || size_ == 1) return;
  guarded_ = false;  // of this call alone
  const bool failed = all_reduce(0, Reduction::max) != 0;
  guarded_ = true;
  if (failed) throw OtherRankFailed();
}

void Communicator::run_guarded(const std::function<void()>& work) {
  if (guarded_) return work();
  std::exception_ptr mine;
  bool agreed = false, lost = false;
  guarded_ = true;
  try {
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
  guarded_ = false;
  if (agreed || lost) {
    if (mine) std::rethrow_exception(mine);
    return;
  }
  if (mine && size_ > 1) all_reduce(1, Reduction::max);  // what the other ranks check in with
  agree(mine);
}

}  // namespace shardmat
