#include "tools/bench/service/simulation.h"

#include <cstdint>
#include <deque>
#include <queue>
#include <utility>

#include "tools/serve/ranks/fair_schedule.h"
#include "tools/serve/ranks/request_queue.h"

namespace shardmat::tools::service_bench {
namespace {

class Simulation {
 public:
  Simulation(const SimulatedService& service, std::span<const double> arrivals)
      : service_(service), arrivals_(arrivals), latencies_(arrivals.size()) {}

  std::vector<double> run() {
    for (std::size_t i = 0; i < arrivals_.size(); ++i) events_.push({arrivals_[i], Kind::arrival, i});
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.kind == Kind::arrival) {
        give_front(event.time, {event.request, false});
      } else if (event.kind == Kind::front) {
        end_front(event.time);
      } else {
        end_product(event.time);
      }
    }
    return std::move(latencies_);
  }

 private:
  enum class Kind { arrival, front, product };
  struct Event {
    double time;
    Kind kind;
    std::uint64_t request;
    bool operator>(const Event& other) const { return time > other.time; }
  };
  struct Task {
    std::uint64_t request;
    bool answered;  ///< its product is done
  };

  void give_front(double time, Task task) {
    front_.push_back(task);
    if (front_.size() == 1) start_front(time);
  }
  void start_front(double time) { events_.push({time + service_.front_seconds / 2, Kind::front, 0}); }

  void end_front(double time) {
    const Task task = front_.front();
    front_.pop_front();
    if (task.answered) {
      latencies_[task.request] = time - arrivals_[task.request] + service_.delay_seconds;
    } else {
      queue_.add({task.request, 1, time});
      start_product(time);
    }
    if (!front_.empty()) start_front(time);
  }

  void start_product(double time) {
    if (!product_.empty() || queue_.empty()) return;
    const serve::FairSchedule::Batch batch =
        schedule_.take(queue_, service_.table, time, [](std::uint64_t) { return true; });
    product_ = batch.requests;
    events_.push({time + service_.table.for_columns(batch.columns).seconds + service_.turn_seconds, Kind::product, 0});
  }

  void end_product(double time) {
    const auto done = std::exchange(product_, {});
    start_product(time);
    for (const std::uint64_t request : done) give_front(time, {request, true});
  }

  const SimulatedService& service_;
  std::span<const double> arrivals_;
  std::vector<double> latencies_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::deque<Task> front_;
  serve::RequestQueue queue_;
  serve::FairSchedule schedule_;
  std::vector<std::uint64_t> product_;  ///< requests of the product under way
};

}  // namespace

std::vector<double> simulate(const SimulatedService& service, std::span<const double> arrivals) {
  return Simulation(service, arrivals).run();
}

}  // namespace shardmat::tools::service_bench
