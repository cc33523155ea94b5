// Jobs that rank the vertices of a graph by random walks. B has the weights of restarts, X the scores.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "comm/communicator.h"
#include "runtime/service/engine/kind_of_job.h"
#include "runtime/service/engine/running_job.h"
#include "runtime/solvers/eigen/pagerank.h"
#include "runtime/solvers/eigen/resident_graph.h"

namespace shardmat::service {
namespace {

using nlohmann::ordered_json;

struct Walk {
  PageRankSettings settings;
  bool unweighted = false;
};

using SetWalk = void (*)(Walk& walk, const std::string& name, const std::string& text);

/// As the options of `shardmat pagerank`.
const std::map<std::string, SetWalk>& walk_settings() {
  using Text = const std::string&;
  static const std::map<std::string, SetWalk> all{
      {"damping", [](Walk& w, Text name, Text text) { w.settings.damping = number_setting(name, text, 0.0); }},
      {"tolerance", [](Walk& w, Text name, Text text) { w.settings.tolerance = number_setting(name, text, 0.0); }},
      {"max_iterations",
       [](Walk& w, Text name, Text text) { w.settings.max_iterations = number_setting<std::int64_t>(name, text, 0); }},
      {"unweighted", [](Walk& w, Text name, Text text) { w.unweighted = flag_setting(name, text); }},
  };
  return all;
}

Walk walk_of(const std::string& text, ValueType type, std::int64_t columns) {
  Walk walk;
  walk.settings.tolerance = type == ValueType::f32 ? 1e-6 : 1e-10;
  walk.settings.columns = columns;
  for_settings(text, [&](const std::string& setting, const std::string& value) {
    const auto found = walk_settings().find(setting);
    if (found == walk_settings().end()) throw Error(ErrorKind::usage, fmt::format("there is no setting {}", setting));
    found->second(walk, setting, value);
  });
  if (walk.settings.damping >= 1)
    throw Error(ErrorKind::usage,
                fmt::format("the damping must be 0 or more and less than 1, not {:g}", walk.settings.damping), "damping");
  return walk;
}

/// As of ResidentMatrix, so that scores have the bits of `shardmat pagerank` with the same choices.
LoadOptions options_of_links(ValueType type, std::int64_t columns) {
  LoadOptions options;
  options.type = type;
  options.right_hand_sides = columns;
  options.plan.reproducible = options.plan.same_bits = true;
  options.plan.products = 1;  // the model chooses
  options.overlap = Overlap::yes;
  return options;
}

class PageRankWork final : public JobWork {
 public:
  explicit PageRankWork(JobInputs inputs)
      : settings_(std::move(inputs.settings)),
        graph_(inputs.matrix.solvers().matrix()),
        columns_(inputs.columns),
        b_(std::move(inputs.b)) {}

  JobResult run(RunningJob& job) override {
    Context& context = graph_.context();
    Walk walk = context.communicator().run_agreed([&] { return walk_of(settings_, graph_.type(), columns_); });
    const LoadOptions options = options_of_links(graph_.type(), columns_);
    const Transition transition = transition_of(graph_, walk.unweighted, "the graph");
    DistributedMatrix links(transition.links, context, options);
    PageRank pagerank(links, walk.settings);
    links.drop_host_rows();
    DistributedVector scores(links, VectorLayout::rows, links.type(), columns_);
    std::optional<DistributedVector> restarts;
    if (b_) {
      restarts.emplace(links, VectorLayout::rows, links.type(), columns_);
      move_own(*b_, *restarts);
    }
    ordered_json facts{{"damping", walk.settings.damping},
                       {"tolerance", walk.settings.tolerance},
                       {"unweighted", walk.unweighted},
                       {"dangling", transition.dangling}};
    job.set_up(facts.dump());
    const PageRankMonitor monitor = [&](std::int64_t iteration, const std::vector<double>& changes) {
      job.note(iteration, changes);
      job.pause();
    };
    const PageRankResult result = pagerank.run(restarts ? &*restarts : nullptr, scores, monitor, [&] { return job.ends(); });
    x_.emplace(graph_.y_rows(), graph_.type(), columns_);
    move_own(scores, *x_);
    JobResult told{{}, facts.dump()};
    for (const RankedColumn& column : result.columns) told.columns.push_back(describe(column, walk.settings.tolerance));
    return told;
  }

  const DistributedVector* x() const override { return x_ ? &*x_ : nullptr; }

 private:
  static JobColumn describe(const RankedColumn& column, double tolerance) {
    const ordered_json facts{
        {"converged", column.converged}, {"iterations", column.iterations}, {"residual", column.change}};
    return {column.converged, column.iterations, column.change, facts.dump(),
            column.converged ? ""
                             : fmt::format("after {} iterations the scores still change by {:.3e}, more than the tolerance "
                                           "{:g}; allow more iterations, or a larger tolerance",
                                           column.iterations, column.change, tolerance)};
  }

  std::string settings_;
  DistributedMatrix& graph_;
  std::int64_t columns_;
  std::optional<DistributedVector> b_, x_;
};

}  // namespace

KindOfJob pagerank_kind() {
  KindOfJob kind{"pagerank", {}, [](JobInputs inputs) -> std::unique_ptr<JobWork> {
                   return std::make_unique<PageRankWork>(std::move(inputs));
                 }};
  for (const auto& [setting, set] : walk_settings()) kind.settings.push_back(setting);
  return kind;
}

}  // namespace shardmat::service
