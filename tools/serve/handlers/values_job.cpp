#include "tools/serve/handlers/values_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "kernels/base/error.h"
#include "tools/serve/handlers/arriving_body.h"
#include "tools/serve/handlers/request_space.h"
#include "tools/serve/observe/service_json.h"
#include "tools/serve/ranks/generation.h"
#include "tools/serve/words/value_names.h"

namespace shardmat::serve {
namespace {

/// One request has at most this part of the arena, and at most so many bytes.
constexpr std::uint64_t kPartOfArena = 4, kLargestPiece = std::uint64_t{64} << 20;
constexpr double kRetrySeconds = 0.2;

/// A solve needs the same values from its first iteration to its last.
std::optional<Problem> why_kept(const Matrix& matrix) {
  if (matrix.jobs == 0) return std::nullopt;
  return make_problem(
      409, "solving",
      fmt::format("a job solves with the values that {} has; wait until it has ended, or cancel it", matrix.wanted.name),
      kRetrySeconds);
}

/// New values on their way to the ranks. It lives until the ranks have taken or dropped them, also if the client leaves.
struct Upload {
  Service& service;
  std::string name;
  std::uint64_t matrix = 0;  ///< its number
  std::uint64_t number = 0;  ///< of this upload; 0: it has not begun
  std::optional<std::uint64_t> wanted_generation;
  std::uint64_t entry = 8, count = 0;  ///< bytes of a value; values in all
  Room piece;
  std::uint64_t piece_values = 0;  ///< that fit
  std::uint64_t begin = 0;         ///< first value of the present piece
  bool kept = false;               ///< the ranks may keep pieces
  std::optional<Problem> problem;  ///< why the values will not be stored; what still comes is read and ignored

  Upload(Service& all) : service(all) {}

  std::uint64_t present() const { return std::min(piece_values, count - begin); }
  /// The matrix, if it is still the one of this upload.
  Matrix* find() const {
    Matrix* there = service.find(name);
    return there != nullptr && there->id == matrix ? there : nullptr;
  }
  service::PutValues command() const { return {matrix, begin, present(), piece->offset()}; }

  /// Begins if no other upload is under way.
  void start() {
    if (problem || number != 0) return;
    Matrix* there = find();
    if (there == nullptr) return;  // check() says so
    if (there->upload == 0) {
      there->upload = number = service.new_upload();
      return;
    }
    problem = make_problem(409, "values_busy", fmt::format("another request is sending values for {}", name), kRetrySeconds);
  }

  std::optional<Problem> check() const {
    if (auto wrong = service.why_cut_off()) return wrong;
    const Matrix* there = find();
    if (there == nullptr)
      return make_problem(404, "no_matrix", fmt::format("{} was unloaded or replaced while its values came", name));
    if (auto solving = why_kept(*there)) return solving;
    if (there->upload == number && number != 0) return check_generation(*there, wanted_generation);
    return make_problem(503, "rank_lost", "the ranks were started again while the values came; send them again",
                        kRetrySeconds);
  }

  /// The request is over.
  void end() {
    Matrix* there = find();
    if (there == nullptr || number == 0 || there->upload != number) return;
    there->upload = 0;
    if (!kept) return;
    service.dispatcher().add({service::DropValues{matrix}, {}, nullptr, [](const auto&, const auto&) {}});
  }
};

using Shared = std::shared_ptr<Upload>;

Problem named(Problem problem) {
  if (problem.code == "bad_matrix") problem.code = "bad_values";
  return problem;
}

/// Sends a piece that is not the last one. `then` is called in any case.
void send_piece(const Shared& upload, std::function<void()> then) {
  const auto finished = [upload, then = std::move(then)](const auto&, const std::optional<Problem>& problem) {
    if (problem) upload->problem = named(*problem);
    upload->begin += upload->present();
    then();
  };
  upload->kept = true;
  upload->service.dispatcher().add({upload->command(), {}, [upload] { return upload->check(); }, finished});
}

/// Sends the last piece, in the order of products and other values. `then` is called in any case.
void send_last(const Shared& upload, std::function<void()> then) {
  struct Step {
    std::uint64_t generation = 0;
    bool begun = false, had_new_values = false;
  };
  const auto step = std::make_shared<Step>();
  const auto check = [upload, step]() -> std::optional<Problem> {
    if (auto problem = upload->check()) return problem;
    Matrix& matrix = *upload->find();
    step->had_new_values = matrix.wanted.has_new_values;
    try {
      step->generation = upload->service.numbers().next();
    } catch (const Error& error) {
      return make_problem(507, "no_disk", error.what());
    }
    auto problem = upload->service.begin_new_values(matrix);
    step->begun = !problem;
    return problem;
  };
  const auto finished = [upload, step, then = std::move(then)](const auto&, const std::optional<Problem>& problem) {
    if (problem) upload->problem = named(*problem);
    else upload->kept = false;
    if (Matrix* matrix = upload->find(); matrix != nullptr && step->begun)
      upload->service.end_new_values(*matrix, step->generation, step->had_new_values, problem);
    upload->end();
    then();
  };
  upload->service.dispatcher().add({upload->command(), {{Claim::Kind::matrix, upload->matrix, true}}, check, finished});
}

class ValuesJob final : public Job {
 public:
  explicit ValuesJob(Shared upload) : upload_(std::move(upload)) { begin_piece(); }
  ~ValuesJob() override {
    if (!ending_) upload_->end();
  }

