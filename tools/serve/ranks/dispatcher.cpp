#include "tools/serve/ranks/dispatcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "tools/serve/ranks/generation.h"

namespace shardmat::serve {

using service::Answer;

namespace {

/// Missing bytes per rank; empty if none is short.
std::vector<std::int64_t> missing_bytes(const std::vector<Answer>& answers) {
  std::vector<std::int64_t> bytes;
  for (const Answer& answer : answers) {
    const auto* failed = std::get_if<service::Failed>(&answer.what);
    bytes.push_back(failed != nullptr ? failed->missing_bytes : 0);
  }
  if (std::all_of(bytes.begin(), bytes.end(), [](std::int64_t one) { return one == 0; })) bytes.clear();
  return bytes;
}

/// What the ranks answered in place of a result, if they did.
std::optional<Problem> problem_of(const std::vector<Answer>& answers) {
  for (const Answer& answer : answers)
    if (const auto* failed = std::get_if<service::Failed>(&answer.what)) {
      Problem problem;
      problem.text = failed->message;
      switch (failed->kind) {
        case ErrorKind::input:
        case ErrorKind::usage:
          problem.status = 422, problem.code = "bad_matrix";
          break;
        case ErrorKind::resources:
          problem.status = 507, problem.code = "no_memory";
          problem.missing_bytes = missing_bytes(answers);
          break;
        default:
          problem.status = 500, problem.code = "internal";
      }
      return problem;
    }
  return std::nullopt;
}

std::vector<Claim> claims_of(const MultiplyRequest& request) {
  std::vector<Claim> claims{{Claim::Kind::matrix, request.matrix, false}};
  if (request.x_vector != 0) claims.push_back({Claim::Kind::vector, request.x_vector, false});
  if (request.y_vector != 0) claims.push_back({Claim::Kind::vector, request.y_vector, true});
  return claims;
}

/// The columns of a request as the ranks see them.
void append_columns(const MultiplyRequest& request, std::vector<service::Column>& columns) {
  for (std::int64_t j = 0; j < request.columns; ++j) {
    const auto column = static_cast<std::uint64_t>(j);
    service::Column one{{request.x_vector, 0}, {request.y_vector, 0}, request.alpha, request.beta};
    if (request.x_in_arena()) one.x.offset = request.x->offset() + column * request.x_bytes;
    if (request.y_in_arena()) one.y.offset = request.y_offset() + column * request.y_bytes;
    if (request.x_at) one.x = {0, *request.x_at + column * request.x_bytes, request.memory->number()};
    if (request.y_at) one.y = {0, *request.y_at + column * request.y_bytes, request.memory->number()};
    columns.push_back(one);
  }
}

/// Of a product of batches, which costs so many seconds beside their work: all that wait are multiplied together.
WidthTable widths_of_batches(Merging merging, double seconds) {
  constexpr double kMore = 1e-3;  // so that of equal widths the narrowest is taken
  std::vector<service::WidthTime> widths;
  for (std::int64_t width = 1; width <= service::kMostColumns; width *= 2)
    widths.push_back({width, seconds * (1 + kMore * static_cast<double>(width))});
  return WidthTable(std::move(widths), merging);
}

std::int64_t units_of(const std::vector<std::shared_ptr<MultiplyRequest>>& batches) {
  std::int64_t units = 0;
  for (const auto& request : batches) units += request->units;
  return units;
}

/// Of a product for so many columns, of which the request is the first or the only one.
service::WidthTime width_of(const MultiplyRequest& request, std::int64_t columns, const WidthTable& widths) {
  if (!request.block && !request.transpose) return widths.for_columns(columns);
  // Products with the transpose are made for few widths, of which columns without a request are zeros.
  const std::int64_t width =
      request.block ? columns : static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(columns)));
  return {width, widths.seconds_for(columns)};
}

/// Seconds of a product; null in an answer of another kind.
const service::Multiplied* seconds_of(const Answer& answer) {
  if (const auto* batches = std::get_if<service::BatchesMultiplied>(&answer.what)) return &batches->seconds;
  return std::get_if<service::Multiplied>(&answer.what);
}

/// What is wrong with a request for a batch, as one of the ranks has seen it.
std::optional<Problem> fault_of_batch(const std::vector<Answer>& answers, std::size_t request) {
  for (const Answer& answer : answers)
    if (const auto* batches = std::get_if<service::BatchesMultiplied>(&answer.what))
      if (!batches->wrong.at(request).empty()) return make_problem(422, "bad_batch", batches->wrong[request]);
  return std::nullopt;
}

