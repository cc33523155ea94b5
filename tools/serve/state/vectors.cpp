#include "tools/serve/state/vectors.h"

#include <fmt/format.h>

#include <optional>

#include "tools/serve/http/names.h"

namespace shardmat::serve {
namespace {

constexpr std::string_view kPrefix = "vec-";

/// The number in "vec-12".
std::optional<std::uint64_t> number_in(std::string_view id) {
  if (id.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  const auto number = parse_whole(id.substr(kPrefix.size()));
  if (!number || *number < 1) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

}  // namespace

std::variant<const Vector*, Problem> Vectors::find(const std::string& id) const {
  const auto number = number_in(id);
  const auto found = number ? vectors_.find(*number) : vectors_.end();
  const bool exists = found != vectors_.end();
  if (exists && !found->second.lost) return &found->second;
  Problem problem;
  if (exists || (number && *number < first_number_)) {
    problem.status = 410, problem.code = "vector_lost";
    problem.text = fmt::format("{} was lost when the ranks were started again; make another one", id);
  } else {
    problem.status = 404, problem.code = "no_vector";
    problem.text = fmt::format("there is no vector {}", id);
  }
  return problem;
}

void Vectors::lose_all() {
  for (auto& [number, vector] : vectors_) vector.lost = true;
}

}  // namespace shardmat::serve