  std::span<std::byte> body() override { return piece_->piece(); }
  std::uint64_t rest() const override {
    return piece_->rest() + (upload_->count - upload_->begin - upload_->present()) * upload_->entry;
  }

  void take_piece(Next next) override {
    if (piece_->rest() > 0) return next(piece_->take_piece());
    upload_->start();
    auto goes_on = [this, next = std::move(next)] {
      begin_piece();
      next(piece_->take_piece());
    };
    if (!upload_->problem) return send_piece(upload_, here(std::move(goes_on)));
    upload_->begin += upload_->present();
    goes_on();
  }

  void start(std::function<void(Reply)> done) override {
    upload_->start();
    if (upload_->problem) return done(reply());
    ending_ = true;
    send_last(upload_, here([this, done = std::move(done)] { done(reply()); }));
  }

 private:
  void begin_piece() { piece_.emplace(upload_->service, upload_->piece, upload_->present() * upload_->entry); }

  /// The ranks may answer after the client has left, and with it this job.
  std::function<void()> here(std::function<void()> action) const {
    return [weak = std::weak_ptr(alive_), action = std::move(action)] {
      if (!weak.expired()) action();
    };
  }

  Reply reply() const {
    const Matrix* matrix = upload_->find();
    if (upload_->problem) return about(problem_reply(*upload_->problem), matrix);
    if (matrix == nullptr) return problem_reply(404, "no_matrix", fmt::format("{} was unloaded", upload_->name));
    return about(json_reply(200, to_json(*matrix)), matrix);
  }

  Shared upload_;
  std::optional<ArrivingBody> piece_;
  bool ending_ = false;  ///< the last piece is on its way: it ends the upload
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

std::optional<Problem> check_request(const Service& service, const Matrix* matrix, const Call& call) {
  for (const auto& [key, value] : call.target.query)
    if (key != "type")
      return make_problem(400, "malformed", fmt::format("there is no parameter \"{}\"; there is type", key));
  if (auto problem = check_content_type(call.head)) return problem;
  if (auto problem = service.why_not_running()) return problem;
  if (matrix == nullptr) return make_problem(404, "no_matrix", fmt::format("there is no matrix {}", call.matrix));
  if (matrix->state == MatrixState::failed)
    return make_problem(409, "failed", fmt::format("{} failed: {}", call.matrix, matrix->reason));
  if (auto solving = why_kept(*matrix)) return solving;
  if (matrix->state == MatrixState::loading)
    return make_problem(409, "loading", fmt::format("{} is being loaded", call.matrix));
  if (!matrix->wanted.updatable)
    return make_problem(409, "not_updatable",
                        fmt::format("{} was loaded without memory for new values; unload it and load it with "
                                    "\"updatable\": true",
                                    call.matrix));
  const auto type = call.target.query.find("type");
  if (auto problem = check_type(type == call.target.query.end() ? "" : type->second, matrix->wanted.type, call.matrix))
    return problem;
  const std::uint64_t bytes = static_cast<std::uint64_t>(matrix->shape().nnz) * size_of(matrix->wanted.type);
  if (call.head.content_length == bytes) return std::nullopt;
  return make_problem(
      422, "wrong_length",
      fmt::format("the body has {} bytes, but the values of {} have {}: {} numbers of type {}", call.head.content_length,
                  call.matrix, bytes, matrix->shape().nnz, type_name(matrix->wanted.type)));
}

}  // namespace

Accepted accept_values(Service& service, const Call& call) {
  const Matrix* matrix = service.find(call.matrix);
  const auto refuse = [&](Problem problem) { return about(problem_reply(std::move(problem)), matrix); };
  if (auto problem = check_request(service, matrix, call)) return refuse(std::move(*problem));
  auto generation = wanted_generation(call.head);
  if (auto* problem = std::get_if<Problem>(&generation)) return refuse(std::move(*problem));
  auto upload = std::make_shared<Upload>(service);
  upload->name = call.matrix, upload->matrix = matrix->id;
  upload->wanted_generation = std::get<0>(generation);
  if (auto problem = check_generation(*matrix, upload->wanted_generation)) return refuse(std::move(*problem));
  upload->entry = size_of(matrix->wanted.type);
  upload->count = static_cast<std::uint64_t>(matrix->shape().nnz);
  const std::uint64_t most = std::min(service.space().bytes() / kPartOfArena, kLargestPiece);
  upload->piece_values = std::min(upload->count, most / upload->entry);
  const std::uint64_t bytes = upload->piece_values * upload->entry;
  if (auto problem = check_token_memory(call.rights(), bytes)) return refuse(std::move(*problem));
  auto room = reserve_room(service, call.head.rights, bytes);
  if (auto* problem = std::get_if<Problem>(&room)) return refuse(std::move(*problem));
  upload->piece = std::get<Room>(std::move(room));
  return std::make_unique<ValuesJob>(std::move(upload));
}

}  // namespace shardmat::serve
