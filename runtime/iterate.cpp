#include "runtime/iterate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>

#include "comm/sum_over_ranks.h"
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

/// Dot products over all ranks, between products.
class Dots {
 public:
  explicit Dots(const DistributedMatrix& matrix)
      : matrix_(matrix),
        products_(matrix.context().device()),
        sum_(matrix.context().exchange_context(matrix.type(), 1), 2),
        values_(matrix.context().device(), 2 * sizeof(double)) {}

  /// xᵀy and yᵀy.
  void add(const void* x, const void* y, Stream& stream) {
    products_.compute(matrix_.type(), matrix_.local_rows(), x, y, values_.as<double>(), stream);
    sum_(values_.as<double>(), stream);
  }
  /// x ← y / ‖y‖
  void normalise_x(const void* y, Stream& stream) {
    add(y, y, stream);
    normalise(matrix_.type(), matrix_.local_rows(), y, values_.as<double>() + 1, matrix_.exchange().local_x(), stream);
  }
  /// xᵀy and yᵀy on the host.
  std::pair<double, double> of_product(const void* y, Stream& stream) {
    add(matrix_.exchange().local_x(), y, stream);
    matrix_.exchange().wait(stream);
    double values[2];
    copy_to_host(values, values_.data(), sizeof values, stream);
    return {values[0], values[1]};
  }
  std::string_view summed_by() const { return sum_.name(); }

 private:
  const DistributedMatrix& matrix_;
  DotProducts products_;
  SumOverRanks sum_;
  Buffer values_;
};

/// λ = xᵀy for the last normalised x, and how far (λ, x) is from an eigenpair: ‖y - λx‖² = yᵀy - λ² for ‖x‖ = 1.
void estimate_eigenvalue(const DistributedMatrix& matrix, Dots& dots, void* y, IterateResult& result) {
  Stream& stream = matrix.context().stream();
  matrix.multiply(1, 0, y, stream);
  const auto [xy, yy] = dots.of_product(y, stream);
  result.eigenvalue = xy;
  const double distance = std::sqrt(std::max(0.0, yy - xy * xy));
  result.residual = distance == 0 ? 0 : distance / std::abs(xy);  // infinite if λ is 0 and y is not
}

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

IterateResult iterate(const DistributedMatrix& matrix, void* y, const IterateOptions& options) {
  Context& context = matrix.context();
  Stream& stream = context.stream();
  IterateResult result;
  const bool power = options.mode == Mode::power;
  std::optional<Dots> dots;
  if (options.mode != Mode::repeat) {
    if (matrix.rows() != matrix.cols())
      throw Error(ErrorKind::usage, fmt::format("--mode {} needs a square matrix, this one is {} × {}", name(options.mode),
                                                matrix.rows(), matrix.cols()));
    dots.emplace(matrix);
    result.sums = dots->summed_by();
  }

  std::function<void()> step = [&] {
    matrix.multiply(options.alpha, options.beta, y, stream);
    if (options.mode == Mode::dots) dots->add(matrix.exchange().local_x(), y, stream), dots->add(y, y, stream);
    if (power) dots->normalise_x(y, stream);
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
  if (options.mode == Mode::dots) dots->of_product(y, stream);  // connects the ranks
  if (power) {  // x is normalised before the first product, so the result does not depend on its length
    copy_on_device(y, matrix.exchange().local_x(), static_cast<std::size_t>(matrix.local_rows()) * size_of(matrix.type()),
                   stream);
    dots->normalise_x(y, stream);
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
  if (power) estimate_eigenvalue(matrix, *dots, y, result);
  if (options.mode == Mode::dots) std::tie(result.xy, result.yy) = dots->of_product(y, stream);
  return result;
}

}  // namespace shardmat
