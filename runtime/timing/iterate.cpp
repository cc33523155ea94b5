#include "runtime/timing/iterate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/eigen/power_step.h"

namespace shardmat {
namespace {

constexpr int kMostRepetitions = 50;  // of product and exchange, each timed alone
constexpr int kLeastRepetitions = 3;
constexpr double kPhaseSeconds = 1;
constexpr double kWarmUpSeconds = 0.05;  // an idle GPU needs some milliseconds to reach its clocks
constexpr std::int64_t kMostWarmUps = 2000;
constexpr double kSecondsBetweenWaits = 1;  // so that a deadline measures one stretch of work, not the whole run
/// Steps between two events of a GPU, and in a graph, if there are many: an event between each two would add 3 µs to each,
/// the start of a graph 1 µs.
constexpr std::int64_t kStepsAMark = 8;
constexpr std::int64_t kMostBetweenWaits = 12 * kStepsAMark;  // a device's queue must never fill behind a lost rank

/// Takes so many steps.
using Steps = std::function<void(std::int64_t count)>;

Steps repeat(std::function<void()> step) {
  return [step = std::move(step)](std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) step();
  };
}

/// Steps that were recorded one by one, and kStepsAMark at a time where so many are to come.
class RecordedSteps {
 public:
  RecordedSteps(Stream& stream, const Steps& steps, std::int64_t to_come)
      : stream_(stream), one_(stream, [&] { steps(1); }) {
    if (to_come >= kStepsAMark) several_.emplace(stream, [&] { steps(kStepsAMark); });
  }
  void operator()(std::int64_t count) {
    for (; several_ && count >= kStepsAMark; count -= kStepsAMark) several_->launch(stream_);
    for (; count > 0; --count) one_.launch(stream_);
  }

 private:
  Stream& stream_;
  Graph one_;
  std::optional<Graph> several_;
};

/// Times steps on the stream of a context; all `ranks` take the same number of them.
class Stopwatch {
 public:
  Stopwatch(Communicator& ranks, Context& context, std::span<const Iterated> several)
      : ranks_(ranks), stream_(context.stream()), several_(several) {}

  /// Blocks until the steps so far are done, with the deadline of the exchange.
  void wait() {
    if (several_.empty()) stream_.synchronize();
    else several_.front().product->wait(stream_);
  }

  std::int64_t steps_a_mark(std::int64_t iterations) const {
    return stream_.device().backend == Backend::cuda && iterations >= 5 * kStepsAMark ? kStepsAMark : 1;
  }

  /// Takes `iterations` steps and times each (or each kStepsAMark, giving their mean); waits now and then, so that a lost
  /// rank shows.
  std::vector<double> each(std::int64_t iterations, const Steps& steps, const Progress& progress, std::string_view phase) {
    std::vector<double> seconds;
    std::int64_t chunk = 1;
    while (static_cast<std::int64_t>(seconds.size()) < iterations) {
      const auto done = static_cast<std::int64_t>(seconds.size());
      const std::int64_t now = std::min(chunk, iterations - done);
      const std::vector<double> some = time_some(now, steps_a_mark(iterations), steps);
      seconds.insert(seconds.end(), some.begin(), some.end());
      const double longest = *std::max_element(some.begin(), some.end());
      chunk = std::clamp(static_cast<std::int64_t>(kSecondsBetweenWaits / std::max(longest, 1e-9)), std::int64_t{1},
                         kMostBetweenWaits);
      if (chunk > kStepsAMark) chunk -= chunk % kStepsAMark;
      chunk = ranks_.all_reduce(chunk, Reduction::min);
      report(progress, phase, done + now, iterations);
    }
    return seconds;
  }

  /// Takes steps for about kWarmUpSeconds; returns the seconds of the first.
  double warm_up(const Steps& steps) {
    const Timer timer;
    steps(1);
    wait();
    const double seconds = ranks_.all_reduce(timer.seconds(), Reduction::max);
    auto left = static_cast<std::int64_t>(std::min<double>(kMostWarmUps, kWarmUpSeconds / std::max(seconds, 1e-6)));
    for (; left > 0; left -= kMostBetweenWaits) {
      steps(std::min(left, kMostBetweenWaits));
      wait();
    }
    return seconds;
  }

 private:
  std::vector<double> time_some(std::int64_t count, std::int64_t together, const Steps& steps) {
    std::vector<Event> marks;
    for (std::int64_t i = 0; i <= (count + together - 1) / together; ++i) marks.emplace_back(stream_.device());
    marks[0].record(stream_);
    for (std::int64_t i = 0; i < count; i += together) {
      steps(std::min(together, count - i));
      marks[static_cast<std::size_t>(i / together) + 1].record(stream_);
    }
    wait();
    std::vector<double> seconds;
    for (std::int64_t i = 0; i < count; i += together) {
      const auto mark = static_cast<std::size_t>(i / together);
      const std::int64_t taken = std::min(together, count - i);
      const double mean = marks[mark + 1].seconds_since(marks[mark]) / static_cast<double>(taken);
      seconds.insert(seconds.end(), static_cast<std::size_t>(taken), mean);
    }
    return seconds;
  }