Problem late() {
  Problem problem;
  problem.status = 504, problem.code = "deadline";
  problem.text = "the deadline of the request passed before its product began";
  return problem;
}

}  // namespace

ProductTimes times_of(const MultiplyResult& result, std::int64_t columns) {
  return {result.queue_seconds,
          result.seconds.copy_in,
          result.seconds.product,
          result.seconds.copy_out,
          columns,
          result.batch_columns,
          result.width};
}

void Dispatcher::command(decltype(service::Command::what) what, Finished finished, int descriptor) {
  const bool in_background = ranks_.load_in_background() && std::holds_alternative<service::Load>(what);
  (in_background ? loads_ : commands_).push_back({std::move(what), std::move(finished), descriptor});
  pump();
}

double Dispatcher::seconds_of(const decltype(service::Command::what)& what) const { return command_seconds_[what.index()]; }

/// Until the ranks are done with what they are at and what goes before products. Of a command that takes longer than the
/// others of its kind, as much again is expected as it has taken.
double Dispatcher::seconds_left() const {
  double left = 0;
  if (!product_.requests.empty()) left = std::max(0.0, product_.started + product_.expected - now());
  else if (busy_) left = std::max(command_expected_ - (now() - busy_since_), now() - busy_since_);
  for (const Line& line : commands_) left += seconds_of(line.what);
  for (const auto& [number, task] : tasks_) left += seconds_of(task.what);
  return left;
}

double Dispatcher::waiting_seconds(const Backlog::Work& work) const {
  const auto seconds = [&](std::uint64_t id, std::int64_t columns) {
    const Matrix* matrix = find(id);
    return matrix != nullptr ? matrix->widths.seconds_for(columns) : 0;  // those of an unloaded one will be refused
  };
  return seconds_left() + backlog_.wait(work, seconds, batch_pace_.seconds_of(1));
}

std::optional<Problem> Dispatcher::admit(const Matrix& matrix, MultiplyRequest& request) {
  const double time = now();
  request.waits.reset();
  if (request.deadline <= time) return late();
  // A batch that is not merged is a product of its own. Where none is, a column is one.
  const bool fills = request.units > 0 && request.block && matrix.widths.merging() == Merging::on;
  const std::int64_t columns = fills ? service::kMostColumns : request.columns;
  const Backlog::Work work{matrix.id, columns, request.client, request.priority, request.units};
  const double wait = waiting_seconds(work);
  if (wait <= std::min(max_queue_seconds_, request.deadline - time)) {
    request.waits = backlog_.add(work);
    return std::nullopt;
  }
  Problem problem;
  problem.status = 429, problem.code = "busy", problem.retry_after_seconds = wait;
  problem.text = fmt::format("requests wait {:.0f} ms; try again later", wait * 1000);
  return problem;
}

std::variant<std::uint64_t, Problem> Dispatcher::add(Matrix& matrix, std::shared_ptr<MultiplyRequest> request) {
  request->arrived = now();
  if (request->deadline <= request->arrived) return late();
  matrix.queue.add({++last_request_, request->columns, request->arrived, request->deadline,
                    request->block || request->transpose, request->client, request->priority});
  claims_.add(last_request_, claims_of(*request));
  watch_deadline(request->deadline);
  requests_.emplace(last_request_, std::move(request));
  const std::uint64_t number = last_request_;
  pump();
  return number;
}

void Dispatcher::add_slice(Matrix& matrix, const std::shared_ptr<LongWork>& work, const Client& client, Priority priority) {
  auto request = std::make_shared<MultiplyRequest>();
  request->matrix = matrix.id, request->client = client, request->priority = priority;
  request->block = true, request->work = work, request->arrived = now();
  request->done = [work](const MultiplyResult& result) { work->take({}, result.problem); };
  matrix.queue.add({++last_request_, 1, request->arrived, request->deadline, true, client, priority});
  claims_.add(last_request_, claims_of(*request));
  requests_.emplace(last_request_, std::move(request));
  pump();
}

void Dispatcher::watch_deadline(double deadline) {
  if (deadline >= next_deadline_) return;
  next_deadline_ = deadline;
  deadlines_.start(std::max(0.0, deadline - now()), [this] { answer_late(); });
}

