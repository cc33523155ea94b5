#include "tools/serve/multiply_job.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "tools/serve/value_names.h"

namespace shardmat::serve {
namespace {

/// Seconds after which a request that found the arena full should come again.
constexpr double kArenaRetrySeconds = 0.1;

Problem make_problem(int status, std::string code, std::string text) {
  Problem problem;
  problem.status = status, problem.code = std::move(code), problem.text = std::move(text);
  return problem;
}

/// What the query and the header fields ask for.
struct Wanted {
  std::int64_t columns = 1;
  double alpha = 1;
  std::string type;  ///< empty: the matrix's
  double deadline_seconds = std::numeric_limits<double>::infinity();
};

std::variant<Problem, Wanted> read_wanted(const RequestHead& head, const Target& target) {
  Wanted wanted;
  const auto bad = [](std::string text) { return make_problem(400, "malformed", std::move(text)); };
  for (const auto& [key, value] : target.query) {
    if (key == "k") {
      const auto columns = parse_whole(value);
      if (!columns || *columns < 1) return bad("k must be a whole number from 1 on");
      wanted.columns = *columns;
    } else if (key == "alpha") {
      const auto alpha = parse_number(value);
      if (!alpha) return bad("alpha must be a finite number");
      wanted.alpha = *alpha;
    } else if (key == "type") {
      wanted.type = value;
    } else {
      return bad(fmt::format("there is no parameter \"{}\"; there are k, alpha and type", key));
    }
  }
  if (const std::string& text = head.field("Shardmat-Deadline-Ms"); !text.empty()) {
    const auto milliseconds = parse_number(text);
    if (!milliseconds || *milliseconds <= 0) return bad("Shardmat-Deadline-Ms must be a number above 0");
    wanted.deadline_seconds = *milliseconds / 1000;
  }
  const std::string& content = head.field("Content-Type");
  if (!content.empty() && content != "application/octet-stream" && content != "application/x-www-form-urlencoded")
    return make_problem(415, "content_type", "the body is raw numbers: Content-Type: application/octet-stream");
  return wanted;
}

std::string server_timing(const MultiplyResult& result) {
  return fmt::format("queue;dur={:.3f}, copy-in;dur={:.3f}, product;dur={:.3f}, copy-out;dur={:.3f}",
                     result.queue_seconds * 1e3, result.seconds.copy_in * 1e3, result.seconds.product * 1e3,
                     result.seconds.copy_out * 1e3);
}

class MultiplyJob final : public Job {
 public:
  MultiplyJob(Service& service, const Matrix& matrix, std::shared_ptr<MultiplyRequest> request)
      : service_(service), name_(matrix.wanted.name), request_(std::move(request)), type_(matrix.wanted.type) {}
  ~MultiplyJob() override {
    request_->done = nullptr;
    if (number_ != 0) service_.dispatcher().cancel(number_);
  }

  std::span<std::byte> body() override {
    return service_.arena().at(request_->x->offset(), request_->x_bytes * static_cast<std::uint64_t>(request_->columns));
  }

  void start(std::function<void(Reply)> done) override {
    Matrix* matrix = service_.find(name_);
    if (const auto problem = why_not(matrix)) return done(problem_reply(*problem));
    request_->done = [this, done](const MultiplyResult& result) {
      number_ = 0;
      done(result.problem ? problem_reply(*result.problem) : reply_of(result));
    };
    auto added = service_.dispatcher().add(*matrix, request_);
    if (auto* problem = std::get_if<Problem>(&added)) return done(problem_reply(std::move(*problem)));
    if (request_->done) number_ = std::get<std::uint64_t>(added);
  }

 private:
  /// The matrix may have changed while the body came.
  std::optional<Problem> why_not(const Matrix* matrix) const {
    if (auto problem = service_.why_not_running()) return problem;
    if (matrix == nullptr || matrix->id != request_->matrix || matrix->state != MatrixState::ready)
      return make_problem(404, "no_matrix", fmt::format("{} was unloaded while the body came", name_));
    const std::uint64_t entry = size_of(type_);
    const bool same = request_->x_bytes == static_cast<std::uint64_t>(matrix->shape().cols) * entry &&
                      request_->y_bytes == static_cast<std::uint64_t>(matrix->shape().rows) * entry &&
                      request_->columns <= matrix->widths.widest();
    if (same) return std::nullopt;
    return make_problem(409, "changed", fmt::format("{} has another shape now; its file was changed", name_));
  }

