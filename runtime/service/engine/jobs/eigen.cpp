// Jobs that find eigenvalues of a matrix, or of K·x = λ·M·x. X has the eigenvectors.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "runtime/run/eigen.h"
#include "runtime/service/engine/kind_of_job.h"
#include "runtime/service/engine/running_job.h"
#include "runtime/solvers/eigen/eigenpairs.h"

namespace shardmat::service {
namespace {

using nlohmann::ordered_json;

template <class T>
T word_of(const std::string& setting, const std::string& text, std::initializer_list<T> values) {
  std::string all;
  for (const T value : values) {
    if (name(value) == text) return value;
    all += fmt::format("{}{}", all.empty() ? "" : ", ", name(value));
  }
  throw Error(ErrorKind::usage, fmt::format("{} must be one of {}, not \"{}\"", setting, all, text), setting);
}

using Set = void (*)(EigenOptions& options, const std::string& name, const std::string& text);

/// As the options of `shardmat eigen`.
const std::map<std::string, Set>& eigen_settings() {
  using Text = const std::string&;
  constexpr double kAny = -std::numeric_limits<double>::max();
  static const std::map<std::string, Set> all{
      {"method",
       [](EigenOptions& o, Text name, Text text) {
         o.method = word_of(name, text,
                            {EigenMethod::automatic, EigenMethod::lanczos, EigenMethod::power, EigenMethod::lobpcg,
                             EigenMethod::shift_invert});
       }},
      {"which",
       [](EigenOptions& o, Text name, Text text) {
         o.settings.which = word_of(name, text, {Which::largest, Which::smallest, Which::both});
       }},
      {"count",
       [](EigenOptions& o, Text name, Text text) { o.settings.count = number_setting<std::int64_t>(name, text, 1); }},
      {"tolerance", [](EigenOptions& o, Text name, Text text) { o.settings.tolerance = number_setting(name, text, 0.0); }},
      {"max_iterations",
       [](EigenOptions& o, Text name, Text text) {
         o.settings.max_iterations = o.pair.max_iterations = number_setting<std::int64_t>(name, text, 1);
       }},
      {"basis",
       [](EigenOptions& o, Text name, Text text) { o.settings.basis = number_setting<std::int64_t>(name, text, 1); }},
      {"seed",
       [](EigenOptions& o, Text name, Text text) { o.settings.seed = number_setting<std::uint64_t>(name, text, 0); }},
      {"confirm", [](EigenOptions& o, Text name, Text text) { o.settings.confirm = flag_setting(name, text); }},
      {"assume_symmetric",
       [](EigenOptions& o, Text name, Text text) { o.settings.assume_symmetric = flag_setting(name, text); }},
      {"check_count", [](EigenOptions& o, Text name, Text text) { o.pair.check_count = flag_setting(name, text); }},
      {"guard", [](EigenOptions& o, Text name, Text text) { o.pair.guard = number_setting<std::int64_t>(name, text, 1); }},
      {"shift", [](EigenOptions& o, Text name, Text text) { o.pair.shift = number_setting(name, text, kAny); }},
      {"inner", [](EigenOptions& o, Text, Text text) { o.pair.inner = text; }},
      {"inner_tolerance",
       [](EigenOptions& o, Text name, Text text) { o.pair.inner_tolerance = number_setting(name, text, 0.0); }},
  };
  return all;
}

EigenOptions options_of(const std::string& text, bool has_mass, ValueType type) {
  EigenOptions o;
  std::map<std::string, std::string> given;
  for_settings(text, [&](const std::string& setting, const std::string& value) {
    const auto found = eigen_settings().find(setting);
    if (found == eigen_settings().end()) throw Error(ErrorKind::usage, fmt::format("there is no setting {}", setting));
    found->second(o, setting, value);
    given[setting] = value;
  });
  if (has_mass) o.mass.assign(1, 'M');  // GCC 12 warns of = "M" (-Wrestrict)
  const bool pairs = is_of_pairs(o);
  if (!given.contains("which")) o.settings.which = pairs ? Which::smallest : Which::largest;
  if (!given.contains("tolerance")) o.settings.tolerance = default_eigen_tolerance(pairs, type);
  o.pair.count = o.settings.count, o.pair.tolerance = o.settings.tolerance, o.pair.seed = o.settings.seed;
  o.pair.confirm = o.settings.confirm, o.pair.assume_symmetric = o.settings.assume_symmetric;
  choose_eigen_method(o);  // says what does not go together
  return o;
}

class EigenWork final : public JobWork {
 public:
  explicit EigenWork(JobInputs inputs)
      : settings_(std::move(inputs.settings)),
        solvers_(inputs.matrix.solvers()),
        k_(solvers_.matrix()),
        mass_(inputs.mass != nullptr ? &inputs.mass->solvers().matrix() : nullptr),
        columns_(inputs.columns),
        x0_(std::move(inputs.guess)) {}

