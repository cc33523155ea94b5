// The path of batches of many small matrices: the matrices come with the request, and are gone with the answer.
#include <fmt/format.h>

#include <utility>

#include "tools/serve/handlers/arriving_body.h"
#include "tools/serve/handlers/batch_query.h"
#include "tools/serve/handlers/request_space.h"
#include "tools/serve/handlers/route_groups.h"
#include "tools/serve/words/value_names.h"

namespace shardmat::serve {
namespace {

/// Larger ones are not merged: they keep the ranks at work by themselves, and those of others would wait for them.
constexpr std::uint64_t kMostMergedBytes = std::uint64_t{4} << 20;

class BatchJob final : public Job {
 public:
  BatchJob(Service& service, const BatchQuery& query, std::shared_ptr<MultiplyRequest> request)
      : service_(service),
        shape_(query.shape),
        request_(std::move(request)),
        body_(service, request_->x, query.shape.bytes()) {}
  ~BatchJob() override {
    request_->done = nullptr;
    if (number_ != 0) service_.dispatcher().cancel(number_);
  }

  std::span<std::byte> body() override { return body_.piece(); }
  std::uint64_t rest() const override { return body_.rest(); }
  void take_piece(Next next) override { next(body_.take_piece()); }
  double deadline() const override { return request_->deadline; }

  void start(std::function<void(Reply)> done) override {
    if (auto problem = service_.why_not_running()) return done(problem_reply(std::move(*problem)));
    if (auto problem = hold_room(service_, request_->y, shape_.y_bytes(), shape_.y_bytes(), 0))
      return done(problem_reply(std::move(*problem)));
    request_->batch = service::BatchPart{shape_, request_->x->offset(), request_->y->offset()};
    request_->done = [this, done](const MultiplyResult& result) {
      number_ = 0;
      done(result.problem ? problem_reply(*result.problem) : reply_of(result));
    };
    auto added = service_.dispatcher().add(batches(), request_);
    if (auto* problem = std::get_if<Problem>(&added)) return done(problem_reply(std::move(*problem)));
    if (request_->done) number_ = std::get<std::uint64_t>(added);
  }

 private:
  Matrix& batches() { return service_.dispatcher().batches(shape_.type, shape_.columns, service_.merges()); }

  Reply reply_of(const MultiplyResult& result) {
    Reply reply;
    reply.content_type = "application/octet-stream";
    reply.bytes = service_.arena().at(request_->y->offset(), shape_.y_bytes());
    reply.owner = request_;
    reply.fields = {{"Shardmat-Shape", fmt::format("{},{}", shape_.rows, shape_.columns)},
                    {"Shardmat-Type", std::string(type_name(shape_.type))},
                    {"Shardmat-Merged", std::to_string(result.requests)},
                    {"Server-Timing", server_timing(result)}};
    return reply;
  }

  Service& service_;
  BatchShape shape_;
  std::shared_ptr<MultiplyRequest> request_;
  ArrivingBody body_;
  std::uint64_t number_ = 0;  ///< in the queue; 0: not there
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
