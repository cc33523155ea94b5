#include "tools/serve/paths/multiply_query.h"

#include <fmt/format.h>

#include <utility>

#include "tools/serve/paths/request_space.h"
#include "tools/serve/paths/value_names.h"
#include "tools/serve/state/generation.h"

namespace shardmat::serve {
namespace {

/// Reads one parameter of the query. Returns what is wrong with it, or nothing.
std::string read_parameter(const std::string& key, const std::string& value, MultiplyQuery& query) {
  if (key == "k") {
    const auto columns = parse_whole(value);
    if (!columns || *columns < 1) return "k must be a whole number from 1 on";
    query.columns = *columns;
  } else if (key == "alpha" || key == "beta") {
    const auto factor = parse_number(value);
    if (!factor) return key + " must be a finite number";
    (key == "alpha" ? query.alpha : query.beta) = *factor;
  } else if (key == "type") {
    query.type = value;
  } else if (key == "x" || key == "y") {
    if (value.empty()) return key + " must be the id of a vector, as vec-1";
    (key == "x" ? query.x : query.y) = value;
  } else if (key == "priority") {
    query.priority = parse_priority(value);
    if (!query.priority) return "priority must be high, normal or low";
  } else {
    return fmt::format("there is no parameter \"{}\"; there are k, alpha, beta, type, x, y and priority", key);
  }
  return {};
}

/// The vector in place of x or y, which must fit the matrix; null if none is named.
std::variant<Problem, const Vector*> find_vector(const std::string& id, bool is_x, const Matrix& matrix,
                                                 const Vectors& vectors) {
  if (id.empty()) return static_cast<const Vector*>(nullptr);
  auto found = vectors.find(id);
  if (auto* problem = std::get_if<Problem>(&found)) return std::move(*problem);
  const Vector* vector = std::get<const Vector*>(found);
  const std::string& name = matrix.wanted.name;
  if (vector->type != matrix.wanted.type)
    return make_problem(422, "wrong_type",
                        fmt::format("{} is of type {}, but {} of type {}", id, type_name(vector->type), name,
                                    type_name(matrix.wanted.type)));
  const service::Loaded& shape = matrix.shape();
  const std::int64_t size = is_x ? shape.cols : shape.rows;
  if (vector->size != size)
    return make_problem(
        422, "wrong_length",
        fmt::format("{} has {} entries, but {} of {} has {}", id, vector->size, is_x ? "x" : "y", name, size));
  if (vector->distribution != (is_x ? shape.x_distribution : shape.y_distribution))
    return make_problem(422, "wrong_distribution",
                        fmt::format("{} is distributed over the ranks in another way than {} of {}; make a vector with "
                                    "{{\"matrix\": \"{}\"{}}}",
                                    id, is_x ? "x" : "y", name, name, is_x ? "" : ", \"layout\": \"rows\""));
  return vector;
}

std::optional<Problem> check_columns(const MultiplyQuery& query, const MultiplyShape& shape, const Vector* x,
                                     const Vector* y) {
  for (const Vector* vector : {x, y})
    if (vector != nullptr && vector->columns != shape.columns)
      return make_problem(
          422, "wrong_columns",
          fmt::format("{} has {} columns, but the product {}", vector->id(), vector->columns, shape.columns));
  if (x != nullptr && x == y)
    return make_problem(422, "same_vector", fmt::format("{} cannot be x and y of one product; name two vectors", query.x));
  if (shape.block || shape.columns <= service::kMostColumns) return std::nullopt;
  return make_problem(422, "too_many_columns", fmt::format("k is at most {}; send several requests", service::kMostColumns));
}

std::string text_of_body(const MultiplyShape& shape, const Matrix& matrix) {
  const auto part = [&](const char* what, std::int64_t size) {
    return fmt::format("{} with {} column{} of {} numbers", what, shape.columns, shape.columns == 1 ? "" : "s", size);
  };
  const std::string x = shape.x_vector == 0 ? part("x", matrix.shape().cols) : "",
                    y = shape.adds_y_of_body ? part("y", matrix.shape().rows) : "";
  if (x.empty() && y.empty()) return "vectors take its place";
  return fmt::format("{}{}{} of type {}", x, !x.empty() && !y.empty() ? ", then " : "", y, type_name(matrix.wanted.type));
}

}  // namespace

std::variant<Problem, MultiplyQuery> read_multiply_query(const RequestHead& head, const Target& target) {
  MultiplyQuery query;
  for (const auto& [key, value] : target.query)
    if (std::string wrong = read_parameter(key, value, query); !wrong.empty())
      return make_problem(400, "malformed", std::move(wrong));
  if (const std::string& text = head.field("Shardmat-Deadline-Ms"); !text.empty()) {
    const auto milliseconds = parse_number(text);
    if (!milliseconds || *milliseconds <= 0)
      return make_problem(400, "malformed", "Shardmat-Deadline-Ms must be a number above 0");
    query.deadline_seconds = *milliseconds / 1000;
  }
  auto priority = wanted_priority(head);
  if (auto* problem = std::get_if<Problem>(&priority)) return std::move(*problem);
  if (!query.priority) query.priority = std::get<0>(priority);
  auto generation = wanted_generation(head);
  if (auto* problem = std::get_if<Problem>(&generation)) return std::move(*problem);
  query.generation = std::get<0>(generation);
  if (auto problem = check_content_type(head)) return std::move(*problem);
  return query;
}

std::variant<Problem, MultiplyShape> shape_of(const MultiplyQuery& query, const Matrix& matrix, const Vectors& vectors,
                                              std::uint64_t content_length) {
  if (auto problem = check_type(query.type, matrix.wanted.type, matrix.wanted.name)) return std::move(*problem);
  const auto x_found = find_vector(query.x, true, matrix, vectors), y_found = find_vector(query.y, false, matrix, vectors);
  for (const auto* found : {&x_found, &y_found})
    if (const auto* problem = std::get_if<Problem>(found)) return *problem;
  const Vector *x = std::get<const Vector*>(x_found), *y = std::get<const Vector*>(y_found);
  const std::uint64_t entry = size_of(matrix.wanted.type);
  MultiplyShape shape;
  shape.columns = query.columns.value_or(x != nullptr ? x->columns : y != nullptr ? y->columns : 1);
  shape.x_bytes = static_cast<std::uint64_t>(matrix.shape().cols) * entry;
  shape.y_bytes = static_cast<std::uint64_t>(matrix.shape().rows) * entry;
  if (x != nullptr) shape.x_vector = x->number;
  if (y != nullptr) shape.y_vector = y->number;
  shape.block = shape.columns > 1 && (x != nullptr || y != nullptr);
  shape.adds_y_of_body = query.beta != 0 && y == nullptr;
  if (auto problem = check_columns(query, shape, x, y)) return std::move(*problem);
  if (content_length == shape.body_bytes()) return shape;
  return make_problem(422, "wrong_length",
                      fmt::format("the body has {} bytes, but this product of {} takes {}: {}", content_length,
                                  matrix.wanted.name, shape.body_bytes(), text_of_body(shape, matrix)));
}

}  // namespace shardmat::serve