/// Answers those whose deadline has passed, while the ranks may be at something else.
void Dispatcher::answer_late() {
  next_deadline_ = std::numeric_limits<double>::infinity();
  std::vector<std::shared_ptr<MultiplyRequest>> expired;
  const double time = now();
  for (Matrix* matrix : all_matrices()) {
    for (const std::uint64_t number : matrix->queue.take_expired(time))
      if (auto request = take(number)) expired.push_back(std::move(request));
    if (!matrix->queue.empty()) watch_deadline(matrix->queue.earliest_deadline());
  }
  for (const auto& request : expired) reply(*request, failed(late()));
  pump();  // others may have waited for them
}

void Dispatcher::cancel(std::uint64_t request) {
  if (const auto waiting = take(request))
    if (Matrix* matrix = find(waiting->matrix)) matrix->queue.remove(request);
}

std::vector<Matrix*> Dispatcher::all_matrices() const {
  std::vector<Matrix*> all;
  for (const auto& [name, matrix] : matrices_) all.push_back(matrix.get());
  for (const auto& matrix : retired_) all.push_back(matrix.get());
  for (const auto& [id, matrix] : batches_) all.push_back(matrix.get());
  return all;
}

void Dispatcher::count_waiting(std::map<std::string, std::size_t>& by_client) const {
  for (const Matrix* matrix : all_matrices()) matrix->queue.count(by_client);
}

Matrix& Dispatcher::batches(ValueType type, std::int64_t columns, bool merges) {
  constexpr std::uint64_t kNotOfMatrices = std::uint64_t{1} << 63;
  const std::uint64_t id = kNotOfMatrices + 2 * static_cast<std::uint64_t>(columns) + (type == ValueType::f32 ? 1 : 0);
  constexpr std::size_t kMostIdle = 32;  // all of them are looked at for each product
  if (!batches_.contains(id) && batches_.size() >= kMostIdle)
    std::erase_if(batches_, [&](const auto& one) { return is_idle(*one.second); });
  auto& there = batches_[id];
  if (there == nullptr) {
    there = std::make_unique<Matrix>();
    there->id = id, there->state = MatrixState::ready,
    there->widths = widths_of_batches(merges ? Merging::on : Merging::off, batch_pace_.overhead());
  }
  return *there;
}

Matrix* Dispatcher::find(std::uint64_t matrix) const {
  for (Matrix* one : all_matrices())
    if (one->id == matrix) return one;
  return nullptr;
}

Dispatcher::Waiting Dispatcher::waiting() const {
  Waiting all;
  for (const auto& [number, request] : requests_)
    if (request->batch) ++all.batches;
    else if (!request->work) ++all.products[request->matrix];
  return all;
}

bool Dispatcher::multiplies(std::uint64_t matrix) const {
  return (!product_.requests.empty() && product_.requests.front()->matrix == matrix) ||
         (!again_.requests.empty() && again_.requests.front()->matrix == matrix);
}

bool Dispatcher::is_idle(const Matrix& matrix) const {
  return !multiplies(matrix.id) && !backlog_.has(matrix.id) && matrix.queue.empty() && matrix.jobs == 0;
}

void Dispatcher::retire(std::unique_ptr<Matrix> matrix) {
  retired_.push_back(std::move(matrix));
  pump();
}

