#include "tools/serve/ranks/generation.h"

#include <fmt/format.h>

#include "tools/serve/http/names.h"
#include "tools/serve/words/problem.h"

namespace shardmat::serve {

std::variant<std::optional<std::uint64_t>, Problem> wanted_generation(const RequestHead& head) {
  const std::string& text = head.field("If-Match");
  if (text.empty() || text == "*") return std::optional<std::uint64_t>();
  if (text.size() > 2 && text.front() == '"' && text.back() == '"')
    if (const auto number = parse_whole(std::string_view(text).substr(1, text.size() - 2)); number && *number >= 0)
      return std::optional(static_cast<std::uint64_t>(*number));
  return make_problem(400, "malformed", "If-Match takes one generation in quotes, as \"12\", or *");
}

std::optional<Problem> check_generation(const Matrix& matrix, const std::optional<std::uint64_t>& wanted) {
  if (!wanted || *wanted == matrix.generation) return std::nullopt;
  return make_problem(412, "generation",
                      fmt::format("{} has generation {}, not {}", matrix.wanted.name, matrix.generation, *wanted));
}

std::pair<std::string, std::string> generation_field(std::uint64_t generation) {
  return {"Shardmat-Generation", std::to_string(generation)};
}

Reply about(Reply reply, const Matrix* matrix) {
  if (matrix != nullptr && matrix->is_loaded()) reply.fields.push_back(generation_field(matrix->generation));
  return reply;
}

}  // namespace shardmat::serve
