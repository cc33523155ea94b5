// The small picture of a matrix: nonzeros in each cell of a coarse grid. The ranks have counted them at the load; the front
// end adds them up when somebody asks first.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "tools/serve/handlers/route_groups.h"
#include "tools/serve/handlers/text_job.h"
#include "tools/serve/observe/service_json.h"
#include "tools/serve/ranks/generation.h"

namespace shardmat::serve {
namespace {

std::variant<Problem, Matrix*> matrix_on_ranks(const Service& service, const std::string& name) {
  if (auto problem = service.why_not_running()) return std::move(*problem);
  Matrix* matrix = service.find(name);
  if (matrix == nullptr) return make_problem(404, "no_matrix", fmt::format("there is no matrix {}", name));
  if (!matrix->is_loaded()) return make_problem(409, "not_loaded", fmt::format("{} is not loaded now", name));
  return matrix;
}

service::Density sum_of(const std::vector<service::Answer>& answers) {
  service::Density sum = std::get<service::Density>(answers.front().what);
  for (std::size_t rank = 1; rank < answers.size(); ++rank) {
    const auto& more = std::get<service::Density>(answers[rank].what).counts;
    std::transform(more.begin(), more.end(), sum.counts.begin(), sum.counts.begin(), std::plus<>());
  }
  return sum;
}

Reply picture_of(const Matrix& matrix) {
  const service::Density& density = *matrix.density;
  nlohmann::ordered_json one{{"rows", matrix.shape().rows}, {"cols", matrix.shape().cols},
                             {"nnz", matrix.shape().nnz},   {"height", density.height},
                             {"width", density.width},      {"counts", nlohmann::ordered_json::array()}};
  for (auto row = density.counts.begin(); row != density.counts.end(); row += density.width)
    one["counts"].push_back(std::vector<std::uint64_t>(row, row + density.width));
  return about(json_reply(200, one), &matrix);
}

void spy(Service& service, const std::string& name, const std::function<void(Reply)>& done) {
  const auto found = matrix_on_ranks(service, name);
  if (const auto* problem = std::get_if<Problem>(&found)) return done(problem_reply(*problem));
  const Matrix& matrix = *std::get<Matrix*>(found);
  if (matrix.density) return done(picture_of(matrix));
  const auto check = [&service, name, id = matrix.id]() -> std::optional<Problem> {
    auto there = matrix_on_ranks(service, name);
    if (auto* problem = std::get_if<Problem>(&there)) return std::move(*problem);
    if (std::get<Matrix*>(there)->id == id) return std::nullopt;
    return make_problem(404, "no_matrix", fmt::format("{} was unloaded", name));
  };
  const auto finished = [&service, name, check, done](const std::vector<service::Answer>& answers,
                                                      const std::optional<Problem>& problem) {
    if (const auto gone = problem ? problem : check()) return done(problem_reply(*gone));
    Matrix& now = *service.find(name);
    now.density = std::make_shared<const service::Density>(sum_of(answers));
    done(picture_of(now));
  };
  service.dispatcher().add({service::Spy{matrix.id}, {}, check, finished});
}

}  // namespace

void add_spy_routes(Routes& routes, const Parts& parts) {
  routes.add({"GET", "/v1/matrices/{matrix}/spy", Scope::read, "spy", [&service = parts.service](const Call& call) {
                return take_text(call,
                                 [&service, name = call.matrix](std::string_view, const std::function<void(Reply)>& done) {
                                   spy(service, name, done);
                                 });
              }});
}

}  // namespace shardmat::serve
