#include "tools/serve/ranks/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"
#include "tools/serve/ranks/cores.h"
#include "tools/serve/ranks/eviction.h"
#include "tools/serve/words/problem.h"
#include "tools/serve/words/utc.h"

namespace shardmat::serve {
namespace {

RankOptions rank_options(const ServiceOptions& options, const StateDirectory& state) {
  return {options.launcher, options.worker, options.timeout, state.worker_log()};
}

/// True if the matrix that is there is what is wanted. An exchange that is not asked for may be any.
bool is_same(const WantedMatrix& wanted, const WantedMatrix& there) {
  const bool exchange = wanted.exchange == "auto" || wanted.exchange == there.exchange;
  return exchange && wanted.source == there.source && wanted.type == there.type && wanted.kernel == there.kernel &&
         wanted.sort == there.sort && wanted.updatable == there.updatable && wanted.solvable == there.solvable &&
         wanted.coordinates == there.coordinates;
}

bool is_loading(const Matrix& matrix) {
  return matrix.state == MatrixState::loading || (matrix.next && matrix.next->state == MatrixState::loading);
}

/// A matrix is not loaded again after so many losses of ranks during its load.
constexpr int kMostLosses = 2;
/// What is kept of loads that failed.
constexpr double kFailedSeconds = 3600;
constexpr std::size_t kMostFailed = 100;

/// `1.2 GB on rank 3`, where most is missing.
std::string lacking(const std::vector<std::int64_t>& missing) {
  const auto most = std::max_element(missing.begin(), missing.end());
  return fmt::format("{} on rank {}", human_bytes(static_cast<double>(*most)), most - missing.begin());
}

}  // namespace

Service::Service(EventLoop& loop, const ServiceOptions& options, StateDirectory& state, const service::Arena& arena)
    : loop_(loop),
      state_(state),
      arena_(arena),
      space_(arena.bytes()),
      memories_(
          arena.bytes(),
          [this](std::uint64_t number) {  // not here: the dispatcher may be at work
            loop_.post([this, number] { dispatcher_.command(service::Detach{number}, [](const auto&, const auto&) {}); });
          }),
      numbers_(state.path() / "numbers"),
      ranks_(loop, rank_options(options, state), arena,
             {[this] { on_ready(); }, [this](const RankLoss& loss) { on_lost(loss); }, [this] { on_gone(); }}),
      dispatcher_(loop, ranks_, matrices_, options.max_queue_seconds),
      merging_(options.merging),
      policy_(options.restarts, options.restart_delay),
      restart_(loop),
      background_(loop),
      drop_later_(loop),
      saved_(loop, state, [this] { return kept_matrices(); }) {
  dispatcher_.free_memory = [this](const std::string& needed, const Problem& problem, bool& freed_solvers) {
    return free_memory(needed, problem, freed_solvers);
  };
}

Matrix* Service::find(const std::string& name) const {
  const auto found = matrices_.find(name);
  return found == matrices_.end() ? nullptr : found->second.get();
}

void Service::start() {
  for (const WantedMatrix& wanted : saved_.read()) {
    auto matrix = std::make_unique<Matrix>();
    matrix->id = ++last_matrix_, matrix->wanted = wanted, matrix->kept = true;
    matrices_[wanted.name] = std::move(matrix);
  }
  start_ranks();
}

const SharedCores& Service::cores_in_use() const {
  constexpr double kSecondsBetweenLooks = 5;  // a look reads a file of every process
  if (now() - looked_at_cores_ >= kSecondsBetweenLooks) {
    shared_cores_ = shared_cores(ranks_.hellos(), ranks_.processes());
    looked_at_cores_ = now();
  }
  return shared_cores_;
}

void Service::start_ranks() {
  started_ = now();
  ranks_.start(state_.new_run_directory());
}

void Service::on_ready() {
  const std::vector<service::Hello> hellos = ranks_.hellos();
  looked_at_cores_ = -1e9;  // of other ranks
  for (const service::Hello& hello : hellos) log_line(place_text(hello));
  if (const std::string warning = core_warning(hellos, usable_cores()); !warning.empty()) log_line("WARNING: " + warning);
  if (const std::string text = sharing_text(cores_in_use()); !text.empty()) log_line("note: " + text);
  reload();
}

void Service::become_ready() {
  ready_ = was_ready_ = true;
  loss_.reset();
  start_seconds_ = now() - started_;
  policy_.ready(now());
  log_line(fmt::format("ready after {:.2f} s", start_seconds_));
  tell(ServiceEvent{"ready", "", "", ""});
}

/// Maps the memories of clients, loads all matrices but those that failed, and restores vectors; then the service is ready.
void Service::reload() {
  reloads_ = 1;  // this function
  const auto ready = [this, losses = losses_] {
    if (losses == losses_) become_ready();
  };
  const auto one_done = [this, ready, losses = losses_](const std::optional<Problem>&) {
    if (losses != losses_ || --reloads_ > 0) return;  // of ranks that are lost
    if (restore_vectors) restore_vectors(ready);
    else ready();
  };
  for (const auto& memory : memories_.all()) {
    ++reloads_;
    attach(memory, one_done);
  }
  for (const auto& [name, matrix] : matrices_) {
    if (matrix->state != MatrixState::failed && matrix->state != MatrixState::unloaded) {
      ++reloads_;
      send_load(*matrix, one_done);
    }
    if (matrix->next && matrix->next->state == MatrixState::loading) send_load(*matrix->next, nullptr);
  }
  one_done(std::nullopt);
}

/// Sends it to the ranks, which do not know it yet.
void Service::attach(const std::shared_ptr<ClientMemory>& memory, Loaded attached) {
  const auto finished = [memory, attached = std::move(attached)](const std::vector<service::Answer>& answers,
                                                                 const std::optional<Problem>& problem) {
    if (!answers.empty()) memory->lost = problem.has_value();
    attached(problem);
  };
  dispatcher_.command(service::Attach{memory->number(), memory->bytes()}, finished, memory->descriptor());
}

void Service::share_memory(std::uint64_t bytes, const Shared& shared) {
  if (auto problem = why_no_new_work()) return shared(std::move(*problem));
  auto made = memories_.make(bytes);
  if (std::holds_alternative<Problem>(made)) return shared(std::move(made));
  const auto memory = std::get<1>(std::move(made));
  attach(memory, [memory, shared](const std::optional<Problem>& problem) {
    if (problem) return shared(*problem);
    shared(memory);
  });
}

void Service::drop_vector(std::uint64_t number, std::function<void()> dropped) {
  vectors_.erase(number);
  const auto finished = [dropped = std::move(dropped)](const auto&, const auto&) {  // lost ranks have no vector either
    if (dropped) dropped();
  };
  dispatcher_.add({service::DropVector{number}, {{Claim::Kind::vector, number, true}}, nullptr, finished});
}

void Service::drop_unowned_vectors(const std::function<bool(const std::string& owner)>& exists) {
  for (const std::uint64_t number : vectors_.erase_unowned(exists)) drop_vector(number, nullptr);
}

std::optional<Problem> Service::why_not_ready() const {
  if (leaving_) return make_problem(503, "draining", "the service is shutting down", start_seconds_);
  return why_cut_off();
}

std::optional<Problem> Service::why_no_new_work() const { return draining_ ? why_not_ready() : why_not_running(); }

std::optional<Problem> Service::why_no_new_jobs() const { return leaving_ ? why_not_ready() : why_not_running(); }

std::optional<Problem> Service::why_not_running() const {
  auto problem = why_cut_off();
  if (problem && problem->code == "rank_lost") problem->code = "restarting";
  return problem;
}

std::optional<Problem> Service::why_cut_off() const {
  if (ready_) return std::nullopt;
  const double left = std::max(0.5, start_seconds_ - (now() - started_));
  if (!loss_) return make_problem(503, "starting", "the service is starting", left);
  Problem problem = make_problem(503, "rank_lost", loss_->why + "; the ranks are being started again", left);
  problem.rank = loss_->rank;
  return problem;
}

void Service::on_lost(const RankLoss& loss) {
  log_line(fmt::format("a rank was lost: {}{}", loss.why, loss.host.empty() ? "" : fmt::format(" on {}", loss.host)));
  ready_ = false;
  loss_ = loss;
  ++losses_;
  last_loss_ = {seconds_since_1970(), loss};
  started_ = now();
  tell(ServiceEvent{"rank_lost", "", "", loss.why, loss.rank, loss.end});
  for (const auto& [name, matrix] : matrices_) {
    const MatrixState before = matrix->state;
    if (matrix->is_loaded()) matrix->state = MatrixState::loading;
    matrix->upload = 0;
    matrix->solvers.clear(), matrix->density.reset();
    lose_load(*matrix, loss);
    if (matrix->next) lose_load(*matrix->next, loss);
    if (matrix->state != before) tell(*matrix);
  }
  drop_failed();
  vectors_.lose_all();
  dispatcher_.fail_all(*why_cut_off());
  ranks_.kill();
}

/// If the ranks were loading this matrix, it may be what ended one: after the second time it is not loaded again.
void Service::lose_load(Matrix& matrix, const RankLoss& loss) {
  if (matrix.id != dispatcher_.loading() || ++matrix.losses < kMostLosses) return;
  fail(matrix, fmt::format("a rank was lost {} times while it was loaded: {}", matrix.losses, loss.why));
}

/// Once the launcher has ended, too: it may have named the signal that nobody else knew.
void Service::explain_last_loss() {
  const auto& found = ranks_.signalled();
  if (!last_loss_ || !found || last_loss_->loss.end || (last_loss_->loss.rank >= 0 && last_loss_->loss.rank != found->rank))
    return;
  last_loss_->loss.rank = found->rank;
  last_loss_->loss.end = ProcessEnd{found->signal, 0};
  log_line(fmt::format("rank {} was ended by {}, as its launcher says", found->rank, last_loss_->loss.end->text()));
}

void Service::on_gone() {
  if (finishing_) return end(0);
  explain_last_loss();
  if (!was_ready_) {
    log_line("the ranks did not start; this is not tried again");
    return end(static_cast<int>(ErrorKind::rank_lost));
  }
  if (draining_) return;
  const std::optional<double> delay = policy_.lost(now());
  if (!delay) {
    log_line(fmt::format("ranks were lost after {} restarts; giving up (--restarts)", policy_.restarts()));
    return end(static_cast<int>(ErrorKind::rank_lost));
  }
  restart_.start(*delay, [this] {
    ++all_restarts_;
    try {
      start_ranks();
    } catch (const Error& error) {  // a full disk, or no descriptors: tried again as often as other losses
      log_line(fmt::format("the ranks cannot be started: {}", error.what()));
      on_gone();
    }
  });
}

std::optional<Problem> Service::load(const WantedMatrix& wanted, Loaded loaded) {
  if (auto problem = why_no_new_work()) return problem;
  auto& place = matrices_[wanted.name];
  if (place && is_loading(*place))
    return make_problem(409, "loading", fmt::format("{} is being loaded", wanted.name), start_seconds_);
  auto fresh = std::make_unique<Matrix>();
  fresh->id = ++last_matrix_, fresh->wanted = wanted;
  const bool stays = place && (place->is_loaded() || place->kept);  // also if it is kept, but could not be loaded again
  if (!stays) {
    place = std::move(fresh);
    tell(*place);
    send_load(*place, std::move(loaded));
    return std::nullopt;
  }
  if (place->is_loaded() && is_same(wanted, place->wanted))
    return make_problem(
        409, "loaded",
        fmt::format("{} is loaded already from this source; unload it first, or take another name", wanted.name));
  fresh->wanted.pinned = wanted.pinned || place->wanted.pinned;
  place->next = std::move(fresh);
  send_load(*place->next, std::move(loaded));
  return std::nullopt;
}

Matrix* Service::find(const std::string& name, std::uint64_t id) const {
  Matrix* there = find(name);
  if (there != nullptr && there->id != id) there = there->next.get();
  return there != nullptr && there->id == id ? there : nullptr;
}

bool Service::is_next(const Matrix& matrix) const { return find(matrix.wanted.name) != &matrix; }

/// `freed_solvers`: for an earlier try, the solvers that no job uses were freed.
void Service::send_load(Matrix& matrix, Loaded loaded, bool freed_solvers) {
  try {
    matrix.generation = numbers_.next();
  } catch (const Error& error) {
    const Problem problem = make_problem(507, "no_disk", error.what());
    refuse_load(matrix, problem);
    if (loaded) loaded(problem);
    return;
  }
  if (is_next(matrix)) matrix.kept = false;  // until it takes the place
  const WantedMatrix& wanted = matrix.wanted;
  dispatcher_.command(service::Load{matrix.id, wanted.source, wanted.type, wanted.exchange, wanted.kernel, wanted.sort,
                                    wanted.updatable, wanted.solvable, wanted.coordinates},
                      [this, name = wanted.name, id = matrix.id, loaded = std::move(loaded), freed_solvers](
                          const std::vector<service::Answer>& answers, std::optional<Problem> problem) {
                        Matrix* there = find(name, id);
                        if (there != nullptr && !answers.empty()) {
                          bool freed = freed_solvers;
                          if (problem && free_memory(name, *problem, freed)) return send_load(*there, loaded, freed);
                          if (!problem) return take_loaded(*there, answers, loaded);
                          if (!problem->missing_bytes.empty()) problem = no_room(*problem, *there);
                          refuse_load(*there, *problem);
                        }
                        if (loaded) loaded(problem);
                      });
}

/// New values are on the ranks alone, so a matrix that has some stays, as does one of arrays, whose file goes with it.
std::vector<Matrix*> Service::evictable(const std::string& needed) const {
  std::vector<Matrix*> matrices;
  for (const auto& [name, matrix] : matrices_) {
    const bool is_needed = matrix->wanted.pinned || matrix->wanted.has_new_values || matrix->wanted.of_arrays ||
                           matrix->upload != 0 || !dispatcher_.is_idle(*matrix) || (is_wanted && is_wanted(name));
    if (name != needed && matrix->is_loaded() && !is_needed && !is_loading(*matrix)) matrices.push_back(matrix.get());
  }
  return matrices;
}

/// Unloads matrices, but not the one of this name, which needs their memory. False if they have too little; then nothing is
/// unloaded. While the service starts, those that are loaded first stay.
bool Service::make_room(const std::string& needed, const std::vector<std::int64_t>& missing) {
  if (missing.empty() || !ready_) return false;
  const std::vector<Matrix*> evicted = to_evict(evictable(needed), missing);
  for (Matrix* matrix : evicted) {
    matrix->state = MatrixState::unloaded;
    matrix->reason = "evicted: another matrix needed its memory";  // whose name not everybody may know
    matrix->ranks.clear(), matrix->solvers.clear(), matrix->density.reset();
    matrix->next.reset();  // one that failed
    matrix->kept = false;
    log_line(fmt::format("{} is unloaded: {} needs its memory, and lacks {}", matrix->wanted.name,
                         needed.empty() ? "a vector" : needed, lacking(missing)));
    tell(*matrix);
    dispatcher_.command(service::Unload{matrix->id}, [](const auto&, const auto&) {});
  }
  if (!evicted.empty()) saved_.save();
  return !evicted.empty();
}

/// Solvers that no job uses go before matrices, also those of a matrix with jobs. False if there are no solvers at all.
bool Service::drop_solvers() {
  bool some = false;
  for (const auto& [name, matrix] : matrices_) {
    some = some || !matrix->solvers.all().empty();
    if (matrix->jobs == 0) matrix->solvers.clear();
  }
  if (some) dispatcher_.command(service::DropSolvers{}, [](const auto&, const auto&) {});
  return some;
}

bool Service::free_memory(const std::string& needed, const Problem& problem, bool& freed_solvers, bool unloads) {
  if (problem.code != "no_memory") return false;
  if (!std::exchange(freed_solvers, true) && drop_solvers()) return true;
  return unloads && make_room(needed, problem.missing_bytes);
}

void Service::add_with_memory(const std::string& matrix, Dispatcher::Task task, bool freed_solvers) {
  Dispatcher::Task first = task;
  first.finished = [this, matrix, task = std::move(task), freed_solvers](const std::vector<service::Answer>& answers,
                                                                         const std::optional<Problem>& problem) {
    bool freed = freed_solvers;
    if (problem && free_memory(matrix, *problem, freed)) return add_with_memory(matrix, task, freed);
    task.finished(answers, problem);
  };
  dispatcher_.add(std::move(first));
}

Problem Service::no_room(Problem problem, const Matrix& incoming) const {
  const auto most = std::max_element(problem.missing_bytes.begin(), problem.missing_bytes.end());
  const auto rank = static_cast<std::size_t>(most - problem.missing_bytes.begin());
  const std::vector<Matrix*> others = evictable(incoming.wanted.name);
  problem.text += fmt::format("; rank {} lacks {}, and the {} matrices that are idle and not pinned have {} there", rank,
                              human_bytes(static_cast<double>(*most)), others.size(),
                              human_bytes(static_cast<double>(bytes_on(others, rank))));
  if (is_next(incoming) && find(incoming.wanted.name)->is_loaded())
    problem.text += fmt::format("; {} keeps its memory until the new one is ready: unload it first", incoming.wanted.name);
  return problem;
}

/// The matrix that was loaded for it takes the place. What was asked for before is still multiplied by the old one.
void Service::replace(std::unique_ptr<Matrix>& place) {
  auto fresh = std::move(place->next);
  dispatcher_.retire(std::exchange(place, std::move(fresh)));
}

void Service::refuse_load(Matrix& matrix, const Problem& problem) {
  log_line(fmt::format("{} was not loaded: {}", matrix.wanted.name, problem.text));
  fail(matrix, problem.text);
  if (!is_next(matrix)) tell(matrix);
  drop_failed();
}

/// It is ready once the state file has it, so that whoever sees it finds it again after a restart.
void Service::take_loaded(Matrix& matrix, const std::vector<service::Answer>& answers, const Loaded& loaded) {
  matrix.wanted.exchange = std::get<service::Loaded>(answers.front().what).exchange;
  matrix.kept = true;
  saved_.save();
  saved_.when_tried([this, name = matrix.wanted.name, id = matrix.id, losses = losses_, answers, loaded] {
    Matrix* there = find(name, id);
    std::optional<Problem> problem;
    if (there == nullptr || losses != losses_)  // new ranks load it again, for nobody
      problem = make_problem(503, "rank_lost", fmt::format("a rank was lost while {} was loaded", name), start_seconds_);
    else finish_load(*there, answers);
    if (loaded) loaded(problem);
  });
}

void Service::finish_load(Matrix& matrix, const std::vector<service::Answer>& answers) {
  matrix.ranks.clear();
  for (const service::Answer& answer : answers) matrix.ranks.push_back(std::get<service::Loaded>(answer.what));
  matrix.widths = WidthTable(matrix.shape().widths, merging_);
  matrix.state = matrix.wanted.has_new_values ? MatrixState::values_lost : MatrixState::ready;
  matrix.reason = matrix.wanted.has_new_values ? "its new values were lost with the ranks; put them again" : "";
  matrix.losses = 0;
  matrix.last_used = now();
  if (is_next(matrix)) {
    auto& place = matrices_.at(matrix.wanted.name);
    const WantedMatrix replaced = place->wanted;
    replace(place);
    drop_arrays(replaced);
  }
  log_line(fmt::format("{} is loaded: {} × {}, {} nonzeros", matrix.wanted.name, matrix.shape().rows, matrix.shape().cols,
                       matrix.shape().nnz));
  tell(matrix);
}

std::optional<Problem> Service::unload(const std::string& name, Loaded unloaded) {
  if (auto problem = why_no_new_work()) return problem;
  Matrix* matrix = find(name);
  if (matrix == nullptr) return make_problem(404, "no_matrix", fmt::format("there is no matrix {}", name));
  if (is_loading(*matrix)) return make_problem(409, "loading", fmt::format("{} is being loaded", name), start_seconds_);
  dispatcher_.fail(*matrix, make_problem(404, "no_matrix", fmt::format("{} was unloaded", name)));
  const std::uint64_t id = matrix->id;
  const WantedMatrix gone = matrix->wanted;
  matrices_.erase(name);
  tell(ServiceEvent{"matrix", name, "unloaded", ""});
  saved_.save();
  saved_.when_tried([this, gone] { drop_arrays(gone); });
  dispatcher_.command(service::Unload{id},
                      [this, unloaded = std::move(unloaded)](const auto&, const std::optional<Problem>& problem) {
                        saved_.when_tried([unloaded, problem] {
                          if (unloaded) unloaded(problem);
                        });
                      });
  return std::nullopt;
}

std::optional<Problem> Service::pin(const std::string& name, bool pinned, const Loaded& done) {
  Matrix* matrix = find(name);
  if (matrix == nullptr) return make_problem(404, "no_matrix", fmt::format("there is no matrix {}", name));
  matrix->wanted.pinned = pinned;
  if (matrix->next) matrix->next->wanted.pinned = pinned;
  saved_.save();
  saved_.when_tried([done] { done(std::nullopt); });
  return std::nullopt;
}

void Service::fail(Matrix& matrix, const std::string& reason) {
  matrix.state = MatrixState::failed;
  matrix.reason = reason;
  matrix.failed_at = now();
  const bool is_unused = matrix.wanted.of_arrays && !matrix.kept && !sources().contains(matrix.wanted.source);
  if (is_unused && on_unused_arrays) on_unused_arrays(matrix.wanted.source);
}

std::set<std::string> Service::sources() const {
  std::set<std::string> sources;
  for (const auto& [name, first] : matrices_)
    for (const Matrix* matrix = first.get(); matrix != nullptr; matrix = matrix->next.get())
      if (matrix->kept || matrix->state == MatrixState::loading) sources.insert(matrix->wanted.source);
  return sources;
}

/// The file of a matrix of arrays that is gone, and that the state file does not have any more. Where that file could not
/// be written, the next start of the service removes what it does not have.
void Service::drop_arrays(const WantedMatrix& gone) {
  if (gone.of_arrays && why_unsaved().empty() && !sources().contains(gone.source) && on_unused_arrays)
    on_unused_arrays(gone.source);
}

/// Forgets loads that failed long ago, and the oldest of too many. Those that the state file has stay.
void Service::drop_failed() {
  std::vector<Matrix*> failed;
  const double too_old = now() - kFailedSeconds;
  for (const auto& [name, matrix] : matrices_) {
    if (matrix->next && matrix->next->state == MatrixState::failed && matrix->next->failed_at <= too_old)
      matrix->next.reset();
    if (matrix->state == MatrixState::failed && !matrix->kept) failed.push_back(matrix.get());
  }
  std::sort(failed.begin(), failed.end(), [](const Matrix* a, const Matrix* b) { return a->failed_at < b->failed_at; });
  for (std::size_t i = 0; i < failed.size(); ++i) {
    if (failed[i]->failed_at > too_old && failed.size() - i <= kMostFailed) break;
    const std::string name = failed[i]->wanted.name;
    matrices_.erase(name);
    tell(ServiceEvent{"matrix", name, "unloaded", "its load failed, and that is forgotten now"});
  }
  drop_later_.start(kFailedSeconds / 60, [this] { drop_failed(); });
}

bool Service::is_saved(const std::string& name) const {
  const WantedMatrix* there = saved_.find(name);
  const Matrix* matrix = find(name);
  if (matrix == nullptr || !matrix->kept) return there == nullptr;
  return there != nullptr && *there == matrix->wanted;
}

/// As the state file should have them. One that is ready to take a place has it there already.
std::vector<WantedMatrix> Service::kept_matrices() const {
  std::vector<WantedMatrix> wanted;
  for (const auto& [name, matrix] : matrices_)
    if (const Matrix& first = matrix->next && matrix->next->kept ? *matrix->next : *matrix; first.kept)
      wanted.push_back(first.wanted);
  return wanted;
}

std::optional<Problem> Service::begin_new_values(Matrix& matrix) {
  if (matrix.wanted.has_new_values) return std::nullopt;
  matrix.wanted.has_new_values = true;
  try {
    saved_.save_now();
    return std::nullopt;
  } catch (const Error& error) {
    matrix.wanted.has_new_values = false;
    return make_problem(507, "no_disk", error.what());
  }
}

void Service::end_new_values(Matrix& matrix, std::uint64_t generation, bool had_new_values,
                             const std::optional<Problem>& problem) {
  if (!problem) {
    const bool were_lost = matrix.state == MatrixState::values_lost;
    matrix.generation = generation;
    matrix.state = MatrixState::ready;
    matrix.reason.clear();
    return were_lost ? tell(matrix) : void();
  }
  if (problem->status == 503) return;  // nobody knows which values it had
  if (problem->status != 500) {        // it still has the old values
    matrix.wanted.has_new_values = had_new_values;
    if (!had_new_values) saved_.save();
    return;
  }
  fail(matrix, problem->text);
  log_line(fmt::format("{} failed: {}", matrix.wanted.name, problem->text));
  tell(matrix);
  dispatcher_.fail(matrix, make_problem(409, "failed", fmt::format("{} failed: {}", matrix.wanted.name, problem->text)));
  dispatcher_.command(service::Unload{matrix.id}, [](const auto&, const auto&) {});
}

void Service::finish() {
  finishing_ = true;
  restart_.cancel();
  try {
    saved_.save_now();
  } catch (const Error&) {  // the log says why
  }
  if (ranks_.ready()) return ranks_.quit();
  ranks_.kill();
}

void Service::tell(const ServiceEvent& event) const {
  if (on_event) on_event(event);
}

void Service::tell(const Matrix& matrix) const {
  tell(ServiceEvent{"matrix", matrix.wanted.name, state_name(matrix.state), matrix.reason});
}

void Service::end(int exit_code) {
  exit_code_ = exit_code;
  loop_.stop();
}

}  // namespace shardmat::serve
