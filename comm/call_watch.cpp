#include "comm/call_watch.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace shardmat {
namespace {

constexpr double kMostSecondsBetween = 1, kLooks = 8;  // in the time that a call may take

}  // namespace

CallWatch::CallWatch(double seconds, std::function<void(const std::string&)> stuck)
    : seconds_(seconds), stuck_(std::move(stuck)), thread_([this] { watch(); }) {}

CallWatch::~CallWatch() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

std::shared_ptr<WatchedCaller> CallWatch::add() {
  auto caller = std::make_shared<WatchedCaller>();
  const std::lock_guard lock(mutex_);
  seen_.push_back({caller});
  return caller;
}

const char* CallWatch::look(int most) {
  const char* found = nullptr;
  std::erase_if(seen_, [&](Seen& seen) {
    const std::shared_ptr<WatchedCaller> caller = seen.caller.lock();
    if (caller == nullptr) return true;
    const std::uint64_t count = caller->count_.load(std::memory_order_acquire);
    seen.looks = count % 2 == 1 && count == seen.count ? seen.looks + 1 : 0;
    seen.count = count;
    if (seen.looks >= most) found = caller->function_.load(std::memory_order_relaxed);
    return false;
  });
  return found;
}

void CallWatch::watch() {
  // Looks are counted, not seconds: of the time for which the process was stopped the thread sees one look.
  const double pause = std::min(seconds_ / kLooks, kMostSecondsBetween);
  const int most = static_cast<int>(std::min(std::ceil(seconds_ / pause), 1e9));
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::duration<double>(pause), [this] { return end_; })) {
    const char* function = look(most);
    if (function == nullptr) continue;
    lock.unlock();
    return stuck_(function);
  }
}

}  // namespace shardmat
