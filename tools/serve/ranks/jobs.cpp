#include "tools/serve/ranks/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "kernels/base/error.h"
#include "tools/serve/words/log.h"
#include "tools/serve/words/problem.h"

namespace shardmat::serve {
namespace {

/// Of one tenant: jobs that have not ended, and those that have.
constexpr std::ptrdiff_t kMostWaiting = 64, kMostEnded = 64;
/// Seconds between events about the progress of a job, and until a job that waits for new values is looked at again.
constexpr double kTellSeconds = 0.25, kLookAgainSeconds = 0.02;

Problem not_there(const std::string& id) { return make_problem(404, "no_job", fmt::format("there is no job {}", id)); }

/// Of jobs that are merged; the ranks then iterate with so many columns, whatever their number: a solver is set up once.
constexpr std::size_t kMostMerged = 8;

/// Why the job can never begin on its matrix of this name; nothing if it can, now or later.
std::optional<Problem> why_never(const RankJob& job, const std::string& name, const Matrix* matrix) {
  if (matrix == nullptr || matrix->state == MatrixState::unloaded)
    return make_problem(404, "no_matrix", fmt::format("{} was unloaded before the job began", name));
  if (matrix->state == MatrixState::failed)
    return make_problem(409, "failed", fmt::format("{} could not be loaded: {}", name, matrix->reason));
  if (matrix->state == MatrixState::values_lost)
    return make_problem(410, "values_lost",
                        fmt::format("the new values of {} were lost when the ranks were started again", name));
  if (matrix->state != MatrixState::ready) return std::nullopt;
  const service::Loaded& shape = matrix->shape();
  if (static_cast<std::uint64_t>(shape.rows) == job.rows && shape.rows == shape.cols && matrix->wanted.type == job.type)
    return std::nullopt;
  return make_problem(409, "changed", fmt::format("{} has another shape or type now; ask for it again", name));
}

}  // namespace

Jobs::Jobs(EventLoop& loop, Service& service) : loop_(loop), service_(service), later_(loop), gathered_(loop) {
  service_.is_wanted = [this](const std::string& matrix) { return is_wanted(matrix); };
  service_.restore_vectors = [this](const std::function<void()>& done) { restore_all(done); };
  service_.space().make_room = [this] { return drop_kept_x(); };
  service_.count_queued_jobs = [this](std::map<std::string, std::size_t>& by_client) {
    for (const auto& [number, job] : jobs_)
      if (job->state() == JobState::queued) ++by_client[job->client.name];
  };
}

std::variant<Problem, std::shared_ptr<RankJob>> Jobs::make(const std::shared_ptr<const Rights>& rights) {
  std::ptrdiff_t waiting = 0;
  std::erase_if(made_, [&](const std::weak_ptr<RankJob>& one) {
    const auto made = one.lock();
    if (!made || made->ended()) return true;
    if (made->result.owner == rights->tenant()) ++waiting;
    return false;
  });
  if (waiting >= kMostWaiting)
    return make_problem(429, "too_many_jobs", fmt::format("{} jobs wait or run; wait until some have ended", waiting), 1);
  auto job = std::make_shared<RankJob>(loop_, [this](RankJob& one) { changed(one); });
  try {
    job->result.id = new_vector_id();
  } catch (const Error& error) {
    return make_problem(507, "no_disk", error.what());
  }
  job->id = "job" + job->result.id.substr(3);
  job->number = ++last_job_;
  job->rights = rights;
  job->result.owner = rights->tenant();
  made_.push_back(job);
  return job;
}

void Jobs::add(const std::shared_ptr<RankJob>& job, const Vector* b, const Vector* guess) {
  job->result.matrix = job->matrix, job->result.columns = job->columns, job->result.type = job->type;
  jobs_[job->number] = job;
  job->arrive();
  job->inputs = (b != nullptr ? 1 : 0) + (guess != nullptr ? 1 : 0);
  if (guess != nullptr) job->has_guess = true;
  changed(*job);
  if (b != nullptr) read(job, *b, job->b->offset());
  if (guess != nullptr) read(job, *guess, job->guess_place()->offset);
  start_next();
}

void Jobs::read(const std::shared_ptr<RankJob>& job, const Vector& vector, std::uint64_t offset) {
  const auto check = [this, job]() -> std::optional<Problem> {
    return job->ended() ? std::optional(not_there(job->id)) : service_.why_cut_off();
  };
  const auto finished = [this, job, keep = std::tuple(job->b, job->x, job->guess)](const auto&,
                                                                                   const std::optional<Problem>& problem) {
    if (problem) return job->fail(*problem);
    --job->inputs;
    start_next();
  };
  service_.dispatcher().add(
      {service::ReadVector{vector.number, offset, 0}, {{Claim::Kind::vector, vector.number, false}}, check, finished});
}

void Jobs::give_x(const std::shared_ptr<RankJob>& job, const std::shared_ptr<ClientMemory>& memory, std::uint64_t at,
                  const std::weak_ptr<void>& client, std::function<void(const std::optional<Problem>&)> done) {
  const std::uint64_t number = job->result.number;
  const auto check = [this, job, memory, number, client]() -> std::optional<Problem> {
    if (client.expired()) return make_problem(410, "left", "the client has left");
    if (auto problem = service_.why_cut_off()) return problem;
    if (memory->lost) return make_problem(410, "memory_lost", "the new ranks could not map the memory for x");
    const auto& all = service_.vectors().all();
    if (const auto found = all.find(number); found != all.end() && !found->second.lost) return std::nullopt;
    return make_problem(410, "vector_lost", fmt::format("x of {} is gone", job->id));
  };
  const auto finished = [memory, done = std::move(done)](const auto&, const std::optional<Problem>& problem) {
    done(problem);
  };
  service_.dispatcher().add(
      {service::ReadVector{number, at, memory->number()}, {{Claim::Kind::vector, number, false}}, check, finished});
}

std::variant<Problem, std::shared_ptr<RankJob>> Jobs::find(const std::string& id, const Rights& rights) const {
  for (const auto& [number, job] : jobs_)
    if (job->id == id && job->result.is_owned_by(rights) && rights.may_use(job->matrix)) return job;
  return not_there(id);
}

/// Of clients with jobs that are due, the one goes first whose last one began the longest ago.
std::vector<std::shared_ptr<RankJob>> Jobs::due() const {
  std::vector<std::shared_ptr<RankJob>> due;
  for (const auto& [number, job] : jobs_)
    if (job->is_due()) due.push_back(job);
  const auto last_start = [&](const RankJob& job) {
    const auto found = last_starts_.find(job.client.name);
    return found == last_starts_.end() ? 0 : found->second;
  };
  std::stable_sort(due.begin(), due.end(), [&](const auto& a, const auto& b) {
    return std::pair(a->priority, last_start(*a)) < std::pair(b->priority, last_start(*b));
  });
  return due;
}

void Jobs::start_next() {
  if (service_.why_not_running()) return;
  for (bool again = true; again;) {
    const auto waiting = due();
    again = std::any_of(waiting.begin(), waiting.end(), [&](const auto& job) { return job->is_due() && start(job); });
  }
}

Matrix* Jobs::usable(RankJob& job, const std::string& name) {
  Matrix* matrix = service_.find(name);
  if (const auto problem = why_never(job, name, matrix)) {
    job.fail(*problem);
    return nullptr;
  }
  if (matrix->state != MatrixState::ready) return nullptr;
  if (matrix->upload == 0) return matrix;
  later_.start(kLookAgainSeconds, [this] { start_next(); });
  return nullptr;
}

/// Those that are due and may go with this one, which is the first of them. One whose memory is lost fails by itself.
std::vector<std::shared_ptr<RankJob>> Jobs::merged_with(const std::shared_ptr<RankJob>& job) const {
  std::vector<std::shared_ptr<RankJob>> all{job};
  if (!service_.merges()) return all;
  for (const auto& [number, other] : jobs_) {
    const bool has_memory = !other->memory || !other->memory->lost;
    if (all.size() < kMostMerged && other != job && has_memory && other->is_due() && job->may_merge_with(*other))
      all.push_back(other);
  }
  return all;
}

void Jobs::note_pace(const JobRun& run) {
  constexpr std::size_t kMostPaces = 256;
  constexpr int kTryAgain = 50, kTryMuchLater = 5000;  // runs after which an old observation is forgotten
  const bool never_merges = run.jobs() > 1 && run.lacks_solver();
  const double seconds = never_merges ? std::numeric_limits<double>::infinity() : run.seconds_of_iteration();
  if (!service_.merges() || run.first().alone || run.first().columns != 1 || seconds == 0) return;
  if (paces_.size() >= kMostPaces && !paces_.contains(run.solver())) paces_.clear();
  Pace& pace = paces_[run.solver()];
  double& known = run.jobs() > 1 ? pace.merged : pace.alone;
  known = known == 0 ? seconds : (known + seconds) / 2;
  pace.runs = run.jobs() > 1 ? 0 : pace.runs + 1;
  if (pace.runs > (std::isfinite(pace.merged) ? kTryAgain : kTryMuchLater)) pace.merged = 0;
}

/// True if so many merged jobs take clearly less time than one after the other, or nobody knows.
bool Jobs::pays(const JobRun::Solver& solver, std::size_t jobs) const {
  constexpr double kLeastGain = 1.1;
  const auto found = paces_.find(solver);
  if (jobs < 2 || found == paces_.end() || found->second.merged == 0) return true;
  if (found->second.alone == 0) return std::isfinite(found->second.merged);
  return kLeastGain * found->second.merged < static_cast<double>(jobs) * found->second.alone;
}

/// Clients that have just got their x may ask at once for the next one, and those that wait already would go without them.
void Jobs::gather_after(const JobRun& run) {
  constexpr double kShare = 0.05, kMostSeconds = 0.01;
  std::size_t wanted = run.jobs();
  for (const auto& [number, job] : jobs_)
    if (job->is_due() && job->may_merge_with(run.first())) ++wanted;
  if (!service_.merges() || run.first().alone || wanted < 2 || !pays(run.solver(), std::min(wanted, kMostMerged))) return;
  const double seconds = std::min(kShare * run.seconds(), kMostSeconds);
  gatherings_[run.solver()] = {now() + seconds, std::min(wanted, kMostMerged)};
}

bool Jobs::waits_for_more(const JobRun::Solver& solver, std::size_t jobs) {
  std::erase_if(gatherings_, [](const auto& one) { return one.second.until <= now(); });
  const auto found = gatherings_.find(solver);
  if (found == gatherings_.end()) return false;
  if (jobs >= found->second.jobs) {
    gatherings_.erase(found);
    return false;
  }
  double first = found->second.until;
  for (const auto& [other, gathering] : gatherings_) first = std::min(first, gathering.until);
  gathered_.start(std::max(0.0, first - now()), [this] { start_next(); });
  return true;
}

/// False if it must wait, or has failed.
bool Jobs::start(const std::shared_ptr<RankJob>& job) {
  Matrix* const matrix = usable(*job, job->matrix);
  Matrix* const mass = matrix == nullptr || job->mass.empty() ? nullptr : usable(*job, job->mass);
  if (matrix == nullptr || (mass == nullptr && !job->mass.empty())) return false;
  if (job->memory && job->memory->lost) {
    job->fail(make_problem(410, "memory_lost", "the new ranks could not map the memory in which b is"));
    return false;
  }
  const JobRun::Solver solver{matrix->id, job->kind, job->settings};
  for (const auto& [number, run] : runs_)
    if (run->solver() == solver) return false;
  auto jobs = merged_with(job);
  const bool always = std::any_of(jobs.begin(), jobs.end(), [](const auto& one) { return one->always_merges; });
  if (!always && !pays(solver, jobs.size())) jobs.resize(1);
  if (!job->alone && waits_for_more(solver, jobs.size())) return false;
  std::vector<std::uint64_t> vectors;
  try {
    for (std::size_t i = 0; i < jobs.size(); ++i) vectors.push_back(service_.numbers().next());
  } catch (const Error& error) {
    job->fail(make_problem(507, "no_disk", error.what()));
    return false;
  }
  const auto run =
      std::make_shared<JobRun>(++last_run_, matrix->id, mass == nullptr ? 0 : mass->id,
                               jobs.size() > 1 ? static_cast<std::int64_t>(kMostMerged) : job->columns, jobs,
                               JobRun::Actions{[this](JobRun& one) { slice(one); }, [this](JobRun& one) { left_ranks(one); },
                                               [this](const JobRun& one) { return why_gone(one); },
                                               [this](std::uint64_t vector) { service_.drop_vector(vector, nullptr); },
                                               [this, name = job->matrix](const Problem& why, bool& freed, bool unloads) {
                                                 return service_.free_memory(name, why, freed, unloads);
                                               },
                                               [this](const RankJob& one) { return room_for_x(one); }});
  runs_[last_run_] = run;
  ++matrix->jobs;
  if (mass != nullptr) ++mass->jobs;
  for (const auto& one : jobs) {
    last_starts_[one->client.name] = last_run_;
    one->generation = matrix->generation;
  }
  run->begin(vectors);
  slice(*run);
  return true;
}

/// Null if the arena has no room now, or the token may not hold more.
std::shared_ptr<ArenaSpace::Lease> Jobs::room_for_x(const RankJob& job) {
  std::shared_ptr<ArenaSpace::Lease> room = service_.space().reserve(job.bytes());
  if (room == nullptr) return nullptr;
  room->charge.emplace(service_.token_memory(), job.rights, TokenMemory::Kind::requests);
  return room->charge->raise(job.bytes()) && room->hold(job.bytes()) ? room : nullptr;
}

/// 404 if its matrix or its mass matrix is no longer there.
std::optional<Problem> Jobs::why_gone(const JobRun& run) const {
  const bool has_matrix = service_.dispatcher().matrix(run.matrix_id()) != nullptr;
  const bool has_mass = run.mass_id() == 0 || service_.dispatcher().matrix(run.mass_id()) != nullptr;
  if (has_matrix && has_mass) return std::nullopt;
  return make_problem(404, "no_matrix", fmt::format("{} was unloaded", has_matrix ? run.first().mass : run.first().matrix));
}

void Jobs::slice(JobRun& run) {
  if (const auto problem = why_gone(run)) return run.lose(*problem);
  Matrix* matrix = service_.dispatcher().matrix(run.matrix_id());
  run.tell_solvers(matrix->solvers);
  service_.dispatcher().add_slice(*matrix, run.shared_from_this(), run.next_client(), run.first().priority);
}

void Jobs::left_ranks(JobRun& run) {
  Matrix* const matrix = service_.dispatcher().matrix(run.matrix_id());
  if (matrix != nullptr) --matrix->jobs;
  if (matrix != nullptr) run.tell_solvers(matrix->solvers);
  if (Matrix* mass = service_.dispatcher().matrix(run.mass_id())) --mass->jobs;
  note_pace(run);
  gather_after(run);
  std::erase_if(runs_, [&](const auto& one) { return one.second.get() == &run; });
  loop_.post([this] { start_next(); });  // not here: the dispatcher may be at work
}

bool Jobs::is_wanted(const std::string& matrix) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& one) {
    return !one.second->ended() && (one.second->matrix == matrix || one.second->mass == matrix);
  });
}

