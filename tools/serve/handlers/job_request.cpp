#include "tools/serve/handlers/job_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/base/error.h"
#include "tools/serve/gate/gate.h"
#include "tools/serve/handlers/arriving_body.h"
#include "tools/serve/handlers/client_place.h"
#include "tools/serve/handlers/job_query.h"
#include "tools/serve/handlers/request_space.h"
#include "tools/serve/handlers/text_job.h"
#include "tools/serve/observe/job_json.h"
#include "tools/serve/observe/service_json.h"
#include "tools/serve/ranks/generation.h"
#include "tools/serve/words/value_names.h"

namespace shardmat::serve {
namespace {

constexpr const char* kJson = "application/json";

/// All that a request needs. Its vectors may go while its body comes.
struct Prepared {
  const JobKind* kind = nullptr;
  std::shared_ptr<RankJob> job;
  JobQuery query;
  Room b_room, x_room, guess_room;
  std::shared_ptr<ClientMemory> x_memory;  ///< where x is written at query.x_at; null: it is the answer, or stays
};

/// The vector with this id, which may be that of a job, if it fits.
std::variant<Problem, const Vector*> find_vector(const std::string& id, const Service& service, const Jobs& jobs,
                                                 const Matrix& matrix, const Rights& rights) {
  if (auto problem = Gate::check_rights(rights, Scope::vectors, "")) return std::move(*problem);
  std::string vector_id = id;
  if (id.starts_with("job-")) {
    auto job = jobs.find(id, rights);
    if (auto* problem = std::get_if<Problem>(&job)) return std::move(*problem);
    if (!std::get<1>(job)->has_result) return make_problem(409, "no_result", fmt::format("{} has no x", id));
    vector_id = std::get<1>(job)->result.id;
  }
  auto found = service.vectors().find(vector_id, rights);
  if (auto* problem = std::get_if<Problem>(&found)) return std::move(*problem);
  const Vector* vector = std::get<const Vector*>(found);
  if (vector->type != matrix.wanted.type)
    return make_problem(422, "wrong_type",
                        fmt::format("{} is of type {}, but {} of type {}", id, type_name(vector->type), matrix.wanted.name,
                                    type_name(matrix.wanted.type)));
  if (vector->size != matrix.shape().rows)
    return make_problem(
        422, "wrong_length",
        fmt::format("{} has {} entries, but {} has {} rows", id, vector->size, matrix.wanted.name, matrix.shape().rows));
  return vector;
}

std::variant<Problem, const Matrix*> solvable_matrix(const Service& service, const std::string& name) {
  const auto usable = usable_matrix(service, name);
  if (const auto* problem = std::get_if<Problem>(&usable)) return *problem;
  const Matrix* matrix = std::get<const Matrix*>(usable);
  if (matrix->wanted.solvable) return matrix;
  return make_problem(409, "not_solvable",
                      fmt::format("{} was loaded without what solvers need of it; load it with \"solvable\": true", name));
}

std::optional<Problem> check_mass(const std::string& name, const Service& service, const Matrix& matrix,
                                  const Rights& rights) {
  if (name.empty()) return std::nullopt;
  if (!rights.may_use(name)) return make_problem(404, "no_matrix", fmt::format("there is no matrix {}", name));
  auto usable = solvable_matrix(service, name);
  if (auto* problem = std::get_if<Problem>(&usable)) return std::move(*problem);
  const Matrix& mass = *std::get<const Matrix*>(usable);
  if (mass.shape().rows == matrix.shape().rows && mass.shape().cols == matrix.shape().cols &&
      mass.wanted.type == matrix.wanted.type)
    return std::nullopt;
  return make_problem(422, "wrong_mass", fmt::format("{} has another size or type than {}", name, matrix.wanted.name));
}

/// Checks the request against what is there now, and finds its vectors and columns.
struct Fit {
  const Vector *b = nullptr, *x0 = nullptr;
  std::int64_t columns = 1;
};
std::variant<Problem, Fit> fit(const JobKind& kind, const JobQuery& query, const Service& service, const Jobs& jobs,
                               const Matrix& matrix, const Rights& rights) {
  if (auto problem = check_type(query.type, matrix.wanted.type, matrix.wanted.name)) return std::move(*problem);
  if (auto problem = check_mass(query.mass, service, matrix, rights)) return std::move(*problem);
  Fit all;
  if (kind.b == Takes::none) {
    auto columns = kind.columns(query, matrix.shape().rows);
    if (auto* problem = std::get_if<Problem>(&columns)) return std::move(*problem);
    all.columns = std::get<1>(columns);
    if (query.x0.empty()) return all;
    auto found = find_vector(query.x0, service, jobs, matrix, rights);
    if (auto* problem = std::get_if<Problem>(&found)) return std::move(*problem);
    all.x0 = std::get<const Vector*>(found);
    return all;
  }
  for (const auto& [id, vector] : {std::pair(&query.b, &all.b), {&query.x0, &all.x0}}) {
    if (id->empty()) continue;
    auto found = find_vector(*id, service, jobs, matrix, rights);
    if (auto* problem = std::get_if<Problem>(&found)) return std::move(*problem);
    *vector = std::get<const Vector*>(found);
  }
  all.columns = query.columns.value_or(all.b != nullptr ? all.b->columns : all.x0 != nullptr ? all.x0->columns : 1);
  if (!query.has_b() && all.columns != 1)
    return make_problem(400, "malformed", fmt::format("{} of several columns needs a b with as many", kind.name));
  for (const Vector* vector : {all.b, all.x0})
    if (vector != nullptr && vector->columns != all.columns)
      return make_problem(422, "wrong_columns",
                          fmt::format("{} has {} columns, but the job {}", vector->id, vector->columns, all.columns));
  return all;
}

/// Rooms are reserved; nothing is held yet.
std::variant<Problem, Prepared> prepare(Service& service, Jobs& jobs, const JobKind& kind, const RequestHead& head,
                                        const std::string& name, JobQuery query, const SharedRights& rights,
                                        std::optional<Priority> priority) {
  if (auto problem = query.wait_seconds > 0 ? std::nullopt : service.why_no_new_jobs()) return std::move(*problem);
  auto usable = solvable_matrix(service, name);
  if (auto* problem = std::get_if<Problem>(&usable)) return std::move(*problem);
  const Matrix& matrix = *std::get<const Matrix*>(usable);
  auto fits = fit(kind, query, service, jobs, matrix, *rights);
  if (auto* problem = std::get_if<Problem>(&fits)) return std::move(*problem);
  auto made = jobs.make(rights);
  if (auto* problem = std::get_if<Problem>(&made)) return std::move(*problem);
  Prepared prepared{&kind, std::get<1>(std::move(made)), std::move(query), nullptr, nullptr, nullptr, nullptr};
  RankJob& job = *prepared.job;
  job.kind = kind.name, job.matrix = name, job.mass = prepared.query.mass, job.settings = prepared.query.settings;
  job.limit_seconds = prepared.query.limit_seconds;
  job.has_b = prepared.query.has_b(), job.answers_x = kind.b != Takes::none && !prepared.query.x_at;
  job.keeps_iterates = kind.keeps_iterates;
  job.keeps_x = !prepared.query.x_at || prepared.query.keeps || kind.b == Takes::none;
  job.alone = !kind.merges || prepared.query.alone.value_or(false);
  job.always_merges = !prepared.query.alone.value_or(true);
  job.columns = std::get<Fit>(fits).columns, job.type = matrix.wanted.type;
  job.rows = static_cast<std::uint64_t>(matrix.shape().rows);
  MultiplyRequest client;
  if (auto problem = set_client(client, *rights, prepared.query.priority ? prepared.query.priority : priority))
    return std::move(*problem);
  job.client = client.client, job.priority = client.priority;
  job.b_at = prepared.query.b_at, job.x0_at = prepared.query.x0_at;
  if (job.b_at || job.x0_at || prepared.query.x_at) {
    auto found = shared_memory(head);
    if (auto* problem = std::get_if<Problem>(&found)) return std::move(*problem);
    const auto& memory = std::get<1>(found);
    for (const auto& [key, at] : {std::pair("b_at", job.b_at), {"x0_at", job.x0_at}, {"x_at", prepared.query.x_at}})
      if (at)
        if (auto problem = check_place(key, *at, job.bytes(), size_of(job.type), memory->bytes()))
          return std::move(*problem);
    if (job.b_at || job.x0_at) job.memory = memory;
    if (prepared.query.x_at) prepared.x_memory = memory;
  }
  const bool b_in_arena = job.has_b && !job.b_at, x_in_arena = job.answers_x || job.keeps_iterates;
  if (const Vector* x0 = std::get<Fit>(fits).x0; x0 != nullptr && kind.b == Takes::none) job.guess_columns = x0->columns;
  const std::uint64_t of_guess = job.rows * static_cast<std::uint64_t>(job.guess_columns) * size_of(job.type);
  const std::uint64_t in_arena = (x_in_arena ? job.bytes() : 0) + (b_in_arena ? job.bytes() : 0) + of_guess;
  if (auto problem = check_arena(service, in_arena, "b and x need")) return std::move(*problem);
  if (auto problem = check_token_memory(*rights, in_arena + job.bytes())) return std::move(*problem);
  job.result.charge = std::make_shared<TokenMemory::Charge>(service.token_memory(), rights, TokenMemory::Kind::vectors);
  if (!job.result.charge->raise(job.bytes()))
    return make_problem(507, "token_memory",
                        fmt::format("x has {} bytes, and the vectors and requests of this token hold as many as it may have "
                                    "(memory_bytes in the token file); delete vectors or jobs",
                                    job.bytes()));
  for (const auto& [room, bytes] : {std::pair(&prepared.b_room, b_in_arena ? job.bytes() : 0),
                                    {&prepared.x_room, x_in_arena ? job.bytes() : 0},
                                    {&prepared.guess_room, of_guess}}) {
    if (bytes == 0) continue;
    auto reserved = reserve_room(service, rights, bytes);
    if (auto* problem = std::get_if<Problem>(&reserved)) return std::move(*problem);
    *room = std::get<Room>(std::move(reserved));
  }
  return prepared;
}

double largest_share(const RankJob& job) {
  double share = 0;
  for (const service::JobColumn& column : job.results()) share = std::max(share, column.share);
  return share;
}

Reply about_job(Reply reply, const RankJob& job) {
  reply.fields.push_back(generation_field(job.generation));
  reply.fields.emplace_back("Shardmat-Job", job.id);
  reply.about_job = true;
  return reply;
}

/// Of a job that has ended; `x` is where the ranks have written it: null if that is elsewhere.
Reply answer_of(Service& service, const JobKind& kind, const RankJob& job, const std::shared_ptr<ArenaSpace::Lease>& x) {
  Reply reply;
  if (job.state() == JobState::done && kind.b == Takes::none) {
    reply = json_reply(200, to_json(job, false));
  } else if (job.state() == JobState::done) {
    if (x) {
      reply.content_type = "application/octet-stream";
      reply.bytes = service.arena().at(x->offset(), job.bytes());
      reply.owner = std::shared_ptr<const void>(x.get(), [x](const void*) { x->set_aside(); });  // it may be kept, too
    } else {
      reply.status = 204;
    }
    reply.fields = {
        {"Shardmat-Shape", job.columns == 1 ? std::to_string(job.rows) : fmt::format("{},{}", job.columns, job.rows)},
        {"Shardmat-Type", std::string(type_name(job.type))},
        {"Shardmat-Iterations", std::to_string(job.iterations())},
        {"Shardmat-Merged", std::to_string(job.merged)},
        {"Shardmat-Residual", fmt::format("{:.3e}", largest_share(job))}};
  } else {
    reply = problem_reply(job.problem().value_or(make_problem(409, "cancelled", "the job was cancelled")));
  }
  return about_job(std::move(reply), job);
}

/// Puts the job in line, and answers when it has ended or the wait is over. If the client leaves before, the job ends, too.
class Submission {
 public:
  Submission(EventLoop& loop, Service& service, Jobs& jobs) : loop_(loop), service_(service), jobs_(jobs), alarm_(loop) {}
  ~Submission() {
    alive_.reset(), done_ = nullptr;
    if (!waits_) return;
    --waits_->waiting;
    waits_->cancel();
  }
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;

