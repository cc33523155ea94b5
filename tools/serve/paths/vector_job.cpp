#include "tools/serve/paths/vector_job.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "tools/serve/paths/request_space.h"
#include "tools/serve/paths/value_names.h"

namespace shardmat::serve {
namespace {

using Lease = std::shared_ptr<ArenaSpace::Lease>;

std::vector<std::pair<std::string, std::string>> fields_of(const Vector& vector) {
  return {{"Shardmat-Shape",
           vector.columns == 1 ? std::to_string(vector.size) : fmt::format("{},{}", vector.columns, vector.size)},
          {"Shardmat-Type", std::string(type_name(vector.type))}};
}

/// Between the body, or the answer, and the vector on the ranks.
class VectorJob final : public Job {
 public:
  VectorJob(Service& service, Vector vector, bool writes, Lease lease)
      : service_(service), vector_(std::move(vector)), writes_(writes), lease_(std::move(lease)) {}

  std::span<std::byte> body() override { return writes_ ? numbers() : std::span<std::byte>(); }

  void start(std::function<void(Reply)> done) override {
    // The ranks may answer after the client has left, and with it this job; they keep the lease until then.
    const auto finished = [this, weak = std::weak_ptr(alive_), lease = lease_, done = std::move(done)](
                              const auto&, const std::optional<Problem>& problem) {
      if (!weak.expired()) done(problem ? problem_reply(*problem) : reply());
    };
    const auto check = [&service = service_, id = vector_.id()]() -> std::optional<Problem> {
      if (auto problem = service.why_not_running()) return problem;
      auto found = service.vectors().find(id);
      if (auto* problem = std::get_if<Problem>(&found)) return std::move(*problem);
      return std::nullopt;
    };
    service_.dispatcher().add({command(), {{Claim::Kind::vector, vector_.number, writes_}}, check, finished});
  }

 private:
  decltype(service::Command::what) command() const {
    if (writes_) return service::WriteVector{vector_.number, lease_->offset()};
    return service::ReadVector{vector_.number, lease_->offset()};
  }

  std::span<std::byte> numbers() const { return service_.arena().at(lease_->offset(), vector_.bytes()); }

  Reply reply() const {
    Reply reply;
    reply.fields = fields_of(vector_);
    if (writes_) {
      reply.status = 204;
      return reply;
    }
    reply.content_type = "application/octet-stream";
    reply.bytes = numbers();
    reply.owner = lease_;
    return reply;
  }

  Service& service_;
  Vector vector_;
  bool writes_;
  Lease lease_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

Accepted accept(Service& service, const Call& call, bool writes) {
  if (auto problem = service.why_not_running()) return problem_reply(std::move(*problem));
  auto found = service.vectors().find(call.parameters.front());
  if (auto* problem = std::get_if<Problem>(&found)) return problem_reply(std::move(*problem));
  const Vector& vector = *std::get<const Vector*>(found);
  if (auto problem = check_vector_rights(call.rights(), vector)) return problem_reply(std::move(*problem));
  if (auto problem = writes ? check_content_type(call.head) : std::nullopt) return problem_reply(std::move(*problem));
  if (writes && call.head.content_length != vector.bytes())
    return problem_reply(
        422, "wrong_length",
        fmt::format("the body has {} bytes, but {} has {}: {} columns of {} numbers of type {}", call.head.content_length,
                    vector.id(), vector.bytes(), vector.columns, vector.size, type_name(vector.type)));
  if (auto problem = check_arena(service, vector.bytes(), vector.id() + " has")) return problem_reply(std::move(*problem));
  Lease lease = service.space().take(vector.bytes());
  if (!lease) return problem_reply(arena_full());
  return std::make_unique<VectorJob>(service, vector, writes, std::move(lease));
}

}  // namespace

Accepted accept_write(Service& service, const Call& call) { return accept(service, call, true); }
Accepted accept_read(Service& service, const Call& call) { return accept(service, call, false); }

}  // namespace shardmat::serve
