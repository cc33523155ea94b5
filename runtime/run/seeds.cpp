#include "runtime/run/seeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>

#include "kernels/base/error.h"
#include "partition/files/missing_file.h"
#include "partition/vectors/vector_file.h"

namespace shardmat {
namespace {

/// Every character is a digit, a sign, a comma or a space.
bool is_list(const std::string& text) { return text.find_first_not_of("0123456789,-+ ") == std::string::npos; }

bool is_vector_file(const std::string& text) {
  const std::string suffix = vector_file_name(text).extension().string();
  return suffix == ".npy" || suffix == ".h5" || suffix == ".hdf5" || suffix == ".mtx";
}

std::int64_t to_vertex(std::string_view word, ErrorKind kind, const std::string& place) {
  std::int64_t vertex = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), vertex);
  if (word.empty() || error != std::errc() || end != word.data() + word.size())
    throw Error(kind, fmt::format("{}\"{}\" is not the number of a vertex; write seeds as 3,17,42", place, word), "seeds");
  return vertex;
}

std::vector<std::int64_t> parse_list(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  std::vector<std::int64_t> vertices;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    vertices.push_back(to_vertex(std::string_view(text).substr(begin, end - begin), ErrorKind::usage, ""));
    begin = end + 1;
  }
  return vertices;
}

std::vector<std::int64_t> read_list(const std::string& path) {
  if (!std::filesystem::exists(path)) fail_missing(path);
  std::ifstream file(path);
  std::vector<std::int64_t> vertices;
  std::string line;
  for (std::int64_t number = 1; std::getline(file, line); ++number) {
    line.resize(std::min(line.find('#'), line.size()));
    constexpr std::string_view kBetween = ", \t\r";
    for (std::size_t begin = line.find_first_not_of(kBetween); begin != std::string::npos;
         begin = line.find_first_not_of(kBetween, begin)) {
      const std::size_t end = std::min(line.find_first_of(kBetween, begin), line.size());
      vertices.push_back(to_vertex(std::string_view(line).substr(begin, end - begin), ErrorKind::input,
                                   fmt::format("{}, line {}: ", path, number)));
      begin = end;
    }
  }
  if (file.bad() || (vertices.empty() && !file.eof()))
    throw Error(ErrorKind::input, fmt::format("{} cannot be read; give a text file with a vertex on each line", path),
                "seeds");
  if (vertices.empty())
    throw Error(ErrorKind::input, fmt::format("{} lists no vertices; leave seeds out for a uniform restart", path), "seeds");
  return vertices;
}

}  // namespace

Seeds read_seeds(const std::string& text, Communicator& ranks) {
  Seeds seeds;
  if (text.empty()) return seeds;
  if (!is_list(text) && is_vector_file(text)) {
    seeds.weights = text;
    return seeds;
  }
  ranks.run_agreed([&] {
    if (ranks.rank() == 0) seeds.vertices = is_list(text) ? parse_list(text) : read_list(text);
  });
  std::int64_t count = std::ssize(seeds.vertices);
  ranks.broadcast(std::span<std::int64_t>(&count, 1));
  seeds.vertices.resize(static_cast<std::size_t>(count));
  ranks.broadcast(std::span<std::int64_t>(seeds.vertices));
  return seeds;
}

void require_vertices(const Seeds& seeds, const std::string& text, const std::string& graph, std::int64_t count) {
  for (std::size_t j = 0; j < seeds.vertices.size(); ++j) {
    const std::int64_t vertex = seeds.vertices[j];
    if (vertex >= 0 && vertex < count) continue;
    const std::string known = count == 0 ? "has no vertices" : fmt::format("has the vertices 0 … {}", count - 1);
    throw Error(is_list(text) ? ErrorKind::usage : ErrorKind::input,
                fmt::format("{}seed {} is vertex {}, but {} {}; give seeds that are in the graph",
                            is_list(text) ? "" : text + ": ", j, vertex, graph, known),
                "seeds");
  }
}

}  // namespace shardmat
