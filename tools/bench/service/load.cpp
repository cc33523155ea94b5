#include "tools/bench/service/load.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <queue>
#include <random>

#include "kernels/base/error.h"

namespace shardmat::tools::service_bench {
namespace {

constexpr std::uint64_t kTimer = ~std::uint64_t{0};
constexpr double kLeastWait = 1e-6, kStopCheck = 0.02;

class Load {
 public:
  explicit Load(const LoadOptions& options)
      : o_(options),
        random_(options.seed),
        gap_(options.rate > 0 ? options.rate : 1),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
    if (epoll_ < 0 || timer_ < 0) throw Error(ErrorKind::resources, "no descriptor is left for the load generator");
    epoll_event event{EPOLLIN, {.u64 = kTimer}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, timer_, &event);
    for (int i = 0; i < o_.connections; ++i) {
      clients_.push_back(std::make_unique<Client>(o_.socket));
      if (o_.prepare) o_.prepare(clients_.back()->connection);
      watch(clients_.size() - 1, EPOLL_CTL_ADD, EPOLLIN);
    }
  }
  ~Load() { close(epoll_), close(timer_); }

  LoadResult run() {
    const double begin = result_.began = now(), end = begin + o_.seconds;
    for (std::size_t i = clients_.size(); i-- > 0;) o_.rate > 0 ? free_.push_back(i) : rest(i, begin);
    next_arrival_ = begin + gap_(random_);
    double last = std::numeric_limits<double>::infinity();
    while (now() < last) {
      const double time = now();
      if (sending_ && (time >= end || arrived_ >= o_.most || (o_.stop != nullptr && o_.stop->load()))) {
        sending_ = false;
        last = time + o_.patience;
      }
      if (sending_) start_due(time, end);
      if (!sending_ && under_way_ == 0 && waiting_.empty()) break;
      wait(sending_ ? std::min(end, due()) : last);
    }
    result_.missing = under_way_ + static_cast<std::int64_t>(waiting_.size());
    return std::move(result_);
  }

 private:
  struct Client {
    explicit Client(const std::string& socket) : connection(socket) {}
    Connection connection;
    const Request* request = nullptr;
    Sample sample;
    bool watches_out = false;
  };

  void watch(std::size_t i, int operation, std::uint32_t events) {
    epoll_event event{events, {.u64 = i}};
    epoll_ctl(epoll_, operation, clients_[i]->connection.descriptor(), &event);
  }

  void rest(std::size_t i, double until) { resting_.emplace(until, i); }

  /// When something is to be sent next.
  double due() const {
    if (o_.rate > 0) return next_arrival_;
    return resting_.empty() ? std::numeric_limits<double>::infinity() : resting_.top().first;
  }

  void start_due(double time, double end) {
    if (o_.rate > 0) {
      for (; next_arrival_ <= time && next_arrival_ < end && arrived_ < o_.most; next_arrival_ += gap_(random_)) {
        ++arrived_;
        waiting_.push_back(next_arrival_);
      }
      return start_waiting();
    }
    while (!resting_.empty() && resting_.top().first <= time && arrived_ < o_.most) {
      const std::size_t i = resting_.top().second;
      resting_.pop();
      ++arrived_;
      start(i, now());
    }
  }

  void start_waiting() {
    while (!waiting_.empty() && !free_.empty()) {
      const std::size_t i = free_.back();
      free_.pop_back();
      const double intended = waiting_.front();
      waiting_.pop_front();
      start(i, intended);
    }
  }

  void start(std::size_t i, double intended) {
    Client& client = *clients_[i];
    const std::int64_t number = started_++;
    const std::size_t which = o_.pick ? o_.pick(number) : static_cast<std::size_t>(number) % o_.requests.size();
    client.request = &o_.requests[which];
    client.sample = {intended, now()};
    ++under_way_;
    client.connection.begin(*client.request);
    send(i);
  }

