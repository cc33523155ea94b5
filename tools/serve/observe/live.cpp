#include "tools/serve/observe/live.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "tools/serve/observe/job_json.h"
#include "tools/serve/observe/rank_bytes.h"
#include "tools/serve/observe/service_json.h"
#include "tools/serve/ranks/jobs.h"
#include "tools/serve/words/log.h"
#include "tools/serve/words/utc.h"

namespace shardmat::serve {

using json = nlohmann::ordered_json;

namespace {

constexpr std::size_t kMostPages = 32;
/// Further ones are counted alone.
constexpr std::size_t kMostMatrices = 100, kMostJobs = 24;
constexpr std::size_t kMostCurvePoints = 100;
constexpr std::size_t kMostLineBytes = 400;  ///< of the log
constexpr std::int64_t kRecentSeconds = 10;  ///< over which figures of the present are averaged

std::string text_of(const json& data) { return data.dump(-1, ' ', false, json::error_handler_t::replace); }

std::string event_of(const char* type, const std::string& text) {
  return fmt::format("event: {}\ndata: {}\n\n", type, text);
}

std::int64_t present_second() { return static_cast<std::int64_t>(std::floor(now())); }

/// Of a second of the steady clock, in seconds since 1970.
double time_of(std::int64_t second) { return std::round(seconds_since_1970() - now() + static_cast<double>(second)); }

bool may_see_log(const Rights& rights) { return rights.may(Scope::admin) && rights.may_use_all(); }

/// Figures of what is of no matrix, as batches are, are for those who may use all of them.
bool may_see(const Rights& rights, const std::string& matrix) {
  return matrix.empty() ? rights.may_use_all() : rights.may_use(matrix);
}

/// What a request asks for, in a word; empty: nothing that is counted.
std::string kind_of(const RequestHead& head) {
  if (head.scope != Scope::multiply || (head.matrix.empty() && head.op != "batches")) return "";
  if (head.op == "multiply" && head.target.find("transpose=1") != std::string::npos) return "transpose";
  return head.op == "infer" ? "multiply" : head.op;
}

json number_or_null(const std::optional<double>& value) { return value ? json(*value) : json(); }

/// Averages of an activity that took so many seconds.
json averages(const Activity& sum, std::int64_t seconds) {
  const auto rate = [&](std::uint64_t count) { return static_cast<double>(count) / static_cast<double>(seconds); };
  json one{{"requests", rate(sum.requests)}, {"refused", rate(sum.refused)}, {"products", rate(sum.products)}};
  one["columns"] = sum.products > 0 ? json(static_cast<double>(sum.columns) / static_cast<double>(sum.products)) : json();
  one["p50"] = number_or_null(sum.times.quantile(0.5)), one["p99"] = number_or_null(sum.times.quantile(0.99));
  one["bandwidth"] = sum.product_seconds > 0 && sum.bytes > 0 ? json(sum.bytes / sum.product_seconds) : json();
  one["waiting"] = sum.waiting;
  return one;
}

json matrix_json(const Matrix& matrix) {
  json one{{"name", matrix.wanted.name},        {"source", matrix.wanted.source}, {"type", to_json(matrix)["type"]},
           {"state", state_name(matrix.state)}, {"reason", matrix.reason},        {"pinned", matrix.wanted.pinned}};
  if (!matrix.is_loaded()) return one;
  const service::Loaded& shape = matrix.shape();
  one["updatable"] = matrix.wanted.updatable, one["solvable"] = matrix.wanted.solvable;
  one["generation"] = matrix.generation;
  one["rows"] = shape.rows, one["cols"] = shape.cols, one["nnz"] = shape.nnz;
  std::set<std::string> kernels, reasons;
  std::int64_t bytes = 0, solve_bytes = 0, solver_bytes = 0;
  for (const service::Loaded& rank : matrix.ranks) {
    kernels.insert(rank.kernel), reasons.insert(rank.why);
    bytes += rank.bytes, solve_bytes += rank.solve_bytes;
  }
  for (std::size_t rank = 0; rank < matrix.ranks.size(); ++rank) solver_bytes += matrix.solvers.bytes(rank);
  one["kernels"] = kernels, one["why"] = reasons, one["exchange"] = shape.exchange;
  one["bytes"] = bytes, one["solve_bytes"] = solve_bytes, one["solver_bytes"] = solver_bytes;
  one["solvers"] = solvers_json(matrix);
  one["widths"] = json::array();
  for (const service::WidthTime& width : shape.widths) one["widths"].push_back({width.width, width.seconds});
  one["jobs"] = matrix.jobs;
  if (matrix.next)
    one["next"] = {
        {"source", matrix.next->wanted.source}, {"state", state_name(matrix.next->state)}, {"reason", matrix.next->reason}};
  return one;
}

/// With at most so many points of its history, the last among them.
json job_json(const RankJob& job) {
  json one = to_json(job, false);
  one["history"] = json::array();
  const std::vector<ResidualHistory::Entry>& history = job.history().all();
  const std::size_t step = history.size() / kMostCurvePoints + 1;
  for (std::size_t i = (history.size() + step - 1) % step; i < history.size(); i += step)
    one["history"].push_back({history[i].iteration, history[i].norm});
  one["token"] = job.rights->name();
  return one;
}

}  // namespace

Live::Live(EventLoop& loop, const Service& service, const Jobs& jobs)
    : service_(service), jobs_(jobs), looked_(now()), timer_(loop) {
  tick();
}

void Live::add(const RequestRecord& request) {
  const RequestHead& head = request.head;
  if (head.rights) weights_[head.rights->name()] = head.rights->weight;
  const std::string kind = kind_of(head);
  if (kind.empty() || request.status == kClientLeft || request.about_job) return;  // jobs count when they end
  if (head.matrix.empty() || service_.find(head.matrix) != nullptr)
    figures_.add_request(head.matrix, kind, request.status >= 400, request.seconds, now());
}

void Live::add(const ServiceEvent& event) {
  const bool failed = event.state == state_name(JobState::failed);
  if (event.type != "job" || service_.find(event.matrix) == nullptr) return;
  if (failed || event.state == state_name(JobState::done))
    figures_.add_request(event.matrix, event.kind, failed, event.seconds, now());
}

void Live::add(const FinishedProduct& product) {
  for (const auto& [client, seconds] : product.client_seconds) figures_.add_client(client, seconds, now());
  const Matrix* matrix = product.columns > 0 ? service_.find(product.matrix) : nullptr;
  if (matrix == nullptr || !matrix->is_loaded()) return;
  figures_.add_product(product.matrix, product.columns, product.seconds.product, moved_bytes(*matrix, product), now());
}

std::shared_ptr<TextStream> Live::listen(const RequestHead& head) {
  std::erase_if(listening_, [](const Listening& one) { return one.stream.expired(); });
  if (listening_.size() >= kMostPages) return nullptr;
  const Rights& rights = *head.rights;
  auto stream = std::make_shared<TextStream>();
  json scopes = json::array();
  for (std::size_t i = 1; i < kScopeNames.size(); ++i)
    if (rights.may(static_cast<Scope>(i))) scopes.push_back(kScopeNames[i]);
  json hello{{"token", rights.name()}, {"scopes", scopes}, {"sees_log", may_see_log(rights)}};
  if (head.session) hello["session_seconds"] = std::floor(head.session->ends - now());
  stream->push(event_of("hello", text_of(hello)));
  stream->push(event_of("history", text_of(history_json(rights))));
  listening_.push_back({stream, head.rights, head.session, {}, 0});
  tell(listening_.back(), *stream);
  return stream;
}

void Live::tick() {
  const double time = now(), busy = service_.dispatcher().busy_seconds();
  if (const double passed = time - looked_; passed > 0) {
    busy_[present_second() - 1] = std::clamp((busy - busy_before_) / passed, 0.0, 1.0);
    std::erase_if(busy_, [&](const auto& one) { return one.first < present_second() - RecentFigures::kSeconds; });
  }
  looked_ = time, busy_before_ = busy;
  note_waiting(time);
  std::erase_if(listening_, [](const Listening& one) { return one.stream.expired(); });
  for (Listening& one : listening_) {
    const auto stream = one.stream.lock();
    if ((one.session && one.session->is_over(time)) || one.rights->expires <= seconds_since_1970()) stream->close();
    if (stream->is_open()) tell(one, *stream);
  }
  timer_.start(1 - (time - std::floor(time)), [this] { tick(); });
}

void Live::note_waiting(double time) {
  const Dispatcher::Waiting waiting = service_.dispatcher().waiting();
  std::map<std::string, std::size_t> all;
  for (const auto& [name, matrix] : service_.matrices())
    if (const auto found = waiting.products.find(matrix->id); found != waiting.products.end()) all[name] += found->second;
  for (const auto& [number, job] : jobs_.all())
    if (job->state() == JobState::queued && service_.find(job->matrix) != nullptr) ++all[job->matrix];
  if (waiting.batches > 0) all[""] = waiting.batches;
  for (const auto& [name, requests] : all) figures_.set_waiting(name, requests, time);
}

json Live::waiting_json(const Rights& rights) const {
  const Dispatcher::Waiting waiting = service_.dispatcher().waiting();
  std::size_t products = 0, jobs = 0;
  for (const auto& [name, matrix] : service_.matrices())
    if (const auto found = waiting.products.find(matrix->id); found != waiting.products.end() && rights.may_use(name))
      products += found->second;
  for (const auto& [number, job] : jobs_.all()) jobs += job->state() == JobState::queued && rights.may_use(job->matrix);
  return {{"products", products}, {"batches", may_see(rights, "") ? waiting.batches : 0}, {"jobs", jobs}};
}

json Live::kinds_json(const Rights& rights) const {
  json all = json::object();
  for (const auto& [kind, activity] :
       figures_.kinds(now(), [&](const std::string& matrix) { return may_see(rights, matrix); }))
    all[kind] = {{"requests", activity.requests},
                 {"refused", activity.refused},
                 {"p50", number_or_null(activity.times.quantile(0.5))},
                 {"p99", number_or_null(activity.times.quantile(0.99))}};
  return all;
}

void Live::tell(Listening& one, TextStream& stream) const {
  const Rights& rights = *one.rights;
  const bool is_first = one.sent.empty();
  stream.push(event_of("now", text_of(now_json(rights))));
  const auto tell_changed = [&](const char* type, const json& data) {
    std::string text = text_of(data);
    if (text == one.sent[type]) return;
    stream.push(event_of(type, text));
    one.sent[type] = std::move(text);
  };
  tell_changed("ranks", ranks_json(rights));
  tell_changed("matrices", matrices_json(rights));
  if (is_first) return;  // the rest follows within a second: a stream takes only so many bytes at once
  tell_changed("jobs", jobs_json(rights));
  tell_changed("tokens", tokens_json(rights));
  if (!may_see_log(rights)) return;
  json lines = json::array();
  for (LoggedLine& line : newest_log_lines(one.last_line)) {
    one.last_line = line.number;
    if (line.text.size() > kMostLineBytes) line.text = line.text.substr(0, kMostLineBytes) + "…";
    lines.push_back(std::move(line.text));
  }
  if (!lines.empty()) stream.push(event_of("log", text_of(lines)));
}

json Live::figures_json(std::int64_t second, const Rights& rights) const {
  const auto may_use = [&](const std::string& matrix) { return may_see(rights, matrix); };
  json one = averages(figures_.over(second, second + 1, may_use), 1);
  const auto busy = busy_.find(second);
  one["busy"] = busy == busy_.end() ? json() : json(busy->second);
  return one;
}

json Live::history_json(const Rights& rights) const {
  json all{{"t", json::array()}};
  const std::int64_t end = present_second() - 1;  // whose figures come with the first `now`
  for (std::int64_t second = end - RecentFigures::kSeconds + 1; second < end; ++second) {
    all["t"].push_back(time_of(second));
    const json figures = figures_json(second, rights);
    for (const auto& [name, value] : figures.items()) all[name].push_back(value);
  }
  return all;
}

json Live::now_json(const Rights& rights) const {
  const std::int64_t end = present_second();
  const auto problem = service_.why_not_ready();
  json one{{"t", time_of(end - 1)}, {"state", problem ? problem->code : "ready"}};
  if (problem) one["reason"] = problem->text;
  std::string phase = "idle";
  const json figures = figures_json(end - 1, rights);
  const bool busy = figures["busy"].is_number() && figures["busy"] > 0.005;
  bool solving = false;
  for (const auto& [number, job] : jobs_.all()) solving = solving || job->state() == JobState::running;
  if (!service_.ranks().ready()) phase = "starting";
  else if (service_.dispatcher().loading() != 0) phase = "loading";
  else if (solving) phase = "solving";
  else if (busy) phase = "multiplying";
  one["phase"] = phase;
  one["figures"] = figures;
  const auto may_use = [&](const std::string& matrix) { return may_see(rights, matrix); };
  one["recent"] = averages(figures_.over(end - kRecentSeconds, end, may_use), kRecentSeconds);
  one["kinds"] = kinds_json(rights);
  one["waiting"] = waiting_json(rights);
  one["matrices"] = json::object();
  for (const auto& [name, matrix] : service_.matrices()) {
    if (!rights.may_use(name)) continue;
    const Activity activity = figures_.over(end - kRecentSeconds, end, name);
    if (activity.requests + activity.refused + activity.products + activity.waiting > 0)
      one["matrices"][name] = averages(activity, kRecentSeconds);
  }
  double limit = 0;
  for (const service::Hello& hello : service_.ranks().hellos()) {
    limit += hello.copy_bandwidth;
    if (hello.copy_bandwidth == 0) break;
  }
  one["limit"] = limit > 0 ? json(limit) : json();
  one["arena"] = {{"bytes", service_.space().bytes()}, {"used", service_.space().used()}};
  one["client_memory"] = {{"count", service_.memories().count()}, {"bytes", service_.memories().used_bytes()}};
  return one;
}

json Live::ranks_json(const Rights& rights) const {
  json all = serve::ranks_json(service_, rights);
  for (const char* name : {"arena", "token", "client_memory", "state"}) all.erase(name);
  for (std::size_t i = 0; i < all["ranks"].size(); ++i) {
    const HeldBytes held = held_bytes(service_, i, rights);
    all["ranks"][i]["held"] = {{"matrices", held.matrices}, {"solvers", held.solvers}, {"vectors", held.vectors}};
  }
  return all;
}

json Live::matrices_json(const Rights& rights) const {
  json all{{"matrices", json::array()}, {"more", 0}};
  for (const auto& [name, matrix] : service_.matrices()) {
    if (!rights.may_use(name)) continue;
    if (all["matrices"].size() < kMostMatrices) all["matrices"].push_back(matrix_json(*matrix));
    else all["more"] = all["more"].get<int>() + 1;
  }
  return all;
}

/// Those that have not ended, then the others; the newest first.
json Live::jobs_json(const Rights& rights) const {
  std::vector<const RankJob*> visible;
  for (auto one = jobs_.all().rbegin(); one != jobs_.all().rend(); ++one)
    if (one->second->result.is_owned_by(rights) && rights.may_use(one->second->matrix)) visible.push_back(one->second.get());
  std::stable_partition(visible.begin(), visible.end(), [](const RankJob* job) { return !job->ended(); });
  json all{{"jobs", json::array()}, {"more", visible.size() - std::min(visible.size(), kMostJobs)}};
  for (std::size_t i = 0; i < std::min(visible.size(), kMostJobs); ++i) all["jobs"].push_back(job_json(*visible[i]));
  return all;
}

json Live::tokens_json(const Rights& rights) const {
  std::map<std::string, json> by_name;
  const auto of = [&](const std::string& name) -> json& {
    json& one = by_name[name];
    if (one.is_null()) one = {{"name", name}, {"weight", 1.0}, {"seconds", 0.0}, {"vector_bytes", 0}, {"request_bytes", 0}};
    return one;
  };
  for (const auto& [name, seconds] : figures_.clients(now()))
    if (rights.is_owner() || name == rights.name()) of(name)["seconds"] = seconds;
  for (const auto& [tenant, account] : service_.token_memory().all()) {
    if (!rights.is_owner() && tenant != rights.tenant()) continue;
    of(tenant)["vector_bytes"] = account.used[0], of(tenant)["request_bytes"] = account.used[1];
  }
  json all = json::array();
  for (auto& [name, one] : by_name) {
    if (const auto weight = weights_.find(name); weight != weights_.end()) one["weight"] = weight->second;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace shardmat::serve
