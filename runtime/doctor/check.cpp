#include "runtime/doctor/check.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardmat::doctor {
namespace {

/// "a (ranks 0-2); b (rank 3)"; "a" alone if there is one value.
std::string grouped(const std::vector<std::pair<std::string, int>>& values,
                    const std::function<std::string(const std::vector<int>&)>& who) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (const auto& [value, of] : values) {
    const auto known = std::find_if(groups.begin(), groups.end(), [&v = value](const auto& g) { return g.first == v; });
    if (known == groups.end()) groups.push_back({value, {of}});
    else known->second.push_back(of);
  }
  if (groups.size() == 1) return groups.front().first;
  std::string text;
  for (const auto& [value, of] : groups)
    if (!value.empty()) text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", value, who(of));
  return text;
}

}  // namespace

Gathered::Gathered(std::vector<Rank> ranks) : ranks_(std::move(ranks)) {
  for (int rank = 0; rank < size(); ++rank) {
    const auto known = std::find_if(hosts_.begin(), hosts_.end(), [&](const Host& h) { return h.name == host(rank); });
    if (known == hosts_.end()) hosts_.push_back({host(rank), {rank}});
    else known->ranks.push_back(rank);
  }
}

const Json& Gathered::facts(int rank, const char* check) const {
  static const Json none = Json::object();
  const auto found = facts(rank).find(check);
  return found == facts(rank).end() ? none : *found;
}

int Gathered::local_rank(int rank) const {
  int before = 0;
  for (int r = 0; r < rank; ++r) before += host(r) == host(rank) ? 1 : 0;
  return before;
}

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", list_of_numbers(ranks));
}

std::string by_rank(const Gathered& all, const std::function<std::string(int rank)>& value) {
  std::vector<std::pair<std::string, int>> values;
  for (int rank = 0; rank < all.size(); ++rank) values.emplace_back(value(rank), rank);
  return grouped(values, [&](const std::vector<int>& ranks) {
    const std::string& first = all.host(ranks.front());
    const bool one_host = std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return all.host(rank) == first; });
    return ranks_text(ranks) + (one_host && all.hosts().size() > 1 ? " on " + first : "");
  });
}

std::string by_host(const Gathered& all, const std::function<std::string(int rank)>& value) {
  std::vector<std::pair<std::string, int>> values;
  for (const Gathered::Host& host : all.hosts()) values.emplace_back(value(host.ranks.front()), host.ranks.front());
  return grouped(values, [&](const std::vector<int>& firsts) {
    constexpr std::size_t kMost = 4;
    std::string text;
    for (std::size_t i = 0; i < std::min(firsts.size(), kMost); ++i) text += (i == 0 ? "" : ", ") + all.host(firsts[i]);
    return firsts.size() > kMost ? fmt::format("{} and {} more", text, firsts.size() - kMost) : text;
  });
}

std::string on_host(const Gathered& all, const std::string& host) {
  return all.hosts().size() == 1 ? "" : fmt::format(" on host {}", host);
}

}  // namespace shardmat::doctor