void Jobs::changed(RankJob& job) {
  double& told = told_[job.id];
  if (job.state() == JobState::running && now() - told < kTellSeconds) return;
  told = now();
  if (job.ended()) {
    if (job.end_number == 0) job.end_number = ++last_end_;
    told_.erase(job.id);
    job.b.reset(), job.x.reset(), job.guess.reset(), job.memory.reset();
    if (job.has_result && !job.rights->is_revoked()) {
      service_.vectors().add(job.result);
      if (job.kept_x && job.waiting == 0) job.kept_x->set_aside();  // else the answer has it first
      if (!job.kept_x && job.stays()) loop_.post([this, keep = job.shared_from_this()] { keep_x(keep); });
    } else {
      if (job.has_result) service_.drop_vector(job.result.number, nullptr);
      else job.result.charge.reset();
      job.kept_x.reset();
    }
    drop_oldest(job.result.owner);
  }
  if (!service_.on_event) return;
  ServiceEvent event{"job", job.matrix, state_name(job.state()), job.problem() ? job.problem()->text : ""};
  event.job = job.id, event.kind = job.kind, event.owner = job.result.owner;
  event.iteration = job.iterations(), event.residual = job.residual();
  event.seconds = job.queued_seconds() + job.running_seconds();
  service_.on_event(event);
}

