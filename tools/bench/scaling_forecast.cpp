#include "tools/bench/scaling_forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "comm/long_wait.h"
#include "kernels/base/text.h"
#include "runtime/context/context_scope.h"
#include "runtime/timing/measure_performance.h"
#include "tools/bench/first_ranks.h"
#include "tools/cli/forecast.h"
#include "tools/cli/samples.h"

namespace shardmat::tools {
namespace {

/// The constants of the product of a case on one rank.
void measure_product(PerformanceModel& model, const ScalingCase& one, MultiplyOptions options, Communicator& alone) {
  Context context(alone, options.backend, options.threads);
  const MatrixSource source = open_matrix(options.matrix, alone);
  model.product = measure_product_cost(context, source, options.load, one.report.iteration.median);
  model.split_latency = measure_split_latency(context);
  const IterationTimes& times = one.report.iteration;
  for (const double seconds : kept_samples(times.samples, one.kept.empty() ? times.together : 1))
    model.unsteadiness.push_back(seconds / one.report.iteration.median);
  std::sort(model.unsteadiness.begin(), model.unsteadiness.end());
  model.entry_bytes = options.load.right_hand_sides * static_cast<std::int64_t>(size_of(options.load.type));
}

/// What one rank looks through at most, seconds of work; shardmat predict does so for any size.
constexpr std::int64_t kMostNonzeros = std::int64_t{2} << 30;

/// The model knows no blocks of columns, and foretells the exchange that it expects to be fastest.
bool tells_of(const Forecast& forecast, const ScalingCase& one) {
  return one.report.column_block == one.report.right_hand_sides &&
         (one.ranks == 1 || one.exchange == "auto" || one.exchange == forecast.moved_by);
}

/// Of all cases of the model's matrix that it tells of.
void forecast_matrix(std::vector<ScalingCase>& cases, const std::string& matrix, const PerformanceModel& model,
                     Communicator& alone) {
  std::vector<int> ranks;
  for (const ScalingCase& one : cases) {
    if (one.matrix == matrix && one.measured() && one.report.nnz > kMostNonzeros)
      throw Error(ErrorKind::resources,
                  fmt::format("{} nonzeros on {} ranks are too many to look through between measurements; "
                              "see shardmat predict",
                              human_count(one.report.nnz), one.ranks));
    if (one.matrix == matrix && one.ranks <= model.measured_ranks &&
        std::find(ranks.begin(), ranks.end(), one.ranks) == ranks.end())
      ranks.push_back(one.ranks);
  }
  std::vector<RanksForecast> found;
  const std::string method = "nnz";
  const auto of = [&](const std::string& grown, std::span<const int> counts) {
    const MatrixSource source = open_matrix(grown, alone);
    for (RanksForecast& f : forecast_ranks(model, *source.rows, {&method, 1}, counts)) found.push_back(std::move(f));
  };
  if (!grows(matrix)) of(matrix, ranks);
  else
    for (const int count : ranks) of(on_ranks(matrix, count), std::span<const int>(&count, 1));
  for (ScalingCase& one : cases)
    for (const RanksForecast& f : found)
      if (one.matrix == matrix && one.ranks == f.ranks && tells_of(f.forecast, one)) one.forecast = f.forecast;
}

}  // namespace

void forecast_cases(ScalingStudy& study, Communicator& all, double timeout,
                    const std::function<MultiplyOptions(const ScalingCase&)>& options_of) {
  PerformanceModel links;
  links.overlaps = study.overlap == Overlap::yes || (study.overlap == Overlap::automatic && study.right_hand_sides == 1);
  links.overlaps_peer = study.overlap != Overlap::no;  // products for several right-hand sides begin early beside it
  for (const ScalingCase& one : study.cases) {
    if (one.ranks <= links.measured_ranks) continue;                            // they ascend for each matrix
    if (all.all_reduce(one.measured() ? 1 : 0, Reduction::min) == 0) continue;  // only some ranks know of wrong results
    const Refusal refused = on_first_ranks(all, one.ranks, timeout, [&](Communicator& some) {
      const MultiplyOptions options = options_of(one);
      Context context(some, options.backend, options.threads);
      const ContextScope scope(context);
      for (ExchangeCost& cost : measure_exchange_costs(context.exchange_context(ValueType::f64, 1)))
        links.exchanges.push_back(std::move(cost));
    });
    if (!refused.why.empty()) {
      study.no_forecasts.push_back(fmt::format("the links between {} ranks: {}", one.ranks, refused.why));
      break;
    }
    links.measured_ranks = one.ranks;
  }
  std::optional<Communicator> alone = all.first_ranks(1, timeout);
  const LongWait wait(all);
  all.run_agreed([&] {
    if (!alone) return;
    for (const ScalingCase& one : study.cases) {
      if (one.ranks != 1 || !one.measured()) continue;
      if (one.report.column_block != one.report.right_hand_sides) {
        study.no_forecasts.push_back(
            fmt::format("{}: its columns move in blocks, which the model does not know", one.matrix));
        continue;
      }
      try {
        PerformanceModel model = links;
        measure_product(model, one, options_of(one), *alone);
        study.models.emplace_back(one.matrix, model);
        forecast_matrix(study.cases, one.matrix, model, *alone);
      } catch (const Error& error) {
        study.no_forecasts.push_back(fmt::format("{}: {}", one.matrix, error.what()));
      }
    }
  });
}

}  // namespace shardmat::tools