  void start(Prepared& prepared, const SharedRights& rights, std::function<void(Reply)> done) {
    const std::shared_ptr<RankJob> job = prepared.job;
    auto usable = solvable_matrix(service_, job->matrix);
    if (auto* problem = std::get_if<Problem>(&usable)) return done(problem_reply(std::move(*problem)));
    const Matrix& matrix = *std::get<const Matrix*>(usable);
    auto fits = fit(*prepared.kind, prepared.query, service_, jobs_, matrix, *rights);
    if (auto* problem = std::get_if<Problem>(&fits)) return done(problem_reply(std::move(*problem)));
    if (static_cast<std::uint64_t>(matrix.shape().rows) != job->rows || matrix.wanted.type != job->type ||
        std::get<Fit>(fits).columns != job->columns ||
        (job->guess_columns > 0 && std::get<Fit>(fits).x0->columns != job->guess_columns))
      return done(problem_reply(409, "changed", fmt::format("{} has another shape or type now", job->matrix)));
    const std::uint64_t of_guess = job->rows * static_cast<std::uint64_t>(job->guess_columns) * size_of(job->type);
    for (const auto& [room, bytes] :
         {std::pair(&prepared.b_room, job->bytes()), {&prepared.x_room, job->bytes()}, {&prepared.guess_room, of_guess}})
      if (*room)
        if (auto problem = hold_room(service_, *room, bytes, bytes, (*room)->held()))
          return done(problem_reply(std::move(*problem)));
    for (const auto& memory : {job->memory, prepared.x_memory})
      if (memory && memory->lost) return done(problem_reply(memory_lost()));
    job->b = std::move(prepared.b_room), job->x = std::move(prepared.x_room);
    job->guess = std::move(prepared.guess_room);
    jobs_.add(job, std::get<Fit>(fits).b, std::get<Fit>(fits).x0);
    if (prepared.query.wait_seconds == 0) return done(accepted(*job));
    waits_ = job, ++job->waiting;
    done_ = std::move(done);
    const bool keeps = prepared.query.keeps || prepared.kind->b == Takes::none;
    const auto answer = [this, weak = std::weak_ptr(alive_), &loop = loop_, &jobs = jobs_, kind = prepared.kind, job,
                         keeps](const std::optional<Problem>& problem) {
      if (weak.expired()) return;  // the client has left while x was written
      Reply reply = problem ? about_job(problem_reply(*problem), *job) : answer_of(service_, *kind, *job, job->answer);
      if (job->state() == JobState::done && !problem && !keeps)  // a connection that is cut before leaves x where it is
        reply.sent = [&loop, &jobs, job] { loop.post([&jobs, job] { jobs.erase(*job); }); };
      if (done_) std::exchange(done_, nullptr)(std::move(reply));
    };
    x_memory_ = prepared.x_memory;
    job->when_ended([this, weak = std::weak_ptr(alive_), job, answer, at = prepared.query.x_at.value_or(0)] {
      if (weak.expired() || !waits_) return;  // the wait is over
      --job->waiting;
      waits_.reset(), alarm_.cancel();
      if (x_memory_ && job->state() == JobState::done) jobs_.give_x(job, x_memory_, at, alive_, answer);
      else answer(std::nullopt);
    });
    if (!waits_) return;
    alarm_.start(prepared.query.wait_seconds, [this] {
      x_memory_.reset();  // x is not written there any more
      const auto goes_on = std::exchange(waits_, nullptr);
      --goes_on->waiting;
      if (done_) std::exchange(done_, nullptr)(accepted(*goes_on));
    });
  }