  JobResult run(RunningJob& job) override {
    Communicator& ranks = k_.context().communicator();
    const EigenOptions o = ranks.run_agreed([&] { return options_of(settings_, mass_ != nullptr, k_.type()); });
    const EigenMethod method = choose_eigen_method(o, k_);
    const bool takes_x0 = method == EigenMethod::lobpcg || method == EigenMethod::shift_invert;
    if (x0_ && !takes_x0)
      throw AgreedError(
          ErrorKind::usage,
          fmt::format("the method {} begins with vectors of its own, which seed chooses: leave x0 out, or take "
                      "lobpcg or shift_invert",
                      name(method)),
          "x0");
    // Those that take long to set up say with their first values that it is done.
    const EigenMonitor monitor = [&](std::int64_t iteration, const std::vector<Eigenpair>& pairs) {
      if (!job.is_set_up()) job.set_up(ordered_json{{"method", name(method)}}.dump());
      std::vector<double> norms;
      for (const Eigenpair& pair : pairs) norms.push_back(pair.residual);
      job.note(iteration, std::move(norms));
    };
    const std::function<bool()> stop = [&] { return job.ends(); };
    ordered_json facts{{"method", name(method)}};
    JobResult told;
    if (takes_x0) {
      PairOptions pair = o.pair;
      const MultigridOptions& known = solvers_.known_nodes();
      pair.multigrid.coordinates = known.coordinates, pair.multigrid.mid_edges = known.mid_edges;
      pair.multigrid.near_null_vectors = known.near_null_vectors;
      PairVectors vectors;
      const PairResult result = solve_pair(method == EigenMethod::lobpcg ? PairMethod::lobpcg : PairMethod::shift_invert, k_,
                                           mass_, pair, vectors, x0_ ? &*x0_ : nullptr, monitor, stop);
      make_x(vectors.count);
      copy_vectors(vectors, *x_);
      add_facts_of_pairs(result, method, facts);
      tell(result, true, o.settings.tolerance, told);
    } else if (method == EigenMethod::power) {
      PowerOptions power;
      power.tolerance = o.settings.tolerance, power.max_iterations = o.settings.max_iterations;
      power.seed = o.settings.seed;
      PowerMethod iteration(k_, power);
      make_x(1);
      tell(iteration.run(*x_, monitor, stop), false, o.settings.tolerance, told);
    } else {
      Lanczos lanczos(k_, o.settings);
      const EigenResult result = lanczos.run(monitor, stop);
      make_x(lanczos.wanted());
      lanczos.copy_vectors(*x_, k_.context().stream());
      facts["norm"] = result.norm, facts["restarts"] = result.restarts, facts["confirmed"] = result.confirmed;
      tell(result, false, o.settings.tolerance, told);
    }
    told.facts = facts.dump();
    return told;
  }

  const DistributedVector* x() const override { return x_ ? &*x_ : nullptr; }

 private:
  void make_x(std::int64_t count) {
    if (count != columns_)
      throw AgreedError(ErrorKind::usage, fmt::format("the matrix has {} of the {} eigenvectors", count, columns_), "count");
    x_.emplace(k_.y_rows(), k_.type(), count);
  }

  static void add_facts_of_pairs(const PairResult& result, EigenMethod method, ordered_json& facts) {
    facts["zero_modes"] = result.zero_modes, facts["orthogonality"] = result.orthogonality;
    facts["complete"] = result.complete();
    if (!result.completeness.empty()) facts["completeness"] = result.completeness;
    facts["note"] = result.inverse;
    if (method == EigenMethod::shift_invert) facts["shift"] = result.shift;
  }

  static void tell(const EigenResult& result, bool of_pairs, double tolerance, JobResult& told) {
    for (const Eigenpair& pair : result.pairs) {
      const double relative = of_pairs ? pair.relative : result.norm > 0 ? pair.residual / result.norm : 0;
      ordered_json facts{{"value", pair.value}};
      if (of_pairs) {
        facts["frequency"] = std::sqrt(std::max(0.0, pair.value)) / (2 * std::numbers::pi);
        facts["zero"] = pair.zero;
      }
      facts["residual"] = pair.residual, facts["relative_residual"] = relative, facts["converged"] = pair.converged;
      told.columns.push_back({pair.converged, result.iterations, relative, facts.dump(),
                              pair.converged ? ""
                                             : fmt::format("{} pairs did not converge to {:g} in {} iterations",
                                                           std::count_if(result.pairs.begin(), result.pairs.end(),
                                                                         [](const auto& one) { return !one.converged; }),
                                                           tolerance, result.iterations)});
    }
  }

  std::string settings_;
  ResidentSolvers& solvers_;
  DistributedMatrix& k_;
  DistributedMatrix* mass_;
  std::int64_t columns_;
  std::optional<DistributedVector> x0_, x_;
};

}  // namespace

KindOfJob eigen_kind() {
  KindOfJob kind{"eigen", {}, [](JobInputs inputs) -> std::unique_ptr<JobWork> {
                   return std::make_unique<EigenWork>(std::move(inputs));
                 }};
  for (const auto& [setting, set] : eigen_settings()) kind.settings.push_back(setting);
  return kind;
}

}  // namespace shardmat::service