/// Of a kind whose last slice does not write X to the arena.
void Jobs::keep_x(const std::shared_ptr<RankJob>& job) {
  const std::shared_ptr<ArenaSpace::Lease> room = service_.space().keep(job->bytes());
  if (room == nullptr) return;
  const std::uint64_t number = job->result.number;
  const auto check = [this, number]() -> std::optional<Problem> {
    if (service_.vectors().all().contains(number)) return service_.why_cut_off();
    return make_problem(404, "no_vector", "x is gone");
  };
  const auto finished = [job, room](const auto&, const std::optional<Problem>& problem) {
    if (!problem) job->kept_x = room;
  };
  service_.dispatcher().add(
      {service::ReadVector{number, room->offset(), 0}, {{Claim::Kind::vector, number, false}}, check, finished});
}

/// Of the job that ended first. False: nothing is kept.
bool Jobs::drop_kept_x() {
  RankJob* first = nullptr;
  for (const auto& [number, job] : jobs_)
    if (job->kept_x && (first == nullptr || job->end_number < first->end_number)) first = job.get();
  if (first == nullptr) return false;
  first->kept_x.reset();
  return true;
}

void Jobs::restore_all(const std::function<void()>& done) {
  const auto left = std::make_shared<std::size_t>(1);
  const auto one_done = [left, done] {
    if (--*left == 0) done();
  };
  for (const auto& [number, job] : jobs_) {
    const auto& vectors = service_.vectors().all();
    const auto lost = vectors.find(job->result.number);
    if (!job->kept_x || lost == vectors.end() || !lost->second.lost) continue;
    ++*left;
    restore(job, one_done);
  }
  one_done();
}

