#include "tools/serve/handlers/multiply_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "tools/serve/gate/gate.h"
#include "tools/serve/handlers/client_place.h"
#include "tools/serve/handlers/multiply_query.h"
#include "tools/serve/handlers/product_job.h"
#include "tools/serve/handlers/request_space.h"
#include "tools/serve/ranks/generation.h"
#include "tools/serve/words/value_names.h"

namespace shardmat::serve {
namespace {

/// The memory of the request's connection, in which x and y are where the query says; null if it names no place.
std::variant<Problem, std::shared_ptr<ClientMemory>> memory_of(const RequestHead& head, const MultiplyQuery& query,
                                                               const MultiplyShape& shape, ValueType type) {
  if (!query.x_at && !query.y_at) return std::shared_ptr<ClientMemory>();
  auto found = shared_memory(head);
  if (auto* problem = std::get_if<Problem>(&found)) return std::move(*problem);
  const auto& memory = std::get<1>(found);
  if (auto problem = check_places(query, shape, size_of(type), memory->bytes())) return std::move(*problem);
  return memory;
}

/// Why the client may not use the vectors that the query names; nothing if it may.
std::optional<Problem> check_vectors(const MultiplyQuery& query, const Rights& rights, const Vectors& vectors) {
  for (const std::string* id : {&query.x, &query.y}) {
    if (id->empty()) continue;
    if (auto problem = Gate::check_rights(rights, Scope::vectors, "")) return problem;
    auto found = vectors.find(*id, rights);
    if (auto* problem = std::get_if<Problem>(&found)) return std::move(*problem);
  }
  return std::nullopt;
}

class MultiplyJob final : public ProductJob {
 public:
  MultiplyJob(Service& service, const Matrix& matrix, MultiplyQuery query, const MultiplyShape& shape,
              const std::shared_ptr<MultiplyRequest>& request, SharedRights rights)
      : ProductJob(service, request, request->x ? shape.body_bytes() : 0),
        rights_(std::move(rights)),
        name_(matrix.wanted.name),
        type_(matrix.wanted.type),
        query_(std::move(query)),
        shape_(shape) {}

  std::optional<Problem> check_rights() const override { return check_vectors(query_, *rights_, service_.vectors()); }

  void start(std::function<void(Reply)> done) override {
    Matrix* matrix = service_.find(name_);
    if (auto problem = why_not(matrix)) return done(about(problem_reply(std::move(*problem)), matrix));
    if (product_->y)
      if (auto problem = hold_room(service_, product_->y, shape_.result_bytes(), shape_.result_bytes(), 0))
        return done(about(problem_reply(std::move(*problem)), matrix));
    product_->matrix = matrix->id;
    put_in_line(*matrix, [this, done](const MultiplyResult& result) {
      done(result.problem ? about(problem_reply(named(*result.problem)), service_.find(name_)) : reply_of(result));
    });
  }

 private:
  /// The matrix and the vectors may have changed while the body came. Another matrix of this name and shape will do.
  std::optional<Problem> why_not(const Matrix* matrix) const {
    if (matrix == nullptr)
      return service_.why_not_running().value_or(
          make_problem(404, "no_matrix", fmt::format("{} was unloaded while the body came", name_)));
    const auto usable = usable_matrix(service_, name_);
    if (const auto* problem = std::get_if<Problem>(&usable)) return *problem;
    if (product_->memory && product_->memory->lost) return memory_lost();
    auto shape = shape_of(query_, *matrix, service_.vectors(), *rights_, shape_.body_bytes());
    auto* wrong = std::get_if<Problem>(&shape);
    if (wrong != nullptr && wrong->status != 422) return std::move(*wrong);
    if (wrong == nullptr && std::get<MultiplyShape>(shape) == shape_ && matrix->wanted.type == type_) return std::nullopt;
    return make_problem(409, "changed", fmt::format("{} has another shape or type now; ask for it again", name_));
  }

  /// What the ranks refuse is a number of columns that they have no product for.
  static Problem named(Problem problem) {
    if (problem.code == "bad_matrix") problem.code = "wrong_columns";
    return problem;
  }

