#include "tools/serve/handlers/multiply_query.h"

#include <fmt/format.h>

#include <utility>

#include "tools/serve/handlers/client_place.h"
#include "tools/serve/handlers/request_space.h"
#include "tools/serve/ranks/generation.h"
#include "tools/serve/words/value_names.h"

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
  } else if (key == "transpose") {
    return read_flag(key, value, query.transpose);
  } else if (key == "type") {
    query.type = value;
  } else if (key == "x" || key == "y") {
    if (value.empty()) return key + " must be the id of a vector, as POST /v1/vectors gives it";
    (key == "x" ? query.x : query.y) = value;
  } else if (key == "x_at" || key == "y_at") {
    const auto place = parse_place(value);
    if (!place) return key + " must be a whole number from 0 on: bytes from the start of the memory";
    (key == "x_at" ? query.x_at : query.y_at) = place;
  } else if (key == "priority") {
    query.priority = parse_priority(value);
    if (!query.priority) return "priority must be high, normal or low";
  } else {
    return fmt::format(
        "there is no parameter \"{}\"; there are k, alpha, beta, transpose, type, x, y, x_at, y_at and priority", key);
  }
  return {};
}

/// The vector in place of x or y, which must fit the matrix; null if none is named.
std::variant<Problem, const Vector*> find_vector(const std::string& id, bool is_x, bool transpose, const Matrix& matrix,
                                                 const Vectors& vectors, const Rights& rights) {
  if (id.empty()) return static_cast<const Vector*>(nullptr);
  auto found = vectors.find(id, rights);
  if (auto* problem = std::get_if<Problem>(&found)) return std::move(*problem);
  const Vector* vector = std::get<const Vector*>(found);
  const std::string& name = matrix.wanted.name;
  if (vector->type != matrix.wanted.type)
    return make_problem(422, "wrong_type",
                        fmt::format("{} is of type {}, but {} of type {}", id, type_name(vector->type), name,
                                    type_name(matrix.wanted.type)));
  const service::Loaded& shape = matrix.shape();
  const bool by_columns = is_x != transpose;
  const std::int64_t size = by_columns ? shape.cols : shape.rows;
  if (vector->size != size)
    return make_problem(422, "wrong_length",
                        fmt::format("{} has {} entries, but {} of {}{} has {}", id, vector->size, is_x ? "x" : "y",
                                    transpose ? "the transpose of " : "", name, size));
  const std::uint64_t row_map = by_columns ? shape.x_distribution : shape.y_distribution;
  if (vector->distribution != row_map)
    return make_problem(
        422, "wrong_distribution",
        fmt::format("{} lies on row map {:016x} ({} entries, {}), but {} of {} on row map {:016x} ({} "
                    "entries): its entries lie on other ranks or in another order; make a vector with "
                    "{{\"matrix\": \"{}\"{}}}",
                    id, vector->distribution, vector->size,
                    vector->matrix.empty() ? "in equal parts" : "made for " + vector->matrix, by_columns ? "x" : "y", name,
                    row_map, size, name, by_columns ? "" : ", \"layout\": \"rows\""));
  return vector;
}

std::optional<Problem> check_columns(const MultiplyQuery& query, const MultiplyShape& shape, const Vector* x,
                                     const Vector* y) {
  for (const Vector* vector : {x, y})
    if (vector != nullptr && vector->columns != shape.columns)
      return make_problem(422, "wrong_columns",
                          fmt::format("{} has {} columns, but the product {}", vector->id, vector->columns, shape.columns));
  if (x != nullptr && x == y)
    return make_problem(422, "same_vector", fmt::format("{} cannot be x and y of one product; name two vectors", query.x));
  if (shape.block || shape.columns <= service::kMostColumns) return std::nullopt;
  return make_problem(422, "too_many_columns", fmt::format("k is at most {}; send several requests", service::kMostColumns));
}

std::string text_of_body(const MultiplyShape& shape, const Matrix& matrix) {
  const std::uint64_t entry = size_of(matrix.wanted.type);
  const auto part = [&](const char* what, std::uint64_t size) {
    return fmt::format("{} with {} column{} of {} numbers", what, shape.columns, shape.columns == 1 ? "" : "s", size);
  };
  const std::string x = shape.x_vector == 0 && !shape.x_in_memory ? part("x", shape.x_bytes / entry) : "",
                    y = shape.adds_y_of_body ? part("y", shape.y_bytes / entry) : "";
  if (x.empty() && y.empty()) return "vectors or the client's memory take its place";
  return fmt::format("{}{}{} of type {}", x, !x.empty() && !y.empty() ? ", then " : "", y, type_name(matrix.wanted.type));
}

