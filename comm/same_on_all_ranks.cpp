#include "comm/same_on_all_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace shardmat {
namespace {

std::string packed(const std::vector<Given>& given) {
  std::string text;
  for (const Given& one : given)
    for (const std::string* part : {&one.name, &one.value, &one.file}) text += fmt::format("{}:{}", part->size(), *part);
  return text;
}

std::vector<Given> unpacked(const std::string& text) {
  std::size_t at = 0;
  const auto part = [&] {
    const std::size_t colon = text.find(':', at);
    const std::size_t length = std::stoul(text.substr(at, colon - at));
    at = colon + 1 + length;
    return text.substr(colon + 1, length);
  };
  std::vector<Given> given;
  while (at < text.size()) {
    Given& one = given.emplace_back();
    one.name = part();
    one.value = part();
    one.file = part();
  }
  return given;
}

const Given* find(const std::vector<Given>& given, const std::string& name) {
  const auto found = std::find_if(given.begin(), given.end(), [&](const Given& one) { return one.name == name; });
  return found == given.end() ? nullptr : &*found;
}

/// "--x is b.npy", "there is no --x".
std::string told(const Given* one, const std::string& name) {
  return one == nullptr ? "there is no " + name : fmt::format("{} is {}", name, one->value.empty() ? "\"\"" : one->value);
}

void compare(const std::vector<Given>& here, const std::vector<Given>& there) {
  const auto differ = [&](const std::string& name) {
    throw Error(ErrorKind::usage, fmt::format("on this rank {}, but on rank 0 {}. Give all ranks the same",
                                              told(find(here, name), name), told(find(there, name), name)));
  };
  for (const Given& other : there) {
    const Given* const own = find(here, other.name);
    if (own == nullptr || own->value != other.value) differ(other.name);
    if (!own->file.empty() && !other.file.empty() && own->file != other.file)
      throw Error(
          ErrorKind::usage,
          fmt::format("{} names different files: {} has {} on this rank and {} on rank 0. Give all ranks the same file",
                      own->name, own->value, own->file, other.file));
  }
  for (const Given& own : here)
    if (find(there, own.name) == nullptr) differ(own.name);
}

}  // namespace

Given given_number(const char* name, double number) { return {name, fmt::format("{:.17g}", number), {}}; }

void require_same_on_all_ranks(Communicator& ranks, const std::vector<Given>& given) {
  if (ranks.size() == 1) return;
  const std::vector<Given> of_first = unpacked(ranks.broadcast(packed(given)));
  ranks.run_agreed([&] { compare(given, of_first); });
}

}  // namespace shardmat
