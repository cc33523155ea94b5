// How long an operation of a connection may take. One that takes longer is cancelled, and its handler finds late() true.
//
// Threads: the thread of the event loop.
#pragma once

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

namespace shardmat::serve {

class TimeLimit {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr double kLeastBytesPerSecond = 64 << 10;

  /// `cancel` ends the operations under way. Slow bodies have `grace_seconds`.
  TimeLimit(boost::asio::io_context& io, double grace_seconds, std::function<void()> cancel)
      : state_(std::make_shared<State>(io, grace_seconds, std::move(cancel))) {}

  bool late() const { return state_->late; }
  /// late(), because of the deadline of the body.
  bool past_deadline() const { return state_->late && Clock::now() >= state_->deadline; }
  /// As if the time were over.
  void end_now() { state_->be_late(); }
  /// Bytes that the present operation has moved.
  std::uint64_t* moved() { return &state_->moved; }

  void after(double seconds) {
    state_->late = false, state_->has_rate = false;
    state_->expire_at(Clock::now() + duration_of(seconds));
  }
  void never() { state_->latest = Clock::time_point::max(); }
  /// For bodies: after the grace time, moved() must have grown by the least rate. `deadline`: seconds of the clock.
  void when_slow(double deadline = std::numeric_limits<double>::infinity()) {
    State& s = *state_;
    s.deadline = deadline < kMost ? Clock::time_point(duration_of(deadline)) : Clock::time_point::max();
    s.late = false, s.moved = s.moved_before = 0;
    s.has_rate = true, s.rate_since = Clock::now();
    s.expire_at(s.latest_by_rate());
  }
  /// The same for a further piece, whose bytes count on top of the earlier ones. `pause`: in which nothing could come.
  void go_on(Clock::duration pause) {
    State& s = *state_;
    s.moved_before += std::exchange(s.moved, 0);
    s.has_rate = true, s.rate_since += pause;
    s.expire_at(s.latest_by_rate());
  }

 private:
  static constexpr double kMost = 1e9;  ///< seconds; more than a clock counts

  static Clock::duration duration_of(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(seconds, kMost)));
  }

  struct State : std::enable_shared_from_this<State> {
    State(boost::asio::io_context& io, double grace_seconds, std::function<void()> cancel_all)
        : timer(io), grace(grace_seconds), cancel(std::move(cancel_all)) {}

    Clock::time_point latest_by_rate() const {
      return std::min(deadline,
                      rate_since + duration_of(grace + static_cast<double>(moved_before + moved) / kLeastBytesPerSecond));
    }

    /// The timer is left alone as long as it rings early enough: it then looks at the limit of that time.
    void expire_at(Clock::time_point time) {
      latest = time;
      if (time < rings) ring_at(time);
    }

    void ring_at(Clock::time_point time) {
      rings = time;
      timer.expires_at(time);
      timer.async_wait([weak = weak_from_this()](boost::system::error_code error) {
        const auto me = weak.lock();
        if (error || !me || Clock::now() < me->rings) return;
        me->rings = Clock::time_point::max();
        me->check();
      });
    }

    void check() {
      if (latest == Clock::time_point::max()) return;
      if (has_rate) latest = latest_by_rate();
      if (Clock::now() < latest) return ring_at(latest);
      be_late();
    }

    void be_late() {
      late = true;
      cancel();
    }

    boost::asio::steady_timer timer;
    double grace;
    std::function<void()> cancel;
    Clock::time_point latest = Clock::time_point::max(), rings = Clock::time_point::max(), rate_since;
    Clock::time_point deadline = Clock::time_point::max();
    std::uint64_t moved = 0, moved_before = 0;
    bool has_rate = false, late = false;
  };

  std::shared_ptr<State> state_;
};

}  // namespace shardmat::serve
