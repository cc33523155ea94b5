// The paths below /v1/vectors: making vectors that stay on the ranks, writing, reading and deleting them.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "kernels/base/error.h"
#include "tools/serve/gate/gate.h"
#include "tools/serve/handlers/request_space.h"
#include "tools/serve/handlers/route_groups.h"
#include "tools/serve/handlers/text_job.h"
#include "tools/serve/handlers/vector_job.h"
#include "tools/serve/handlers/vector_json.h"
#include "tools/serve/observe/service_json.h"
#include "tools/serve/words/value_names.h"

namespace shardmat::serve {
namespace {

using Done = std::function<void(Reply)>;

/// The matrix that a vector is made for, if it is loaded; null for a vector without a matrix.
std::variant<const Matrix*, Problem> matrix_of(const Service& service, const WantedVector& wanted) {
  if (auto problem = service.why_no_new_work()) return std::move(*problem);
  if (wanted.matrix.empty()) return static_cast<const Matrix*>(nullptr);
  const Matrix* matrix = service.find(wanted.matrix);
  if (matrix == nullptr) return make_problem(404, "no_matrix", fmt::format("there is no matrix {}", wanted.matrix));
  if (!matrix->is_loaded()) return make_problem(409, "not_loaded", fmt::format("{} is not loaded now", wanted.matrix));
  if (wanted.type && *wanted.type != matrix->wanted.type)
    return make_problem(
        422, "wrong_type",
        fmt::format("{} is of type {}; so must its vectors be", wanted.matrix, type_name(matrix->wanted.type)));
  return matrix;
}

/// The vector as wanted, with its id, and its bytes counted; or why it cannot be.
std::variant<Vector, Problem> new_vector(Service& service, const WantedVector& wanted, const Matrix* matrix,
                                         const SharedRights& rights) {
  Vector vector;
  try {
    vector.number = service.numbers().next();
    vector.id = new_vector_id();
  } catch (const Error& error) {
    return make_problem(507, "no_disk", error.what());
  }
  vector.owner = rights->tenant(), vector.shared = wanted.shared;
  vector.matrix = wanted.matrix, vector.columns = wanted.columns;
  vector.type = matrix != nullptr ? matrix->wanted.type : wanted.type.value_or(ValueType::f64);
  vector.size = matrix == nullptr ? wanted.size : wanted.as_y ? matrix->shape().rows : matrix->shape().cols;
  vector.charge = std::make_shared<TokenMemory::Charge>(service.token_memory(), rights, TokenMemory::Kind::vectors);
  if (vector.charge->raise(vector.bytes())) return vector;
  const auto [vectors, requests] = service.token_memory().used(rights->tenant());
  return make_problem(507, "token_memory",
                      fmt::format("the vector has {} bytes; the token {} may hold {} (memory_bytes in the token file), and "
                                  "holds {} in vectors and {} in requests; delete vectors",
                                  vector.bytes(), rights->name(), rights->memory_bytes, vectors, requests));
}

void make(Service& service, const WantedVector& wanted, const SharedRights& rights, const Done& done) {
  const auto found = matrix_of(service, wanted);
  if (const auto* problem = std::get_if<Problem>(&found)) return done(problem_reply(*problem));
  const Matrix* matrix = std::get<const Matrix*>(found);
  auto begun = new_vector(service, wanted, matrix, rights);
  if (auto* problem = std::get_if<Problem>(&begun)) return done(problem_reply(std::move(*problem)));
  Vector& vector = std::get<Vector>(begun);
  const std::uint64_t id = matrix != nullptr ? matrix->id : 0;
  const auto check = [&service, wanted, id]() -> std::optional<Problem> {
    auto there = matrix_of(service, wanted);
    if (auto* problem = std::get_if<Problem>(&there)) return std::move(*problem);
    const Matrix* now = std::get<const Matrix*>(there);
    if (id == (now != nullptr ? now->id : 0)) return std::nullopt;
    return make_problem(404, "no_matrix", fmt::format("{} was unloaded", wanted.matrix));
  };
  const auto finished = [&service, vector, id, rights, done](const std::vector<service::Answer>& answers,
                                                             const std::optional<Problem>& problem) mutable {
    if (problem) {
      Problem named = *problem;
      if (named.code == "bad_matrix") named.code = "wrong_columns";
      return done(problem_reply(std::move(named)));
    }
    Matrix* const of = service.find(vector.matrix);
    std::uint64_t bytes = 0;
    for (std::size_t rank = 0; rank < answers.size(); ++rank) {
      const auto& made = std::get<service::VectorMade>(answers[rank].what);
      vector.size = made.size, vector.distribution = made.distribution;
      vector.bytes_of_ranks.push_back(made.bytes);
      bytes += static_cast<std::uint64_t>(made.bytes);
      if (of != nullptr && of->id == id) of->ranks[rank].bytes = made.matrix_bytes;
    }
    if (rights->is_revoked()) {  // vectors of its owner were dropped before this one was there
      service.drop_vector(vector.number, nullptr);
      return done(Gate::revoked());
    }
    vector.charge->correct(bytes);
    Reply reply = json_reply(201, to_json(vector, *rights));
    reply.fields.emplace_back("Location", "/v1/vectors/" + vector.id);
    service.vectors().add(vector);
    done(std::move(reply));
  };
  service.add_with_memory(
      wanted.matrix,
      {service::MakeVector{vector.number, id, wanted.as_y, wanted.size, wanted.columns, vector.type}, {}, check, finished});
}

Accepted post(Service& service, const Call& call) {
  return take_text(call, [&service, rights = call.head.rights](std::string_view body, const Done& done) {
    try {
      const WantedVector wanted = parse_vector(body);
      if (!wanted.matrix.empty() && !rights->may_use(wanted.matrix))
        return done(problem_reply(403, "wrong_matrix",
                                  fmt::format("the token {} is not for the matrix {}", rights->name(), wanted.matrix)));
      make(service, wanted, rights, done);
    } catch (const Error& error) {
      done(problem_reply(400, "malformed", error.what()));
    }
  });
}

/// The id is gone at once. Work that came before still uses the vector.
Accepted remove(Service& service, const Call& call) {
  return take_text(call,
                   [&service, rights = call.head.rights, id = call.parameters.front()](std::string_view, const Done& done) {
                     const auto found = service.vectors().find(id, *rights);
                     if (const auto* problem = std::get_if<Problem>(&found)) {
                       if (problem->status == 410) service.vectors().erase_lost(id);
                       return done(problem_reply(*problem));
                     }
                     service.drop_vector(std::get<const Vector*>(found)->number, [done] {
                       Reply reply;
                       reply.status = 204;
                       done(std::move(reply));
                     });
                   });
}

Reply list(const Service& service, const Rights& rights) {
  auto vectors = nlohmann::ordered_json::array();
  for (const auto& [number, vector] : service.vectors().all())
    if (vector.is_visible_to(rights)) vectors.push_back(to_json(vector, rights));
  return json_reply(200, {{"vectors", vectors}});
}

}  // namespace

void add_vector_routes(Routes& routes, const Parts& parts) {
  Service& service = parts.service;
  routes.add({"GET", "/v1/vectors", Scope::read, "list_vectors",
              [&service](const Call& call) -> Accepted { return list(service, call.rights()); }});
  routes.add(
      {"POST", "/v1/vectors", Scope::vectors, "make_vector", [&service](const Call& call) { return post(service, call); }});
  routes.add({"PUT", "/v1/vectors/{vector}", Scope::vectors, "write_vector",
              [&service](const Call& call) { return accept_write(service, call); }});
  routes.add({"GET", "/v1/vectors/{vector}", Scope::vectors, "read_vector",
              [&service](const Call& call) { return accept_read(service, call); }});
  routes.add({"DELETE", "/v1/vectors/{vector}", Scope::vectors, "delete_vector",
              [&service](const Call& call) { return remove(service, call); }});
}

}  // namespace shardmat::serve
