#include "tools/serve/handlers/batch_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "tools/serve/handlers/request_space.h"
#include "tools/serve/words/value_names.h"

namespace shardmat::serve {
namespace {

struct Size {
  const char* name;
  std::int64_t BatchShape::*size;
  std::int64_t least, most;
};

constexpr Size kSizes[] = {{"count", &BatchShape::count, 1, BatchShape::kMost},
                           {"rows", &BatchShape::rows, 1, BatchShape::kMost},
                           {"cols", &BatchShape::cols, 1, BatchShape::kMost},
                           {"nnz", &BatchShape::nnz, 0, BatchShape::kMost},
                           {"k", &BatchShape::columns, 1, BatchShape::kMostColumns}};

std::string read_batch_parameter(const std::string& key, const std::string& value, BatchQuery& query) {
  const auto size = std::find_if(std::begin(kSizes), std::end(kSizes), [&](const Size& one) { return key == one.name; });
  if (size != std::end(kSizes)) {
    const auto number = parse_whole(value);
    if (!number || *number < size->least || *number > size->most)
      return fmt::format("{} must be a whole number from {} to {}", key, size->least, size->most);
    query.shape.*(size->size) = *number;
  } else if (key == "type") {
    const auto type = parse_type(value);
    if (!type) return "type must be f64 or f32";
    query.shape.type = *type;
  } else if (key == "alone") {
    return read_flag(key, value, query.alone);
  } else if (key == "priority") {
    query.priority = parse_priority(value);
    if (!query.priority) return "priority must be high, normal or low";
  } else {
    return fmt::format(
        "there is no parameter \"{}\" of batches; there are count, rows, cols, nnz, k, type, alone and priority", key);
  }
  return {};
}

}  // namespace

std::variant<Problem, BatchQuery> read_batch_query(const RequestHead& head, const Target& target) {
  BatchQuery query;
  for (const auto& [key, value] : target.query)
    if (std::string wrong = read_batch_parameter(key, value, query); !wrong.empty())
      return make_problem(400, "malformed", std::move(wrong));
  for (const char* needed : {"count", "rows", "cols", "nnz"})
    if (!target.query.contains(needed))
      return make_problem(
          400, "malformed",
          fmt::format("{} is missing: say count, rows, cols and nnz, each of all matrices together", needed));
  if (auto problem = take_fields(head, query.deadline_seconds, query.priority)) return std::move(*problem);
  if (auto problem = check_content_type(head)) return std::move(*problem);
  const BatchShape& shape = query.shape;
  if (head.content_length == shape.bytes()) return query;
  return make_problem(
      422, "wrong_length",
      fmt::format("the body has {} bytes, but this batch takes {}: first_row and first_column with {} and row_ptr with {} "
                  "numbers of 8 bytes, {} values and X of {} × {} of type {}, and {} columns of 4 bytes",
                  head.content_length, shape.bytes(), shape.count + 1, shape.rows + 1, shape.nnz, shape.cols, shape.columns,
                  type_name(shape.type), shape.nnz));
}

}  // namespace shardmat::serve