void Dispatcher::unload_retired() {
  for (std::size_t i = 0; i < retired_.size();) {
    const Matrix& matrix = *retired_[i];
    if (!matrix.queue.empty() || matrix.jobs > 0 || multiplies(matrix.id)) {
      ++i;
      continue;
    }
    commands_.push_back({service::Unload{matrix.id}, [](const auto&, const auto&) {}, -1});
    retired_.erase(retired_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::shared_ptr<MultiplyRequest> Dispatcher::take(std::uint64_t request) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return nullptr;
  auto taken = std::move(found->second);
  requests_.erase(found);
  claims_.remove(request);
  taken->waits.reset();
  return taken;
}

void Dispatcher::reply(MultiplyRequest& request, const MultiplyResult& result) {
  if (request.done) std::exchange(request.done, nullptr)(result);
}

MultiplyResult Dispatcher::failed(const Problem& problem) {
  MultiplyResult result;
  result.problem = problem;
  return result;
}

void Dispatcher::fail(Matrix& matrix, const Problem& problem) {
  for (const std::uint64_t number : matrix.queue.clear())
    if (const auto request = take(number)) reply(*request, failed(problem));
}

void Dispatcher::fail_all(const Problem& problem) {
  set_busy(false), loading_ = 0;
  const auto under_way = std::exchange(product_, {}), again = std::exchange(again_, {});
  const auto command = std::exchange(command_under_way_, std::nullopt), load = std::exchange(load_under_way_, std::nullopt);
  const auto loads = std::exchange(loads_, {});
  const auto commands = std::exchange(commands_, {});
  const auto tasks = std::exchange(tasks_, {});
  for (const auto& [number, task] : tasks) claims_.remove(number);
  for (const UnderWay* product : {&under_way, &again})
    for (const auto& request : product->requests) reply(*request, failed(problem));
  for (Matrix* matrix : all_matrices()) fail(*matrix, problem);
  retired_.clear();
  if (command) (*command)({}, problem);
  if (load) (*load)({}, problem);
  for (const Line& line : loads) line.finished({}, problem);
  for (const Line& line : commands) line.finished({}, problem);
  for (const auto& [number, task] : tasks) task.finished({}, problem);
}

void Dispatcher::set_busy(bool busy) {
  busy_seconds_ = busy_seconds();
  busy_ = busy, busy_since_ = now();
}

void Dispatcher::tell(const MultiplyResult& result, const UnderWay& done, double seconds) const {
  if (!on_product || result.problem) return;
  FinishedProduct product;
  product.columns = result.batch_columns, product.width = result.width, product.seconds = result.seconds;
  if (done.requests.front()->batch) product.batches = std::exchange(product.columns, 0);
  for (const auto& request : done.requests) {
    const auto columns = static_cast<std::uint64_t>(request->columns);
    product.client_seconds[request->client.name] +=
        seconds * static_cast<double>(columns) / static_cast<double>(done.columns);
    if (request->x_vector == 0) product.x_bytes += request->x_bytes * columns;
    if (request->y_vector == 0) product.y_bytes += request->y_bytes * columns;
  }
  if (const Matrix* matrix = find(done.requests.front()->matrix)) product.matrix = matrix->wanted.name;
  on_product(product);
}

/// The load is sent while the ranks are at something else, too. But unloads that make room for it go first.
void Dispatcher::start_load() {
  if (load_under_way_ || loads_.empty() || !commands_.empty()) return;
  Line line = std::move(loads_.front());
  loads_.pop_front();
  loading_ = std::get<service::Load>(line.what).matrix;
  load_under_way_ = std::move(line.finished);
  ranks_.send(std::move(line.what), 0, [this, matrix = loading_](const std::vector<Answer>& answers) {
    if (const auto problem = problem_of(answers)) return finish_load(answers, problem);
    const auto adopted = [this](const auto& loaded, const auto& why_not) { finish_load(loaded, why_not); };
    command(service::Adopt{matrix}, adopted);
  });
}

void Dispatcher::finish_load(const std::vector<Answer>& answers, const std::optional<Problem>& problem) {
  const auto done = std::exchange(load_under_way_, std::nullopt);
  if (!done) return;
  loading_ = 0;
  (*done)(answers, problem);
  pump();
}

void Dispatcher::pump() {
  if (ranks_.ready()) start_load();
  if (busy_ || !ranks_.ready()) return;
  unload_retired();
  if (!commands_.empty()) return send_command();
  if (!again_.requests.empty()) return send_again();
  while (!busy_ && send_next()) {
  }
}

void Dispatcher::add(Task task) {
  claims_.add(++last_request_, task.claims);
  tasks_.emplace_back(last_request_, std::move(task));
  pump();
}

/// False if nothing may begin.
bool Dispatcher::send_next() {
  const auto task =
      std::find_if(tasks_.begin(), tasks_.end(), [&](const auto& one) { return claims_.may_begin(one.first); });
  std::vector<Matrix*> matrices = all_matrices();
  std::erase_if(matrices, [](const Matrix* one) { return one->state != MatrixState::ready || one->queue.empty(); });
  std::vector<const RequestQueue*> queues;
  for (const Matrix* matrix : matrices) queues.push_back(&matrix->queue);
  const auto next = schedule_.next(queues, now(), [&](std::uint64_t request) { return claims_.may_begin(request); });
  if (task != tasks_.end() && (!next || task->first < next->request)) {
    auto one = std::move(*task);
    tasks_.erase(task);
    claims_.remove(one.first);
    send_task(std::move(one.second));
    return true;
  }
  if (next) send_product(*matrices[next->queue]);
  return next.has_value();
}

void Dispatcher::send_task(Task task) {
  if (const auto problem = task.check ? task.check() : std::nullopt) return task.finished({}, problem);
  send(std::move(task.what), std::move(task.finished));
}

void Dispatcher::send_command() {
  Line line = std::move(commands_.front());
  commands_.pop_front();
  if (const auto* load = std::get_if<service::Load>(&line.what)) loading_ = load->matrix;
  send(std::move(line.what), std::move(line.finished), line.descriptor);
}

void Dispatcher::send(decltype(service::Command::what) what, Finished finished, int descriptor) {
  set_busy(true);
  command_under_way_ = std::move(finished);
  command_expected_ = seconds_of(what);
  const auto answered = [this, kind = what.index()](const std::vector<Answer>& answers) {
    constexpr double kShare = 0.25;
    command_seconds_[kind] += kShare * (now() - busy_since_ - command_seconds_[kind]);
    set_busy(false);
    if (!load_under_way_) loading_ = 0;
    const auto done = std::exchange(command_under_way_, std::nullopt);
    if (done) (*done)(answers, problem_of(answers));
    pump();
  };
  ranks_.send(std::move(what), 0, answered, descriptor);
}

/// Takes the requests of the next product; those whose time or generation has passed are answered.
Dispatcher::UnderWay Dispatcher::next_requests(Matrix& matrix, double time) {
  const FairSchedule::Batch batch =
      schedule_.take(matrix.queue, matrix.widths, time, [&](std::uint64_t request) { return claims_.may_begin(request); });
  for (const std::uint64_t number : batch.expired)
    if (const auto request = take(number)) reply(*request, failed(late()));
  UnderWay product;
  product.started = time, product.generation = matrix.generation;
  for (std::size_t i = 0; i < batch.requests.size(); ++i) {
    auto request = take(batch.requests[i]);
    const std::span charge(&batch.charges[i], 1);
    if (const auto problem = check_generation(matrix, request->generation)) {
      schedule_.settle(charge, 0);
      reply(*request, failed(*problem));
      continue;
    }
    product.charges.push_back(charge.front());
    product.columns += request->columns;
    product.requests.push_back(std::move(request));
  }
  return product;
}

void Dispatcher::send_product(Matrix& matrix) {
  UnderWay product = next_requests(matrix, now());
  if (product.requests.empty()) return;
  if (product.requests.front()->work) return send_slice(std::move(product));
  send_product(matrix, std::move(product));
}

void Dispatcher::send_product(Matrix& matrix, UnderWay product) {
  if (product.requests.front()->batch) return send_batches(matrix, std::move(product));
  service::Multiply multiply;
  multiply.matrix = matrix.id;
  matrix.last_used = product.started;
  for (const auto& request : product.requests) append_columns(*request, multiply.columns);
  const MultiplyRequest& first = *product.requests.front();
  if (first.block) multiply.x_block = first.x_vector, multiply.y_block = first.y_vector;
  multiply.transpose = first.transpose;
  const service::WidthTime merged = width_of(first, product.columns, matrix.widths);
  multiply.width = product.width = merged.width;
  product.expected = merged.seconds;
  product_ = std::move(product);
  set_busy(true);
  // One client after the other would wait for a thread to wake up. Where there are many, sleep leaves them the cores.
  const bool was_lone = std::exchange(lone_, product_.requests.size() == 1);
  if (was_lone && lone_) ranks_.await_without_sleep(merged.seconds);
  ranks_.send(std::move(multiply), merged.seconds, [this](const std::vector<Answer>& answers) { finish_product(answers); });
}

void Dispatcher::send_again() {
  UnderWay product = std::exchange(again_, {});
  if (Matrix* matrix = find(product.requests.front()->matrix)) return send_product(*matrix, std::move(product));
  for (const auto& request : product.requests)
    reply(*request, failed(make_problem(404, "no_matrix", "the matrix was unloaded before the product began")));
  pump();
}

/// Frees memory for the product under way, which goes on waiting then. Not for one that may have added to a y.
bool Dispatcher::tries_again(const std::optional<Problem>& problem) {
  if (!problem || problem->code != "no_memory" || !free_memory) return false;
  const bool adds = std::any_of(product_.requests.begin(), product_.requests.end(),
                                [](const auto& request) { return request->beta != 0; });
  if (adds && product_.columns > product_.width) return false;
  const Matrix* matrix = find(product_.requests.front()->matrix);
  const std::string needed = matrix != nullptr ? matrix->wanted.name : "";
  if (!free_memory(needed, *problem, product_.freed_solvers)) return false;
  again_ = std::exchange(product_, {});
  return true;
}

void Dispatcher::send_batches(Matrix& batches, UnderWay product) {
  service::MultiplyBatches multiply;
  for (const auto& request : product.requests) multiply.parts.push_back(*request->batch);
  const service::WidthTime merged = batches.widths.for_columns(product.columns);
  product.width = merged.width, product.expected = merged.seconds + batch_pace_.seconds_of(units_of(product.requests));
  product_ = std::move(product);
  lone_ = false;
  set_busy(true);
  ranks_.send(std::move(multiply), 0, [this](const std::vector<Answer>& answers) { finish_product(answers); });
}

void Dispatcher::send_slice(UnderWay slice) {
  const std::shared_ptr<LongWork> keep = slice.requests.front()->work;
  LongWork& work = *keep;
  if (const auto problem = work.check()) {
    schedule_.settle(slice.charges, 0);
    return reply(*slice.requests.front(), failed(*problem));
  }
  slice.expected = work.expected_seconds();
  if (Matrix* matrix = find(slice.requests.front()->matrix)) matrix->last_used = slice.started;
  product_ = std::move(slice);
  lone_ = false;
  set_busy(true);
  ranks_.send(work.next_command(), 0, [this](const std::vector<Answer>& answers) { finish_slice(answers); });
}

void Dispatcher::finish_slice(const std::vector<Answer>& answers) {
  set_busy(false);
  const UnderWay done = std::exchange(product_, {});
  const double seconds = now() - done.started;
  schedule_.settle(done.charges, seconds);
  MultiplyRequest& request = *done.requests.front();
  request.done = nullptr;
  if (on_product) {
    FinishedProduct slice;
    slice.client_seconds[request.client.name] = seconds;
    on_product(slice);
  }
  request.work->take(answers, problem_of(answers));
  pump();
}

void Dispatcher::finish_product(const std::vector<Answer>& answers) {
  if (tries_again(problem_of(answers))) {  // before anything else begins
    set_busy(false);
    return pump();
  }
  set_busy(false);
  const UnderWay done = std::exchange(product_, {});
  MultiplyResult result;
  result.problem = problem_of(answers);
  result.generation = done.generation;
  result.batch_columns = done.columns, result.width = done.width, result.requests = std::ssize(done.requests);
  Matrix* matrix = find(done.requests.front()->matrix);
  for (std::size_t rank = 0; rank < answers.size(); ++rank)
    if (const auto* seconds = serve::seconds_of(answers[rank])) {
      if (seconds->matrix_bytes != 0 && matrix != nullptr && matrix->is_loaded())
        matrix->ranks[rank].bytes = seconds->matrix_bytes;
      result.seconds.copy_in = std::max(result.seconds.copy_in, seconds->copy_in);
      result.seconds.product = std::max(result.seconds.product, seconds->product);
      result.seconds.copy_out = std::max(result.seconds.copy_out, seconds->copy_out);
    }
  const double seconds = now() - done.started;
  const bool is_measured = !done.requests.front()->transpose && done.columns <= done.width;
  if (matrix != nullptr && !result.problem && done.requests.front()->batch) {
    batch_pace_.observe(units_of(done.requests), seconds);
    matrix->widths = widths_of_batches(matrix->widths.merging(), batch_pace_.overhead());
  } else if (matrix != nullptr && !result.problem && is_measured)
    matrix->widths.observe(done.width, result.seconds.copy_in + result.seconds.product + result.seconds.copy_out, seconds);
  schedule_.settle(done.charges, seconds);
  pump();  // the ranks go on while replies are sent
  tell(result, done, seconds);
  const std::optional<Problem> problem = result.problem;
  for (std::size_t i = 0; i < done.requests.size(); ++i) {
    result.queue_seconds = done.started - done.requests[i]->arrived;
    result.problem = problem ? problem : fault_of_batch(answers, i);
    reply(*done.requests[i], result);
  }
}

}  // namespace shardmat::serve
