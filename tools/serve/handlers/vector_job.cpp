#include "tools/serve/handlers/vector_job.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "tools/serve/handlers/arriving_body.h"
#include "tools/serve/handlers/request_space.h"
#include "tools/serve/words/value_names.h"

namespace shardmat::serve {
namespace {

std::vector<std::pair<std::string, std::string>> fields_of(const Vector& vector) {
  return {{"Shardmat-Shape",
           vector.columns == 1 ? std::to_string(vector.size) : fmt::format("{},{}", vector.columns, vector.size)},
          {"Shardmat-Type", std::string(type_name(vector.type))}};
}

/// Between the body, or the answer, and the vector on the ranks.
class VectorJob final : public Job {
 public:
  VectorJob(Service& service, Vector vector, SharedRights rights, bool writes, Room room)
      : service_(service),
        vector_(std::move(vector)),
        rights_(std::move(rights)),
        writes_(writes),
        room_(std::make_shared<Room>(std::move(room))),
        body_(service, *room_, writes ? vector_.bytes() : 0) {}

  std::span<std::byte> body() override { return body_.piece(); }
  std::uint64_t rest() const override { return body_.rest(); }
  void take_piece(Next next) override { next(body_.take_piece()); }
  std::optional<Problem> check_rights() const override {
    auto found = service_.vectors().find(vector_.id, *rights_);
    if (auto* problem = std::get_if<Problem>(&found)) return std::move(*problem);
    return std::nullopt;
  }

  void start(std::function<void(Reply)> done) override {
    // The ranks may answer after the client has left, and with it this job; they keep the room until then.
    const auto finished = [this, weak = std::weak_ptr(alive_), room = room_, done = std::move(done)](
                              const auto&, const std::optional<Problem>& problem) {
      if (!weak.expired()) done(problem ? problem_reply(*problem) : reply());
    };
    const auto check = [&service = service_, id = vector_.id, rights = rights_]() -> std::optional<Problem> {
      if (auto problem = service.why_not_running()) return problem;
      auto found = service.vectors().find(id, *rights);
      if (auto* problem = std::get_if<Problem>(&found)) return std::move(*problem);
      return std::nullopt;
    };
    service_.dispatcher().add({command(), {{Claim::Kind::vector, vector_.number, writes_}}, check, finished});
  }

 private:
  decltype(service::Command::what) command() const {
    if (writes_) return service::WriteVector{vector_.number, (*room_)->offset()};
    return service::ReadVector{vector_.number, (*room_)->offset(), 0};
  }

  std::span<std::byte> numbers() const { return service_.arena().at((*room_)->offset(), vector_.bytes()); }

  Reply reply() const {
    Reply reply;
    reply.fields = fields_of(vector_);
    if (writes_) {
      reply.status = 204;
      return reply;
    }
    reply.content_type = "application/octet-stream";
    reply.bytes = numbers();
    reply.owner = room_;
    return reply;
  }

  Service& service_;
  Vector vector_;
  SharedRights rights_;
  bool writes_;
  std::shared_ptr<Room> room_;
  ArrivingBody body_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

Accepted accept(Service& service, const Call& call, const std::string& id, bool writes) {
  if (auto problem = service.why_not_running()) return problem_reply(std::move(*problem));
  auto found = service.vectors().find(id, call.rights());
  if (auto* problem = std::get_if<Problem>(&found)) return problem_reply(std::move(*problem));
  const Vector& vector = *std::get<const Vector*>(found);
  if (auto problem = writes ? check_content_type(call.head) : std::nullopt) return problem_reply(std::move(*problem));
  if (writes && call.head.content_length != vector.bytes())
    return problem_reply(
        422, "wrong_length",
        fmt::format("the body has {} bytes, but {} has {}: {} columns of {} numbers of type {}", call.head.content_length,
                    vector.id, vector.bytes(), vector.columns, vector.size, type_name(vector.type)));
  if (auto problem = check_arena(service, vector.bytes(), vector.id + " has")) return problem_reply(std::move(*problem));
  if (auto problem = check_token_memory(call.rights(), vector.bytes())) return problem_reply(std::move(*problem));
  auto room = writes ? reserve_room(service, call.head.rights, vector.bytes())
                     : take_room(service, call.head.rights, vector.bytes());
  if (auto* problem = std::get_if<Problem>(&room)) return problem_reply(std::move(*problem));
  return std::make_unique<VectorJob>(service, vector, call.head.rights, writes, std::get<Room>(std::move(room)));
}

}  // namespace

Accepted accept_write(Service& service, const Call& call) { return accept(service, call, call.parameters.front(), true); }
Accepted accept_read(Service& service, const Call& call) { return accept(service, call, call.parameters.front(), false); }
Accepted accept_read(Service& service, const Call& call, const std::string& id) { return accept(service, call, id, false); }

}  // namespace shardmat::serve