  Reply reply_of(const MultiplyResult& result) {
    Reply reply;
    const std::uint64_t bytes = request_->y_bytes * static_cast<std::uint64_t>(request_->columns);
    const std::uint64_t rows = request_->y_bytes / size_of(type_);
    reply.content_type = "application/octet-stream";
    reply.bytes = service_.arena().at(request_->y->offset(), bytes);
    reply.owner = request_;
    reply.fields = {
        {"Shardmat-Shape", request_->columns == 1 ? std::to_string(rows) : fmt::format("{},{}", request_->columns, rows)},
        {"Shardmat-Type", std::string(type_name(type_))},
        {"Shardmat-Batch", fmt::format("{}/{}", result.batch_columns, result.width)},
        {"Server-Timing", server_timing(result)}};
    reply.times = times_of(result, request_->columns);
    return reply;
  }

  Service& service_;
  std::string name_;
  std::shared_ptr<MultiplyRequest> request_;
  ValueType type_;
  std::uint64_t number_ = 0;  ///< in the queue; 0: not there
};

std::optional<Problem> check_wanted(const Wanted& wanted, const Matrix& matrix, std::uint64_t content_length) {
  const std::string_view type = type_name(matrix.wanted.type);
  const std::string& name = matrix.wanted.name;
  if (!wanted.type.empty() && wanted.type != type)
    return make_problem(422, "wrong_type", fmt::format("{} is of type {}; send numbers of this type", name, type));
  if (wanted.columns > matrix.widths.widest())
    return make_problem(422, "too_many_columns",
                        fmt::format("k is at most {} for {}; send several requests", matrix.widths.widest(), name));
  const std::uint64_t bytes = static_cast<std::uint64_t>(matrix.shape().cols) * size_of(matrix.wanted.type) *
                              static_cast<std::uint64_t>(wanted.columns);
  if (content_length == bytes) return std::nullopt;
  return make_problem(422, "wrong_length",
                      fmt::format("the body has {} bytes, but x of {} has {}: {} columns of {} numbers of type {}",
                                  content_length, name, bytes, wanted.columns, matrix.shape().cols, type));
}

}  // namespace

std::variant<Problem, std::unique_ptr<Job>> accept_multiply(Service& service, const RequestHead& head,
                                                            const Target& target) {
  auto read = read_wanted(head, target);
  if (auto* problem = std::get_if<Problem>(&read)) return std::move(*problem);
  const Wanted& wanted = std::get<Wanted>(read);
  if (auto problem = service.why_not_running()) return std::move(*problem);
  const Matrix* matrix = service.find(target.path[2]);
  if (matrix == nullptr) return make_problem(404, "no_matrix", fmt::format("there is no matrix {}", target.path[2]));
  if (matrix->state == MatrixState::failed)
    return make_problem(409, "failed", fmt::format("{} could not be loaded: {}", target.path[2], matrix->reason));
  if (matrix->state == MatrixState::loading)
    return make_problem(409, "loading", fmt::format("{} is being loaded", target.path[2]));
  if (auto problem = check_wanted(wanted, *matrix, head.content_length)) return std::move(*problem);
  auto request = std::make_shared<MultiplyRequest>();
  const std::uint64_t entry = size_of(matrix->wanted.type), columns = static_cast<std::uint64_t>(wanted.columns);
  request->matrix = matrix->id, request->columns = wanted.columns, request->alpha = wanted.alpha;
  request->deadline = now() + wanted.deadline_seconds;
  request->x_bytes = static_cast<std::uint64_t>(matrix->shape().cols) * entry;
  request->y_bytes = static_cast<std::uint64_t>(matrix->shape().rows) * entry;
  const std::uint64_t bytes = (request->x_bytes + request->y_bytes) * columns;
  if (bytes + 128 > service.space().bytes())
    return make_problem(
        413, "arena_too_small",
        fmt::format("x and y need {} bytes; the service has {} for all requests", bytes, service.space().bytes()));
  request->x = service.space().take(request->x_bytes * columns);
  if (request->x) request->y = service.space().take(request->y_bytes * columns);
  if (!request->y) {
    Problem problem =
        make_problem(429, "arena_full", "the vectors of other requests fill the memory for requests; try again later");
    problem.retry_after_seconds = kArenaRetrySeconds;
    return problem;
  }
  return std::unique_ptr<Job>(std::make_unique<MultiplyJob>(service, *matrix, std::move(request)));
}

}  // namespace shardmat::serve