/// Distributed as by the matrix, or in equal parts if that is gone.
void Jobs::restore(const std::shared_ptr<RankJob>& job, const std::function<void()>& done) {
  const Vector& x = job->result;
  const Matrix* matrix = service_.find(job->matrix);
  const bool fits = matrix != nullptr && matrix->is_loaded() && matrix->shape().rows == x.size;
  const auto written = [this, job, x = job->kept_x, done](const auto&, const std::optional<Problem>& problem) {
    take_restored(*job, problem);
    done();
  };
  const auto made = [this, job, at = job->kept_x->offset(), written](const std::vector<service::Answer>& answers,
                                                                     const std::optional<Problem>& problem) {
    if (problem) return written(answers, problem);
    job->result.bytes_of_ranks.clear();
    for (const service::Answer& answer : answers) {
      const auto& part = std::get<service::VectorMade>(answer.what);
      job->result.distribution = part.distribution;
      job->result.bytes_of_ranks.push_back(part.bytes);
    }
    service_.dispatcher().command(service::WriteVector{job->result.number, at}, written);
  };
  service_.dispatcher().command(service::MakeVector{x.number, fits ? matrix->id : 0, true, x.size, x.columns, x.type, false},
                                made);
}

void Jobs::take_restored(RankJob& job, const std::optional<Problem>& problem) {
  const auto& vectors = service_.vectors().all();
  if (problem && problem->code != "rank_lost") log_line(fmt::format("x of {} is lost: {}", job.id, problem->text));
  if (problem) return;
  if (vectors.contains(job.result.number)) service_.vectors().add(job.result);
  else service_.drop_vector(job.result.number, nullptr);  // it was deleted meanwhile
}

