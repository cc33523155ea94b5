#include "runtime/iterate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>

#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "kernels/vector.h"

namespace shardmat {
namespace {

constexpr int kMostRepetitions = 50;  // of product and exchange, each timed alone
constexpr int kLeastRepetitions = 3;
constexpr double kPhaseSeconds = 1;
constexpr double kWarmUpSeconds = 0.05;  // an idle GPU needs some milliseconds to reach its clocks
constexpr int kMostWarmUps = 200;
constexpr double kSecondsBetweenWaits = 1;       // so that a deadline measures one stretch of work, not the whole run
constexpr std::int64_t kMostBetweenWaits = 100;  // a device's queue must never fill behind a lost rank
/// Steps between two events of a GPU if there are many: an event between each two would add 3 µs to each.
constexpr std::int64_t kStepsAMark = 8;

std::int64_t steps_a_mark(const DistributedMatrix& matrix, std::int64_t iterations) {
  return matrix.context().device().backend == Backend::cuda && iterations >= 5 * kStepsAMark ? kStepsAMark : 1;
}

/// Runs `step` `iterations` times on the stream and times each (or each kStepsAMark, giving their mean); waits now and then,
/// so that a lost rank shows.
std::vector<double> timed_steps(const DistributedMatrix& matrix, std::int64_t iterations, const std::function<void()>& step,
                                const Progress& progress, std::string_view phase) {
  Stream& stream = matrix.context().stream();
  const std::int64_t together = steps_a_mark(matrix, iterations);
  std::vector<double> seconds;
  std::int64_t chunk = 1;
  while (static_cast<std::int64_t>(seconds.size()) < iterations) {
    const auto done = static_cast<std::int64_t>(seconds.size());
    const std::int64_t now = std::min(chunk, iterations - done);
    std::vector<Event> marks;
    for (std::int64_t i = 0; i <= (now + together - 1) / together; ++i) marks.emplace_back(stream.device());
    marks[0].record(stream);
    for (std::int64_t i = 0; i < now; ++i) {
      step();
      if ((i + 1) % together == 0 || i + 1 == now) marks[static_cast<std::size_t>(i / together) + 1].record(stream);
    }
    matrix.exchange().wait(stream);
    for (std::int64_t i = 0; i < now; i += together) {
      const auto mark = static_cast<std::size_t>(i / together);
      const std::int64_t steps = std::min(together, now - i);
      const double mean = marks[mark + 1].seconds_since(marks[mark]) / static_cast<double>(steps);
      seconds.insert(seconds.end(), static_cast<std::size_t>(steps), mean);
    }
    const double longest = *std::max_element(seconds.end() - now, seconds.end());
    chunk = std::clamp(static_cast<std::int64_t>(kSecondsBetweenWaits / std::max(longest, 1e-9)), std::int64_t{1},
                       kMostBetweenWaits);
    // All ranks take the same number of steps between waits.
    chunk = matrix.context().communicator().all_reduce(chunk, Reduction::min);
    report(progress, phase, done + now, iterations);
  }
  return seconds;
}

/// Runs `step` for about kWarmUpSeconds, the same number of times on all ranks; returns the seconds of the first.
double warm_up(const DistributedMatrix& matrix, const std::function<void()>& step) {
  Stream& stream = matrix.context().stream();
  const Timer timer;
  step();
  matrix.exchange().wait(stream);
  const double seconds = matrix.context().communicator().all_reduce(timer.seconds(), Reduction::max);
  const int steps = static_cast<int>(std::min<double>(kMostWarmUps, kWarmUpSeconds / std::max(seconds, 1e-6)));
  for (int i = 0; i < steps; ++i) step();
  matrix.exchange().wait(stream);
  return seconds;
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// An iteration takes as long as its slowest rank.
IterationTimes over_ranks(std::vector<double> seconds, Communicator& communicator) {
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
  return times;
}

/// The device's part of power iteration: after a product, dots[0] = xᵀy and dots[1] = yᵀy over all ranks, then x ← y / ‖y‖.
class PowerStep {
 public:
  explicit PowerStep(const DistributedMatrix& matrix)
      : matrix_(matrix), products_(matrix.context().device()), dots_(matrix.context().device(), 2 * sizeof(double)) {
    if (matrix.rows() != matrix.cols())
      throw Error(ErrorKind::usage, "--mode power needs a square matrix, this one is " + std::to_string(matrix.rows()) +
                                        " × " + std::to_string(matrix.cols()));
  }

  void normalise_x(const void* y, Stream& stream) {
    sum_dots(y, stream);
    normalise(matrix_.type(), matrix_.local_rows(), y, dots_.as<double>() + 1, matrix_.exchange().local_x(), stream);
  }

  /// xᵀy and yᵀy over all ranks, on the host.
  std::pair<double, double> dots(const void* y, Stream& stream) {
    sum_dots(y, stream);
    matrix_.exchange().wait(stream);
    double values[2];
    copy_to_host(values, dots_.data(), sizeof values, stream);
    return {values[0], values[1]};
  }

 private:
  void sum_dots(const void* y, Stream& stream) {
    Context& context = matrix_.context();
    products_.compute(matrix_.type(), matrix_.local_rows(), matrix_.exchange().local_x(), y, dots_.as<double>(), stream);
    if (context.nccl() != nullptr) context.nccl()->all_reduce_sum(dots_.as<double>(), 2, stream);
    else if (context.communicator().size() > 1)
      context.communicator().all_reduce(std::span<double>(dots_.as<double>(), 2), Reduction::sum);
  }

  const DistributedMatrix& matrix_;
  DotProducts products_;
  Buffer dots_;
};

/// λ = xᵀy for the last normalised x, and how far (λ, x) is from an eigenpair: ‖y - λx‖² = yᵀy - λ² for ‖x‖ = 1.
void estimate_eigenvalue(const DistributedMatrix& matrix, PowerStep& power, void* y, IterateResult& result) {
  Stream& stream = matrix.context().stream();
  matrix.multiply(1, 0, y, stream);
  const auto [xy, yy] = power.dots(y, stream);
  result.eigenvalue = xy;
  const double distance = std::sqrt(std::max(0.0, yy - xy * xy));
  result.residual = distance == 0 ? 0 : distance / std::abs(xy);  // infinite if λ is 0 and y is not
}

}  // namespace

IterateResult iterate(const DistributedMatrix& matrix, void* y, const IterateOptions& options) {
  Context& context = matrix.context();
  Stream& stream = context.stream();
  IterateResult result;
  std::optional<PowerStep> power;
  if (options.mode == Mode::power) context.communicator().together([&] { power.emplace(matrix); });

  std::function<void()> step = [&] {
    matrix.multiply(options.alpha, options.beta, y, stream);
    if (power) power->normalise_x(y, stream);
  };
  const std::function<void()> local_step = [&] { matrix.multiply_local(options.alpha, options.beta, y, stream); };
  const std::function<void()> exchange_step = [&] {
    matrix.exchange().start(stream);
    matrix.exchange().finish(stream);
  };
  const auto times = [&](std::int64_t count, const std::function<void()>& work, const Progress& progress,
                         std::string_view phase) {
    IterationTimes found = over_ranks(timed_steps(matrix, count, work, progress, phase), context.communicator());
    found.together = steps_a_mark(matrix, count);
    return found;
  };
  exchange_step();  // libraries allocate and connect on first use, which a recording forbids
  const double seconds = warm_up(matrix, local_step);
  const auto repetitions = static_cast<std::int64_t>(
      std::clamp<double>(kPhaseSeconds / std::max(seconds, 1e-9), kLeastRepetitions, kMostRepetitions));
  result.local = times(repetitions, local_step, {}, {});
  result.exchange = times(repetitions, exchange_step, {}, {});

  std::unique_ptr<Graph> graph;
  result.graph = options.graph && context.device().backend == Backend::cuda && matrix.exchange().capturable();
  if (power) {  // x is normalised before the first product, so the result does not depend on its length
    copy_on_device(y, matrix.exchange().local_x(), static_cast<std::size_t>(matrix.local_rows()) * size_of(matrix.type()),
                   stream);
    power->normalise_x(y, stream);
    matrix.exchange().wait(stream);
  }
  if (result.graph) {
    graph = std::make_unique<Graph>(stream, step);
    step = [&] { graph->launch(stream); };
  }
  // Warming up must not show in the result: power iteration starts from x as it is now.
  const std::size_t x_bytes = power ? static_cast<std::size_t>(matrix.local_rows()) * size_of(matrix.type()) : 0;
  const Buffer x(context.device(), x_bytes);
  copy_on_device(x.data(), matrix.exchange().local_x(), x_bytes, stream);
  warm_up(matrix, step);
  copy_on_device(matrix.exchange().local_x(), x.data(), x_bytes, stream);
  result.iteration = times(options.iterations, step, options.progress, "iterating");
  if (power) estimate_eigenvalue(matrix, *power, y, result);
  return result;
}

}  // namespace shardmat