  Communicator& ranks_;
  Stream& stream_;
  std::span<const Iterated> several_;
};

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// An iteration takes as long as its slowest rank.
IterationTimes slowest_of_ranks(std::vector<double> seconds, Communicator& communicator) {
  IterationTimes times;
  times.iterations = static_cast<std::int64_t>(seconds.size());
  if (seconds.empty()) return times;
  times.of_ranks = over_ranks(median_of(seconds), communicator);
  communicator.all_reduce(std::span<double>(seconds), Reduction::max);
  const auto [min, max] = std::minmax_element(seconds.begin(), seconds.end());
  times.min = *min;
  times.max = *max;
  times.median = median_of(seconds);
  times.mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
  times.samples = std::move(seconds);
  return times;
}

/// The eigenvalue and its relative residual for the last normalised x. Throws if x was lost: y was 0, or the sum of its
/// squares was not a finite normal number.
IterationEstimate estimate_eigenvalue(const Iterated& one, PowerStep& step, Stream& stream) {
  void* x = one.product->x().data;
  const double xx = step.dots(x, x, stream).first;
  one.product->matrix().context().communicator().run_agreed([&] {
    if (xx > 0.5 && xx < 2) return;
    throw Error(ErrorKind::input,
                "power iteration: x cannot be made a vector of length 1. Either A x became 0, as with x = 0, or the squares "
                "of its entries leave the range of f64 (entries of y above 1e154 or below 1e-154): scale the matrix, or "
                "begin with another x",
                "x");
  });
  one.product->multiply(1, 0, one.y, stream);
  IterationEstimate estimate;
  double distance = 0;
  std::tie(estimate.eigenvalue, distance) = step.eigenvalue(x, one.y.data, stream);
  if (distance != 0) estimate.residual = distance / std::abs(estimate.eigenvalue);  // infinite if λ is 0
  return estimate;
}

/// A copy of the x of each matrix, to start again from.
class SavedX {
 public:
  SavedX(Communicator& ranks, std::span<const Iterated> several, Stream& stream) : several_(several), stream_(stream) {
    ranks.run_agreed([&] {
      std::size_t all = 0;
      for (const Iterated& one : several) all += bytes(one);
      require_memory(stream.device(), static_cast<std::int64_t>(all), "a copy of x");
      for (const Iterated& one : several) copies_.emplace_back(stream.device(), bytes(one));
    });
    for (std::size_t i = 0; i < copies_.size(); ++i)
      copy_on_device(copies_[i].data(), several_[i].product->x().data, bytes(several_[i]), stream);
  }
  void restore() {
    for (std::size_t i = 0; i < copies_.size(); ++i)
      copy_on_device(several_[i].product->x().data, copies_[i].data(), bytes(several_[i]), stream_);
  }
  static std::size_t bytes(const Iterated& one) {
    const DistributedMatrix& matrix = one.product->matrix();
    return static_cast<std::size_t>(matrix.local_rows()) * size_of(matrix.type());
  }

 private:
  std::span<const Iterated> several_;
  Stream& stream_;
  std::vector<Buffer> copies_;
};

void require_square(std::span<const Iterated> several, Mode mode) {
  for (const Iterated& one : several)
    if (const DistributedMatrix& matrix = one.product->matrix(); matrix.rows() != matrix.cols())
      throw Error(
          ErrorKind::usage,
          fmt::format("mode {} needs a square matrix, this one is {} × {}", name(mode), matrix.rows(), matrix.cols()),
          "mode");
}

/// One call of iterate().
class Iteration {
 public:
  Iteration(Communicator& ranks, Context& context, std::span<const Iterated> several, const IterateOptions& options)
      : ranks_(ranks),
        several_(several),
        options_(options),
        stream_(context.stream()),
        watch_(ranks, context, several),
        records_(options.graph && context.device().backend == Backend::cuda && !several.empty()) {
    result_.estimates.resize(several.size());
    result_.graph = records_ && std::all_of(several.begin(), several.end(),
                                            [](const Iterated& one) { return one.product->exchange().capturable(); });
    if (options.mode == Mode::repeat) return;
    require_square(several, options.mode);
    for (const Iterated& one : several) steps_.push_back(std::make_unique<PowerStep>(*one.product));
    if (!steps_.empty()) result_.sums = steps_[0]->summed_by();
  }