  Reply reply_of(const MultiplyResult& result) {
    Reply reply;
    const std::uint64_t rows = shape_.y_bytes / size_of(type_);
    if (product_->y_in_arena()) {
      reply.content_type = "application/octet-stream";
      reply.bytes =
          service_.arena().at(product_->y_offset(), shape_.y_bytes * static_cast<std::uint64_t>(product_->columns));
      reply.owner = product_;
    } else {
      reply.status = 204;
    }
    reply.fields = {
        {"Shardmat-Shape", product_->columns == 1 ? std::to_string(rows) : fmt::format("{},{}", product_->columns, rows)},
        {"Shardmat-Type", std::string(type_name(type_))},
        generation_field(result.generation),
        {"Shardmat-Batch", fmt::format("{}/{}", result.batch_columns, result.width)},
        {"Server-Timing", server_timing(result)}};
    reply.times = times_of(result, product_->columns);
    return reply;
  }

  SharedRights rights_;
  std::string name_;
  ValueType type_;
  MultiplyQuery query_;
  MultiplyShape shape_;
};

std::shared_ptr<MultiplyRequest> make_request(const Matrix& matrix, const MultiplyQuery& query, const MultiplyShape& shape) {
  auto request = std::make_shared<MultiplyRequest>();
  request->matrix = matrix.id, request->columns = shape.columns;
  request->alpha = query.alpha, request->beta = query.beta;
  request->deadline = now() + query.deadline_seconds;
  request->x_bytes = shape.x_bytes, request->y_bytes = shape.y_bytes;
  request->x_vector = shape.x_vector, request->y_vector = shape.y_vector;
  request->x_at = query.x_at, request->y_at = query.y_at;
  request->block = shape.block, request->transpose = query.transpose;
  request->generation = query.generation;
  return request;
}

}  // namespace

std::variant<Problem, std::unique_ptr<Job>> accept_multiply(Service& service, const RequestHead& head,
                                                            const Target& target) {
  auto read = read_multiply_query(head, target);
  if (auto* problem = std::get_if<Problem>(&read)) return std::move(*problem);
  const MultiplyQuery& query = std::get<MultiplyQuery>(read);
  if (auto problem = check_vectors(query, *head.rights, service.vectors())) return std::move(*problem);
  const std::string& name = target.path[2];
  const auto usable = usable_matrix(service, name);
  if (const auto* problem = std::get_if<Problem>(&usable)) return *problem;
  const Matrix* matrix = std::get<const Matrix*>(usable);
  if (auto problem = check_generation(*matrix, query.generation)) return std::move(*problem);
  auto found = shape_of(query, *matrix, service.vectors(), *head.rights, head.content_length);
  if (auto* problem = std::get_if<Problem>(&found)) return std::move(*problem);
  const MultiplyShape& shape = std::get<MultiplyShape>(found);
  auto memory = memory_of(head, query, shape, matrix->wanted.type);
  if (auto* problem = std::get_if<Problem>(&memory)) return std::move(*problem);
  const std::uint64_t bytes = shape.body_bytes() + shape.result_bytes();
  if (auto problem = check_arena(service, bytes, "x and y need")) return std::move(*problem);
  if (auto problem = check_token_memory(*head.rights, bytes)) return std::move(*problem);
  auto request = make_request(*matrix, query, shape);
  request->memory = std::get<1>(std::move(memory));
  if (auto problem = set_client(*request, *head.rights, query.priority)) return std::move(*problem);
  if (auto problem = service.dispatcher().admit(*matrix, *request)) return std::move(*problem);
  const bool has_body = request->x_in_arena() || shape.adds_y_of_body,
             has_result = request->y_in_arena() && !shape.adds_y_of_body;
  for (const auto& [wanted, to, size] :
       {std::tuple{has_body, &request->x, shape.body_bytes()}, {has_result, &request->y, shape.result_bytes()}}) {
    if (!wanted) continue;
    auto room = reserve_room(service, head.rights, size);
    if (auto* problem = std::get_if<Problem>(&room)) return std::move(*problem);
    *to = std::get<Room>(std::move(room));
  }
  return std::unique_ptr<Job>(
      std::make_unique<MultiplyJob>(service, *matrix, query, shape, std::move(request), head.rights));
}

}  // namespace shardmat::serve