 private:
  static Reply accepted(const RankJob& job) {
    Reply reply = json_reply(202, to_json(job, true));
    reply.fields.emplace_back("Location", "/v1/jobs/" + job.id);
    reply.about_job = true;
    return reply;
  }

  EventLoop& loop_;
  Service& service_;
  Jobs& jobs_;
  Alarm alarm_;
  std::shared_ptr<RankJob> waits_;  ///< null once it was answered
  std::shared_ptr<ClientMemory> x_memory_;
  std::function<void(Reply)> done_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

/// b is the body, or a vector.
class NumbersOfJob final : public Job {
 public:
  NumbersOfJob(EventLoop& loop, Service& service, Jobs& jobs, Prepared prepared, SharedRights rights)
      : prepared_(std::move(prepared)),
        rights_(std::move(rights)),
        submission_(loop, service, jobs),
        body_(service, prepared_.b_room, prepared_.query.b_is_body ? prepared_.job->bytes() : 0) {}

  std::span<std::byte> body() override { return body_.piece(); }
  std::uint64_t rest() const override { return body_.rest(); }
  void take_piece(Next next) override { next(body_.take_piece()); }
  void start(std::function<void(Reply)> done) override { submission_.start(prepared_, rights_, std::move(done)); }

 private:
  Prepared prepared_;
  SharedRights rights_;
  Submission submission_;
  ArrivingBody body_;
};

std::vector<std::string> names_of_settings(const Service& service, const JobKind& kind) {
  const auto hellos = service.ranks().hellos();
  if (hellos.empty()) return {};
  for (const service::SettingsOfJobs& one : hellos.front().job_settings)
    if (one.kind == kind.name) return one.names;
  return {};
}

/// The parameters are the body.
Accepted accept_json(EventLoop& loop, Service& service, Jobs& jobs, const JobKind& kind, const Call& call,
                     std::optional<Priority> priority) {
  if (call.head.content_length > 0 && !call.target.query.empty())
    return problem_reply(400, "malformed", "the parameters are in the query or in a body of JSON, not in both");
  const auto submission = std::make_shared<Submission>(loop, service, jobs);
  const auto prepared = std::make_shared<Prepared>();
  return take_text(call, [&service, &jobs, &kind, submission, prepared, priority, head = call.head, name = call.matrix,
                          rights = call.head.rights,
                          in_query = call.target.query](std::string_view body, const std::function<void(Reply)>& done) {
    try {
      auto query = read_job_query(kind, body.empty() ? in_query : pairs_of_json(body), names_of_settings(service, kind));
      if (auto* problem = std::get_if<Problem>(&query)) return done(problem_reply(std::move(*problem)));
      if (kind.b == Takes::required && !std::get<JobQuery>(query).has_b())
        return done(
            problem_reply(400, "malformed", "b is missing: the id of a vector. Raw numbers are a body of their own"));
      auto made = prepare(service, jobs, kind, head, name, std::get<JobQuery>(std::move(query)), rights, priority);
      if (auto* problem = std::get_if<Problem>(&made)) return done(problem_reply(std::move(*problem)));
      *prepared = std::get<Prepared>(std::move(made));
      submission->start(*prepared, rights, done);
    } catch (const Error& error) {
      done(problem_reply(400, "malformed", error.what()));
    }
  });
}

}  // namespace

Accepted accept_job(EventLoop& loop, Service& service, Jobs& jobs, const JobKind& kind, const Call& call) {
  auto priority = wanted_priority(call.head);
  if (auto* problem = std::get_if<Problem>(&priority)) return problem_reply(std::move(*problem));
  if (auto problem = service.why_no_new_work()) return problem_reply(std::move(*problem));
  if (call.head.field("Content-Type") == kJson || kind.b == Takes::none)
    return accept_json(loop, service, jobs, kind, call, std::get<0>(priority));
  if (auto problem = check_content_type(call.head)) return problem_reply(std::move(*problem));
  auto query = read_job_query(kind, call.target.query, names_of_settings(service, kind));
  if (auto* problem = std::get_if<Problem>(&query)) return problem_reply(std::move(*problem));
  JobQuery& asked = std::get<JobQuery>(query);
  asked.b_is_body = !asked.has_b() && (kind.b == Takes::required || call.head.content_length > 0);
  auto prepared = prepare(service, jobs, kind, call.head, call.matrix, std::get<JobQuery>(std::move(query)),
                          call.head.rights, std::get<0>(priority));
  if (auto* problem = std::get_if<Problem>(&prepared)) return problem_reply(std::move(*problem));
  Prepared& all = std::get<Prepared>(prepared);
  const std::uint64_t wanted = all.query.b_is_body ? all.job->bytes() : 0;
  if (call.head.content_length != wanted)
    return problem_reply(
        422, "wrong_length",
        fmt::format("the body has {} bytes, but this {} takes {}{}", call.head.content_length, kind.name, wanted,
                    wanted == 0 ? ": b is a vector, or in the client's memory"
                                : fmt::format(": b with {} column{} of {} numbers of type {}", all.job->columns,
                                              all.job->columns == 1 ? "" : "s", all.job->rows, type_name(all.job->type))));
  return std::make_unique<NumbersOfJob>(loop, service, jobs, std::move(all), call.head.rights);
}

}  // namespace shardmat::serve