  IterateResult operator()() {
    time_phases();
    prepare();
    time_iterations();
    estimate();
    return std::move(result_);
  }

 private:
  /// The product alone, and the exchange alone.
  void time_phases() {
    const Steps local_steps = repeat([this] {
      for (const Iterated& one : several_) one.product->multiply_local(options_.alpha, options_.beta, one.y, stream_);
    });
    const Steps exchange_steps = repeat([this] {
      for (const Iterated& one : several_) one.product->move_x(stream_);
    });
    exchange_steps(1);  // libraries allocate and connect on first use, which a recording forbids
    const double seconds = watch_.warm_up(local_steps);
    const auto repetitions = static_cast<std::int64_t>(
        std::clamp<double>(kPhaseSeconds / std::max(seconds, 1e-9), kLeastRepetitions, kMostRepetitions));
    result_.local = times(repetitions, records_ ? recorded(local_steps, repetitions) : local_steps, {}, {});
    result_.exchange = times(repetitions, result_.graph ? recorded(exchange_steps, repetitions) : exchange_steps, {}, {});
  }

  void prepare() {
    for (std::size_t i = 0; i < several_.size(); ++i) {
      const auto& [product, y] = several_[i];
      if (options_.mode == Mode::dots) steps_[i]->dots(product->x().data, y.data, stream_);  // connects the ranks
      if (options_.mode != Mode::power) continue;
      // x is normalised before the first product, so that the result does not depend on its length.
      copy_on_device(y.data, product->x().data, SavedX::bytes(several_[i]), stream_);
      steps_[i]->normalise(y.data, product->x().data, stream_);
    }
    watch_.wait();
  }

  void step() {
    for (std::size_t i = 0; i < several_.size(); ++i) {
      const auto& [product, y] = several_[i];
      product->multiply(options_.alpha, options_.beta, y, stream_);
      if (options_.mode == Mode::dots)
        steps_[i]->add(product->x().data, y.data, stream_), steps_[i]->add(y.data, y.data, stream_);
      if (options_.mode == Mode::power) steps_[i]->normalise(y.data, product->x().data, stream_);
    }
  }

  void time_iterations() {
    Steps steps = repeat([this] { step(); });
    if (result_.graph) steps = recorded(steps, options_.iterations);
    if (options_.mode == Mode::power) {  // warming up must not show in the result: it starts from x as it is now
      SavedX x(ranks_, several_, stream_);
      watch_.warm_up(steps);
      x.restore();
      watch_.wait();
    } else {
      watch_.warm_up(steps);
    }
    result_.iteration = times(options_.iterations, steps, options_.progress, "iterating");
  }

  void estimate() {
    for (std::size_t i = 0; i < several_.size(); ++i) {
      if (options_.mode == Mode::power) {
        result_.estimates[i] = estimate_eigenvalue(several_[i], *steps_[i], stream_);
      }
      if (options_.mode == Mode::dots)
        std::tie(result_.estimates[i].xy, result_.estimates[i].yy) =
            steps_[i]->dots(several_[i].product->x().data, several_[i].y.data, stream_);
    }
  }

  /// Steps from graphs, `count` of which are to come.
  Steps recorded(const Steps& work, std::int64_t count) {
    return [graphs = std::make_shared<RecordedSteps>(stream_, work, count)](std::int64_t now) { (*graphs)(now); };
  }
  IterationTimes times(std::int64_t count, const Steps& work, const Progress& progress, std::string_view phase) {
    IterationTimes found = slowest_of_ranks(watch_.each(count, work, progress, phase), ranks_);
    found.together = watch_.steps_a_mark(count);
    return found;
  }

  Communicator& ranks_;
  std::span<const Iterated> several_;
  const IterateOptions& options_;
  Stream& stream_;
  Stopwatch watch_;
  bool records_;  ///< work of this rank alone is recorded in graphs
  std::vector<std::unique_ptr<PowerStep>> steps_;
  IterateResult result_;
};

}  // namespace

std::string_view name(Mode mode) {
  switch (mode) {
    case Mode::repeat:
      return "repeat";
    case Mode::dots:
      return "dots";
    case Mode::power:
      return "power";
  }
  throw Error(ErrorKind::internal, "unknown mode");
}

IterateResult iterate(Communicator& ranks, Context& context, std::span<const Iterated> several,
                      const IterateOptions& options) {
  const ContextScope scope(context);
  return Iteration(ranks, context, several, options)();
}

IterateResult iterate(const Product& product, const Dense& y, const IterateOptions& options) {
  const Iterated one{&product, y};
  Context& context = product.matrix().context();
  return iterate(context.communicator(), context, std::span<const Iterated>(&one, 1), options);
}

}  // namespace shardmat