Problem not_transposable(const Matrix& matrix) {
  const service::Loaded& shape = matrix.shape();
  return make_problem(
      409, "not_transposable",
      fmt::format("products with the transpose of {} need rows in host memory, which were dropped; {}", matrix.wanted.name,
                  shape.rows == shape.cols
                      ? "load it with \"solvable\": true, which keeps them"
                      : fmt::format("the service keeps them of square matrices alone, and this one is {} × {}", shape.rows,
                                    shape.cols)));
}

}  // namespace

std::variant<Problem, MultiplyQuery> read_multiply_query(const RequestHead& head, const Target& target) {
  MultiplyQuery query;
  for (const auto& [key, value] : target.query)
    if (std::string wrong = read_parameter(key, value, query); !wrong.empty())
      return make_problem(400, "malformed", std::move(wrong));
  if ((query.x_at && !query.x.empty()) || (query.y_at && !query.y.empty()))
    return make_problem(400, "malformed", "x and x_at are one thing too much, as are y and y_at");
  if (auto problem = take_fields(head, query.deadline_seconds, query.priority)) return std::move(*problem);
  auto generation = wanted_generation(head);
  if (auto* problem = std::get_if<Problem>(&generation)) return std::move(*problem);
  query.generation = std::get<0>(generation);
  if (auto problem = check_content_type(head)) return std::move(*problem);
  return query;
}

std::variant<Problem, MultiplyShape> shape_of(const MultiplyQuery& query, const Matrix& matrix, const Vectors& vectors,
                                              const Rights& rights, std::uint64_t content_length) {
  if (auto problem = check_type(query.type, matrix.wanted.type, matrix.wanted.name)) return std::move(*problem);
  const auto x_found = find_vector(query.x, true, query.transpose, matrix, vectors, rights),
             y_found = find_vector(query.y, false, query.transpose, matrix, vectors, rights);
  for (const auto* found : {&x_found, &y_found})
    if (const auto* problem = std::get_if<Problem>(found)) return *problem;
  const Vector *x = std::get<const Vector*>(x_found), *y = std::get<const Vector*>(y_found);
  if (query.transpose && !matrix.shape().transposable) return not_transposable(matrix);
  const std::uint64_t entry = size_of(matrix.wanted.type);
  MultiplyShape shape;
  shape.columns = query.columns.value_or(x != nullptr ? x->columns : y != nullptr ? y->columns : 1);
  shape.x_bytes = static_cast<std::uint64_t>(matrix.shape().cols) * entry;
  shape.y_bytes = static_cast<std::uint64_t>(matrix.shape().rows) * entry;
  if (query.transpose) std::swap(shape.x_bytes, shape.y_bytes);
  if (x != nullptr) shape.x_vector = x->number;
  if (y != nullptr) shape.y_vector = y->number;
  shape.block = shape.columns > 1 && (x != nullptr || y != nullptr);
  shape.x_in_memory = query.x_at.has_value(), shape.y_in_memory = query.y_at.has_value();
  shape.adds_y_of_body = query.beta != 0 && y == nullptr && !shape.y_in_memory;
  if (auto problem = check_columns(query, shape, x, y)) return std::move(*problem);
  if (content_length == shape.body_bytes()) return shape;
  return make_problem(422, "wrong_length",
                      fmt::format("the body has {} bytes, but this product of {} takes {}: {}", content_length,
                                  matrix.wanted.name, shape.body_bytes(), text_of_body(shape, matrix)));
}

std::optional<Problem> check_places(const MultiplyQuery& query, const MultiplyShape& shape, std::uint64_t entry,
                                    std::uint64_t memory_bytes) {
  const auto columns = static_cast<std::uint64_t>(shape.columns);
  const std::uint64_t x_bytes = columns * shape.x_bytes, y_bytes = columns * shape.y_bytes;
  const auto check = [&](const char* key, std::uint64_t at, std::uint64_t bytes) {
    return check_place(key, at, bytes, entry, memory_bytes);
  };
  if (query.x_at)
    if (auto problem = check("x_at", *query.x_at, x_bytes)) return problem;
  if (query.y_at)
    if (auto problem = check("y_at", *query.y_at, y_bytes)) return problem;
  if (query.x_at && query.y_at && *query.x_at < *query.y_at + y_bytes && *query.y_at < *query.x_at + x_bytes)
    return make_problem(422, "overlap", "x and y overlap in the memory; y is written while x may still be read");
  return std::nullopt;
}

}  // namespace shardmat::serve
