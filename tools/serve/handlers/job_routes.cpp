// The paths of jobs: asking for one of each kind, how far jobs are, their x, and their end.
#include <nlohmann/json.hpp>

#include "tools/serve/handlers/job_request.h"
#include "tools/serve/handlers/route_groups.h"
#include "tools/serve/handlers/text_job.h"
#include "tools/serve/handlers/vector_job.h"
#include "tools/serve/observe/job_json.h"
#include "tools/serve/observe/service_json.h"
#include "tools/serve/ranks/jobs.h"

namespace shardmat::serve {
namespace {

using Done = std::function<void(Reply)>;

Reply list(const Jobs& jobs, const Rights& rights) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& [number, job] : jobs.all())
    if (job->result.is_owned_by(rights) && rights.may_use(job->matrix)) all.push_back(to_json(*job, false));
  return json_reply(200, {{"jobs", all}});
}

Reply describe(const Jobs& jobs, const Call& call) {
  auto found = jobs.find(call.parameters.front(), call.rights());
  if (auto* problem = std::get_if<Problem>(&found)) return problem_reply(std::move(*problem));
  return json_reply(200, to_json(*std::get<1>(found), true));
}

Accepted answer(Service& service, const Jobs& jobs, const Call& call) {
  auto found = jobs.find(call.parameters.front(), call.rights());
  if (auto* problem = std::get_if<Problem>(&found)) return problem_reply(std::move(*problem));
  const RankJob& job = *std::get<1>(found);
  if (job.has_result) return accept_read(service, call, job.result.id);
  return problem_reply(409, "no_result", job.id + " is " + state_name(job.state()) + ": it has no x");
}

/// A job that has not ended is cancelled, and stays; one that has ended goes.
Accepted remove(Jobs& jobs, const Call& call) {
  return take_text(call,
                   [&jobs, rights = call.head.rights, id = call.parameters.front()](std::string_view, const Done& done) {
                     auto found = jobs.find(id, *rights);
                     if (auto* problem = std::get_if<Problem>(&found)) return done(problem_reply(std::move(*problem)));
                     const auto job = std::get<1>(found);
                     if (job->ended()) {
                       jobs.erase(*job);
                       Reply reply;
                       reply.status = 204;
                       return done(std::move(reply));
                     }
                     job->when_ended([job, done] { done(json_reply(200, to_json(*job, true))); });
                     job->cancel();
                   });
}

}  // namespace

void add_job_routes(Routes& routes, const Parts& parts) {
  Service& service = parts.service;
  Jobs& jobs = parts.jobs;
  for (const JobKind& kind : job_kinds())
    routes.add({"POST", "/v1/matrices/{matrix}/" + kind.name, Scope::multiply, kind.name.c_str(),
                [&loop = parts.loop, &service, &jobs, &kind](const Call& call) {
                  return accept_job(loop, service, jobs, kind, call);
                },
                true});
  routes.add({"GET", "/v1/jobs", Scope::read, "list_jobs",
              [&jobs](const Call& call) -> Accepted { return list(jobs, call.rights()); }});
  routes.add({"GET", "/v1/jobs/{job}", Scope::read, "describe_job",
              [&jobs](const Call& call) -> Accepted { return describe(jobs, call); }});
  routes.add({"GET", "/v1/jobs/{job}/x", Scope::multiply, "read_job",
              [&service, &jobs](const Call& call) { return answer(service, jobs, call); }});
  routes.add(
      {"DELETE", "/v1/jobs/{job}", Scope::multiply, "delete_job", [&jobs](const Call& call) { return remove(jobs, call); }});
}

}  // namespace shardmat::serve
