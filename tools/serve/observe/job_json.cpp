#include "tools/serve/observe/job_json.h"

#include <cmath>

#include "tools/serve/words/value_names.h"

namespace shardmat::serve {

using json = nlohmann::ordered_json;

json to_json(const SolveJob& job, bool with_history) {
  json one{{"id", job.id}, {"matrix", job.matrix}, {"state", state_name(job.state())}};
  if (const auto& problem = job.problem()) one["code"] = problem->code, one["reason"] = problem->text;
  one["settings"] = job.settings;
  one["columns"] = job.columns;
  one["type"] = type_name(job.type);
  one["iteration"] = job.iterations();
  if (job.iterations() > 0) one["residual"] = job.residual();
  one["queued_seconds"] = job.queued_seconds(), one["running_seconds"] = job.running_seconds();
  if (std::isfinite(job.limit_seconds)) one["limit_seconds"] = job.limit_seconds;
  one["restarts"] = job.restarts();
  if (const service::SolveBegun& begun = job.begun(); !begun.method.empty()) {
    one["generation"] = job.generation;
    one["method"] = begun.method, one["preconditioner"] = begun.preconditioner;
    if (!begun.note.empty()) one["note"] = begun.note;
    one["set_up_seconds"] = begun.set_up, one["resident"] = begun.resident;
  }
  if (job.has_result) one["x"] = job.result.id;
  for (const service::SolvedColumn& column : job.solved())
    one["result"].push_back({{"reason", column.reason},
                             {"converged", column.converged},
                             {"iterations", column.iterations},
                             {"norm_of_b", column.norm_of_b},
                             {"residual", column.residual},
                             {"true_residual", column.true_residual},
                             {"backward_error", column.backward_error}});
  if (!with_history) return one;
  one["history"] = json::array();
  for (const service::Residual& residual : job.history().all())
    one["history"].push_back({residual.iteration, residual.norm});
  return one;
}

}  // namespace shardmat::serve