void Jobs::erase(const RankJob& job) {
  const std::uint64_t vector = job.result.number;
  if (job.has_result) {
    const auto& all = service_.vectors().all();
    if (const auto found = all.find(vector); found != all.end()) {
      if (found->second.lost) service_.vectors().erase_lost(job.result.id);
      else service_.drop_vector(vector, nullptr);
    }
  }
  jobs_.erase(job.number);
}

void Jobs::drop_oldest(const std::string& owner) {
  std::vector<std::shared_ptr<RankJob>> ended;
  for (const auto& [number, job] : jobs_)
    if (job->ended() && job->result.owner == owner) ended.push_back(job);
  std::sort(ended.begin(), ended.end(), [](const auto& a, const auto& b) { return a->end_number < b->end_number; });
  for (std::ptrdiff_t i = 0; i < std::ssize(ended) - kMostEnded; ++i) erase(*ended[static_cast<std::size_t>(i)]);
}

void Jobs::drop_unowned(const std::function<bool(const std::string& owner)>& exists) {
  std::vector<std::shared_ptr<RankJob>> gone;
  for (const auto& [number, job] : jobs_)
    if (!exists(job->result.owner)) gone.push_back(job);
  for (const auto& job : gone) job->when_ended([this, job] { loop_.post([this, job] { erase(*job); }); });
  for (const auto& job : gone)
    if (!job->ended()) job->cancel();
}

void Jobs::end_unattended() {
  std::vector<std::shared_ptr<RankJob>> cut_off;
  for (const auto& [number, job] : jobs_)
    if (!job->ended() && job->waiting == 0) cut_off.push_back(job);
  for (const auto& job : cut_off) {
    const bool runs = job->state() == JobState::running;
    log_line(fmt::format("{} is ended by the end of the service: {} of {}, {}", job->id, job->kind, job->matrix,
                         runs ? fmt::format("iteration {}", job->iterations()) : "which had not begun"));
    job->fail(make_problem(503, "draining", "the service ended before the job was done"));
  }
}

void Jobs::on_event(const ServiceEvent& event) {
  if (event.type == "ready" || event.type == "matrix") loop_.post([this] { start_next(); });
}

}  // namespace shardmat::serve
