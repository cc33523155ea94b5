// Right-hand sides, guesses and solutions in files of Harwell-Boeing and Rutherford-Boeing. A vector is read as a whole when
// it is opened.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "partition/readers/harwell_boeing.h"
#include "partition/vectors/vector_file.h"
#include "partition/vectors/vector_formats.h"

namespace shardmat {
namespace {

using harwell_boeing::VectorList;
using harwell_boeing::Vectors;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", path.string(), what));
}

/// Which vectors are read: `columns` of them from number `first` on.
struct Choice {
  const Vectors& vectors;
  std::int64_t first = 0;
};

std::vector<std::string> names_of(const VectorList& list) {
  std::vector<std::string> names;
  for (const Vectors& vectors : list.kinds)
    names.push_back(vectors.count == 1 ? vectors.name
                                       : fmt::format("{}1 to {}{}", vectors.name, vectors.name, vectors.count));
  return names;
}

/// The kind that a role takes if a file has several; the only kind of others.
std::string kind_for(const VectorList& list, const std::string& role, const std::filesystem::path& path) {
  if (list.kinds.size() == 1) return list.kinds.front().name;
  const std::string kind = role == "b" ? "rhs" : role == "x0" ? "guess" : "";
  for (const Vectors& vectors : list.kinds)
    if (vectors.name == kind) return kind;
  fail(path, fmt::format("it has vectors of several kinds; name one, as {}:{}: {}", path.string(), names_of(list).front(),
                         join_choices(names_of(list))));
}

/// `wanted`: "rhs" or "rhs2"; a role if no object is named.
Choice choose(const VectorList& list, const VectorChoice& wanted, std::int64_t& columns, const std::filesystem::path& path) {
  if (!list.refused.empty()) fail(path, list.refused);
  if (list.kinds.empty()) fail(path, "it holds a matrix, and no right-hand side or other vector");
  const std::string object = wanted.object.empty() ? kind_for(list, wanted.role, path) : wanted.object;
  const std::size_t digits = object.find_last_not_of("0123456789") + 1;  // npos + 1 is 0
  const std::string name = object.substr(0, digits);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(object.data() + digits, object.data() + object.size(), number);
  const bool numbered = digits < object.size();
  const auto found =
      std::find_if(list.kinds.begin(), list.kinds.end(), [&](const Vectors& vectors) { return vectors.name == name; });
  if (found == list.kinds.end() || (numbered && (error != std::errc{} || number < 1 || number > found->count)))
    fail(path, fmt::format("there is no vector {} in it; it has {}", object, join_choices(names_of(list))));
  if (columns == VectorFile::kAsStored) columns = numbered ? 1 : found->count;
  if (numbered && columns == 1) return {*found, number - 1};
  if (numbered) fail(path, fmt::format("{} is one vector; {} columns are needed", object, columns));
  if (found->count == columns) return {*found};
  if (columns == 1)
    fail(path, fmt::format("it has {} vectors {}; name one of {}1 to {}{}", found->count, found->name, found->name,
                           found->name, found->count));
  fail(path, fmt::format("it has {} vector{} {}; {} columns are needed", found->count, found->count == 1 ? "" : "s",
                         found->name, columns));
}

}  // namespace

bool accepts_harwell_boeing_vector(const std::filesystem::path& path) {
  return harwell_boeing::is_matrix_file(path) || harwell_boeing::is_auxiliary_file(path);
}

VectorContents open_harwell_boeing_vector(const std::filesystem::path& path, const VectorChoice& wanted,
                                          std::int64_t columns) {
  const auto source = TextSource::open(path, {});
  const VectorList list = harwell_boeing::vectors_of(*source);
  const Choice choice = choose(list, wanted, columns, path);
  ReadLimits{}.require_memory(8 * list.rows * columns, path);
  LineCursor lines(*source);
  for (std::int64_t i = 0; i < choice.vectors.line; ++i)
    if (lines.next().empty()) lines.fail("the file ends before its vectors; it is truncated, copy it again");
  harwell_boeing::FieldCursor fields(lines, list.fields, list.rows * choice.vectors.count, "value of a vector");
  for (std::int64_t i = 0; i < choice.first * list.rows; ++i) fields.next();
  auto values = std::make_shared<HostVector<double>>(static_cast<std::size_t>(list.rows * columns));
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < list.rows; ++i)
      (*values)[static_cast<std::size_t>(i * columns + j)] = harwell_boeing::real(fields.next(), list.fields, true, lines);
  harwell_boeing::require_lines(lines, list.file_lines);
  source->file().require_unchanged();
  return {list.rows, columns, [values, columns](std::int64_t begin, std::int64_t end) {
            return HostVector<double>(values->begin() + begin * columns, values->begin() + end * columns);
          }};
}

}  // namespace shardmat