  void send(std::size_t i) {
    Client& client = *clients_[i];
    client.connection.send_some();
    if (client.connection.sending() != client.watches_out) {
      client.watches_out = client.connection.sending();
      watch(i, EPOLL_CTL_MOD, client.watches_out ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
  }

  /// Has wait() return at this time or before.
  void arm(double until) {
    const double time = now();
    until = std::min(until, time + (o_.stop != nullptr ? kStopCheck : 1));
    if (armed_ > time && armed_ <= until) return;
    armed_ = std::max(until, time + kLeastWait);
    itimerspec spec{};
    spec.it_value.tv_sec = static_cast<time_t>(armed_);
    spec.it_value.tv_nsec = static_cast<long>((armed_ - std::floor(armed_)) * 1e9);
    timerfd_settime(timer_, TFD_TIMER_ABSTIME, &spec, nullptr);
  }

  void wait(double until) {
    arm(until);
    epoll_event events[64];
    const int count = epoll_wait(epoll_, events, 64, -1);
    for (int e = 0; e < count; ++e) {
      const std::uint64_t i = events[e].data.u64;
      if (i == kTimer) {
        std::uint64_t expirations = 0;
        [[maybe_unused]] const ssize_t ignored = read(timer_, &expirations, sizeof expirations);
        continue;
      }
      if ((events[e].events & EPOLLOUT) != 0) send(i);
      if ((events[e].events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) receive(i);
    }
  }

  void receive(std::size_t i) {
    Client& client = *clients_[i];
    const Connection::State state = client.connection.receive_some();
    if (state == Connection::State::busy) return;
    const bool complete = state == Connection::State::complete && client.request != nullptr;
    bool closes = !complete || o_.fresh_connections;
    if (client.request != nullptr) {
      client.sample.done = now();
      if (complete) {
        const Reply reply = client.connection.reply();
        client.sample.status = reply.status;
        client.sample.columns = reply.batch_columns();
        closes = closes || reply.closes || client.connection.sending();
        if (!is_right(*client.request, reply)) ++result_.wrong;
      }
      result_.samples.push_back(client.sample);
      client.request = nullptr;
      --under_way_;
      o_.rate > 0 ? free_.push_back(i) : rest(i, client.sample.status / 100 == 2 ? 0 : now() + o_.pause);
    }
    if (closes) {
      client.connection.reconnect();
      client.watches_out = false;
      watch(i, EPOLL_CTL_ADD, EPOLLIN);
    }
    if (o_.rate > 0) start_waiting();
  }

  const LoadOptions& o_;
  std::mt19937_64 random_;
  std::exponential_distribution<double> gap_;
  int epoll_, timer_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::size_t> free_;  ///< open: connections without a request
  std::deque<double> waiting_;     ///< open: intended times of requests for which no connection is free
  using Rest = std::pair<double, std::size_t>;
  std::priority_queue<Rest, std::vector<Rest>, std::greater<>> resting_;  ///< closed: connections and when they go on
  double next_arrival_ = 0, armed_ = 0;
  bool sending_ = true;
  std::int64_t arrived_ = 0, started_ = 0, under_way_ = 0;
  LoadResult result_;
};

}  // namespace

LoadResult run_load(const LoadOptions& options) { return Load(options).run(); }

std::map<int, std::int64_t> LoadResult::statuses() const {
  std::map<int, std::int64_t> counts;
  for (const Sample& sample : samples) ++counts[sample.status];
  return counts;
}

std::vector<double> LoadResult::latencies() const {
  std::vector<double> seconds;
  for (const Sample& sample : samples)
    if (sample.succeeded()) seconds.push_back(sample.latency());
  return seconds;
}

std::vector<double> LoadResult::latencies(int status) const {
  std::vector<double> seconds;
  for (const Sample& sample : samples)
    if (sample.status == status) seconds.push_back(sample.latency());
  return seconds;
}

double LoadResult::rate(double from, double to) const {
  const auto inside = [&](const Sample& s) { return s.succeeded() && s.done >= began + from && s.done < began + to; };
  return static_cast<double>(std::count_if(samples.begin(), samples.end(), inside)) / (to - from);
}

BackgroundLoad::BackgroundLoad(LoadOptions options) : options_(std::move(options)) {
  options_.stop = &stop_;
  thread_ = std::thread([this] {
    try {
      result_ = run_load(options_);
    } catch (const Error&) {  // a connection was refused
      ++result_.missing;
    }
  });
}

BackgroundLoad::~BackgroundLoad() { finish(); }

const LoadResult& BackgroundLoad::finish() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  return result_;
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace shardmat::tools::service_bench
