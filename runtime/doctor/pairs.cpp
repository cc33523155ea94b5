#include "runtime/doctor/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>

#include "kernels/base/text.h"

namespace shardmat::doctor {
namespace {

constexpr int kMostInMatrix = 8;  // ranks
constexpr double kSlow = 0.2;     // of the median bandwidth
constexpr std::size_t kFewestPairs = 6;
constexpr int kMostRepeats = 3;  // of the measurement of a slow pair

struct Pair {
  int lower, higher;
  Link link;
};

std::vector<Pair> pairs_of(const Gathered& all, const char* check) {
  std::vector<Pair> pairs;
  for (int rank = 0; rank < all.size(); ++rank)
    for (const Json& one : get(all.facts(rank, check), "pairs", Json::array()))
      pairs.push_back({rank, get(one, "rank", 0), {get(one, "latency_s", 0.0), get(one, "bytes_per_s", 0.0)}});
  return pairs;
}

/// Times of ranks that had no cores say nothing about links.
bool had_cores(const Gathered& all, int rank) {
  constexpr double kBusy = 0.25;
  const double online = get(all.facts(rank, "cores"), "online", 1.0);
  const auto host = std::find_if(all.hosts().begin(), all.hosts().end(),
                                 [&](const Gathered::Host& h) { return h.name == all.host(rank); });
  const double busy = get(all.facts(host->ranks.front(), "load"), "busy_cores", 0.0);
  return busy <= kBusy * online && static_cast<double>(host->ranks.size()) <= online;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

/// One line for each rank, with the figure of each pair.
std::string matrix(const Gathered& all, const std::vector<Pair>& pairs,
                   const std::function<std::string(const Link&)>& text) {
  std::string lines;
  for (int row = 0; row < all.size(); ++row) {
    lines += fmt::format("{}{:>4}", row == 0 ? "" : "\n", row);
    for (int column = 0; column < all.size(); ++column) {
      const auto found = std::find_if(pairs.begin(), pairs.end(), [&](const Pair& p) {
        return p.lower == std::min(row, column) && p.higher == std::max(row, column);
      });
      lines += fmt::format("{:>11}", found == pairs.end() || row == column ? "-" : text(found->link));
    }
  }
  return lines;
}

std::string spread(const std::vector<Pair>& pairs, double (*figure)(const Link&), std::string (*text)(double)) {
  std::vector<double> values;
  for (const Pair& pair : pairs) values.push_back(figure(pair.link));
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return fmt::format("{} … {}, median {}", text(*least), text(*most), text(median(values)));
}

std::string rate(double bytes_per_second) { return human_bytes(bytes_per_second) + "/s"; }

double usual_rate(const std::vector<Pair>& pairs) {
  std::vector<double> rates;
  for (const Pair& pair : pairs) rates.push_back(pair.link.bytes_per_second);
  return median(std::move(rates));
}

/// The pairs much slower than most of `pairs`. None of so few pairs that most of them say nothing.
std::vector<Pair> slow_ones(const std::vector<Pair>& pairs) {
  std::vector<Pair> slow;
  if (pairs.size() < kFewestPairs) return slow;
  const double usual = usual_rate(pairs);
  std::copy_if(pairs.begin(), pairs.end(), std::back_inserter(slow),
               [&](const Pair& pair) { return pair.link.bytes_per_second < kSlow * usual; });
  return slow;
}

/// The slow pairs between ranks of one host, and of different hosts, of all pairs that all ranks measured. Collective.
std::vector<Pair> slow_pairs(Communicator& communicator, const std::vector<Pair>& mine) {
  std::vector<Pair> of_one_host, of_two_hosts;
  std::string bytes(mine.size() * sizeof(Pair), '\0');
  if (!mine.empty()) std::memcpy(bytes.data(), mine.data(), bytes.size());
  for (const std::string& text : communicator.all_gather(bytes))
    for (std::size_t at = 0; at < text.size(); at += sizeof(Pair)) {
      Pair pair;
      std::memcpy(&pair, text.data() + at, sizeof(Pair));
      (communicator.host_of(pair.lower) == communicator.host_of(pair.higher) ? of_one_host : of_two_hosts).push_back(pair);
    }
  std::vector<Pair> slow = slow_ones(of_one_host);
  for (const Pair& pair : slow_ones(of_two_hosts)) slow.push_back(pair);
  return slow;
}

}  // namespace

std::vector<std::vector<std::pair<int, int>>> rounds_of_pairs(int ranks) {
  const int seats = ranks + ranks % 2;  // an odd rank out pauses
  std::vector<int> circle(static_cast<std::size_t>(seats));
  std::iota(circle.begin(), circle.end(), 0);
  std::vector<std::vector<std::pair<int, int>>> rounds;
  for (int round = 0; round + 1 < seats; ++round) {
    auto& pairs = rounds.emplace_back();
    for (std::size_t i = 0; i < circle.size() / 2; ++i) {
      const auto [lower, higher] = std::minmax(circle[i], circle[circle.size() - 1 - i]);
      if (higher < ranks) pairs.emplace_back(lower, higher);
    }
    std::rotate(circle.begin() + 1, circle.end() - 1, circle.end());
  }
  return rounds;
}

Json measure_pairs(Communicator& communicator, const Deadline& deadline, bool at_once,
                   const std::function<Link(int partner)>& measure) {
  std::vector<std::vector<std::pair<int, int>>> steps;
  for (auto& round : rounds_of_pairs(communicator.size())) {
    if (at_once) steps.push_back(std::move(round));
    else
      for (const auto& pair : round) steps.push_back({pair});
  }
  const auto is_over = [&] {
    return communicator.all_reduce(static_cast<int>(communicator.rank() == 0 && deadline.is_over()), Reduction::max) != 0;
  };
  std::vector<Pair> mine;
  std::int64_t left_out = 0;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    if (is_over() && step > 0) {
      for (; step < steps.size(); ++step) left_out += std::ssize(steps[step]);
      break;
    }
    for (const auto& [lower, higher] : steps[step]) {
      if (communicator.rank() != lower && communicator.rank() != higher) continue;
      const Link link = measure(communicator.rank() == lower ? higher : lower);
      if (communicator.rank() == lower) mine.push_back({lower, higher, link});
    }
  }
  // Another program may have taken the cores for a moment. A pair is slow if it stays slow.
  for (int repeat = 0; repeat < kMostRepeats; ++repeat) {
    const std::vector<Pair> slow = slow_pairs(communicator, mine);
    if (slow.empty()) break;
    for (const Pair& pair : slow) {
      if (is_over()) break;
      if (communicator.rank() != pair.lower && communicator.rank() != pair.higher) continue;
      const Link link = measure(communicator.rank() == pair.lower ? pair.higher : pair.lower);
      for (Pair& known : mine)
        if (known.lower == pair.lower && known.higher == pair.higher)
          known.link = {std::min(known.link.latency, link.latency),
                        std::max(known.link.bytes_per_second, link.bytes_per_second)};
    }
  }
  Json pairs = Json::array();
  for (const Pair& pair : mine)
    pairs.push_back({{"rank", pair.higher}, {"latency_s", pair.link.latency}, {"bytes_per_s", pair.link.bytes_per_second}});
  return {{"at_once", at_once}, {"pairs", pairs}, {"pairs_left_out", left_out}};
}

void judge_pairs(const Gathered& all, const char* check, Finding of_slow, Findings& findings) {
  const std::vector<Pair> pairs = pairs_of(all, check);
  std::string slow;
  for (const bool same_host : {true, false}) {
    std::vector<Pair> comparable;
    std::copy_if(pairs.begin(), pairs.end(), std::back_inserter(comparable), [&](const Pair& pair) {
      return (all.host(pair.lower) == all.host(pair.higher)) == same_host && had_cores(all, pair.lower) &&
             had_cores(all, pair.higher);
    });
    for (const Pair& pair : slow_ones(comparable))
      slow += fmt::format("{}ranks {} and {} ({} and {}): {} where {} are usual", slow.empty() ? "" : "; ", pair.lower,
                          pair.higher, all.host(pair.lower), all.host(pair.higher), rate(pair.link.bytes_per_second),
                          rate(usual_rate(comparable)));
  }
  if (slow.empty()) return;
  of_slow.what += slow;
  findings.push_back(std::move(of_slow));
}

void show_pairs(const Gathered& all, const char* check, Rows& rows) {
  const std::vector<Pair> pairs = pairs_of(all, check);
  if (pairs.empty()) return;
  const Json& facts = all.facts(0, check);
  if (all.size() <= kMostInMatrix) {
    rows.emplace_back("latency", matrix(all, pairs, [](const Link& link) { return human_seconds(link.latency); }));
    rows.emplace_back("bandwidth", matrix(all, pairs, [](const Link& link) { return rate(link.bytes_per_second); }));
  } else {
    rows.emplace_back("latency", spread(
                                     pairs, [](const Link& link) { return link.latency; }, human_seconds));
    rows.emplace_back("bandwidth", spread(
                                       pairs, [](const Link& link) { return link.bytes_per_second; }, rate));
  }
  rows.emplace_back("measured", get(facts, "at_once", false) ? "several pairs at once" : "one pair at a time");
  if (const auto left_out = get(facts, "pairs_left_out", std::int64_t{0}); left_out > 0)
    rows.emplace_back("left out", fmt::format("{} for lack of time", human_count(left_out, "pair")));
}

}  // namespace shardmat::doctor
