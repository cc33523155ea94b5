// The path of batches of many small matrices: the matrices come with the request, and are gone with the answer.
#include <fmt/format.h>

#include <utility>

#include "tools/serve/handlers/batch_query.h"
#include "tools/serve/handlers/product_job.h"
#include "tools/serve/handlers/request_space.h"
#include "tools/serve/handlers/route_groups.h"
#include "tools/serve/words/value_names.h"

namespace shardmat::serve {
namespace {

/// Larger ones are not merged: they keep the ranks at work by themselves, and those of others would wait for them.
constexpr std::uint64_t kMostMergedBytes = std::uint64_t{4} << 20;

class BatchJob final : public ProductJob {
 public:
  BatchJob(Service& service, const BatchQuery& query, std::shared_ptr<MultiplyRequest> request)
      : ProductJob(service, std::move(request), query.shape.bytes()), shape_(query.shape) {}

  void start(std::function<void(Reply)> done) override {
    if (auto problem = service_.why_not_running()) return done(problem_reply(std::move(*problem)));
    if (auto problem = hold_room(service_, product_->y, shape_.y_bytes(), shape_.y_bytes(), 0))
      return done(problem_reply(std::move(*problem)));
    product_->batch = service::BatchPart{shape_, product_->x->offset(), product_->y->offset()};
    put_in_line(batches(), [this, done](const MultiplyResult& result) {
      done(result.problem ? problem_reply(*result.problem) : reply_of(result));
    });
  }

 private:
  Matrix& batches() { return service_.dispatcher().batches(shape_.type, shape_.columns, service_.merges()); }

  Reply reply_of(const MultiplyResult& result) {
    Reply reply;
    reply.content_type = "application/octet-stream";
    reply.bytes = service_.arena().at(product_->y->offset(), shape_.y_bytes());
    reply.owner = product_;
    reply.fields = {{"Shardmat-Shape", fmt::format("{},{}", shape_.rows, shape_.columns)},
                    {"Shardmat-Type", std::string(type_name(shape_.type))},
                    {"Shardmat-Merged", std::to_string(result.requests)},
                    {"Server-Timing", server_timing(result)}};
    return reply;
  }

  BatchShape shape_;
};

Accepted accept_batch(Service& service, const Call& call) {
  const RequestHead& head = call.head;
  auto read = read_batch_query(head, call.target);
  if (auto* problem = std::get_if<Problem>(&read)) return problem_reply(std::move(*problem));
  const BatchQuery& query = std::get<BatchQuery>(read);
  const BatchShape& shape = query.shape;
  if (auto problem = service.why_not_running()) return problem_reply(std::move(*problem));
  if (auto problem = service.why_no_new_work()) return problem_reply(std::move(*problem));
  const std::uint64_t bytes = shape.bytes() + shape.y_bytes();
  if (auto problem = check_arena(service, bytes, "the batch and Y need")) return problem_reply(std::move(*problem));
  if (auto problem = check_token_memory(*head.rights, bytes)) return problem_reply(std::move(*problem));
  auto request = std::make_shared<MultiplyRequest>();
  Matrix& batches = service.dispatcher().batches(shape.type, shape.columns, service.merges());
  request->matrix = batches.id;
  request->x_bytes = shape.bytes(), request->y_bytes = shape.y_bytes();
  request->units = work_of(shape);
  request->block = query.alone || bytes > kMostMergedBytes;
  request->deadline = now() + query.deadline_seconds;
  if (auto problem = set_client(*request, *head.rights, query.priority)) return problem_reply(std::move(*problem));
  if (auto problem = service.dispatcher().admit(batches, *request)) return problem_reply(std::move(*problem));
  for (const auto& [to, size] : {std::pair(&request->x, shape.bytes()), {&request->y, shape.y_bytes()}}) {
    auto room = reserve_room(service, head.rights, size);
    if (auto* problem = std::get_if<Problem>(&room)) return problem_reply(std::move(*problem));
    *to = std::get<Room>(std::move(room));
  }
  return std::make_unique<BatchJob>(service, query, std::move(request));
}

}  // namespace

void add_batch_routes(Routes& routes, const Parts& parts) {
  routes.add({"POST", "/v1/batches", Scope::multiply, "batches",
              [&service = parts.service](const Call& call) { return accept_batch(service, call); }, true});
}

}  // namespace shardmat::serve
