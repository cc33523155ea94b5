#include "tools/serve/observe/job_json.h"

#include <cmath>

#include "tools/serve/words/value_names.h"

namespace shardmat::serve {

using json = nlohmann::ordered_json;

json to_json(const RankJob& job, bool with_history) {
  json one{{"id", job.id}, {"kind", job.kind}, {"matrix", job.matrix}, {"state", state_name(job.state())}};
  if (!job.mass.empty()) one["mass"] = job.mass;
  if (const auto& problem = job.problem()) one["code"] = problem->code, one["reason"] = problem->text;
  one["settings"] = job.settings;
  one["columns"] = job.columns;
  one["type"] = type_name(job.type);
  one["iteration"] = job.iterations();
  if (job.iterations() > 0) one["residual"] = job.residual();
  one["queued_seconds"] = job.queued_seconds(), one["running_seconds"] = job.running_seconds();
  if (std::isfinite(job.limit_seconds)) one["limit_seconds"] = job.limit_seconds;
  one["restarts"] = job.restarts();
  one["merged"] = job.merged;
  if (!job.facts().empty()) {
    one["generation"] = job.generation;
    one["set_up_seconds"] = job.set_up_seconds();
    one.update(json::parse(job.facts()));
  }
  if (job.has_result) one["x"] = job.result.id;
  for (const service::JobColumn& column : job.results()) one["result"].push_back(json::parse(column.facts));
  if (!with_history) return one;
  one["history"] = json::array();
  for (const ResidualHistory::Entry& entry : job.history().all()) one["history"].push_back({entry.iteration, entry.norm});
  return one;
}

}  // namespace shardmat::serve
