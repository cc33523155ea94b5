#include "tools/serve/observe/recent_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace shardmat::serve {
namespace {

constexpr double kShortest = 1e-6, kRangesOfTen = 10;

std::int64_t second_of(double now) { return static_cast<std::int64_t>(std::floor(now)); }

}  // namespace

void TimeCounts::add(double seconds) {
  const double range = std::ceil(kRangesOfTen * std::log10(std::max(seconds, kShortest) / kShortest));
  std::uint16_t& count = counts_[static_cast<std::size_t>(std::clamp(range, 0.0, static_cast<double>(kRanges - 1)))];
  if (count < std::numeric_limits<std::uint16_t>::max()) ++count;
}

void TimeCounts::add(const TimeCounts& other) {
  for (std::size_t i = 0; i < kRanges; ++i)
    counts_[i] = static_cast<std::uint16_t>(
        std::min<unsigned>(std::numeric_limits<std::uint16_t>::max(), unsigned{counts_[i]} + other.counts_[i]));
}

std::optional<double> TimeCounts::quantile(double p) const {
  const double all = std::accumulate(counts_.begin(), counts_.end(), 0.0);
  if (all == 0) return std::nullopt;
  double before = 0;
  for (std::size_t i = 0; i < kRanges; ++i) {
    const double here = counts_[i];
    if (here > 0 && before + here >= p * all) {
      const double part = (p * all - before) / here;  // times of a range are taken as spread evenly
      return kShortest * std::pow(10, (static_cast<double>(i) - 1 + std::max(part, 0.0)) / kRangesOfTen);
    }
    before += here;
  }
  return kShortest * std::pow(10, static_cast<double>(kRanges - 1) / kRangesOfTen);
}

void Activity::add(const Activity& other) {
  requests += other.requests, refused += other.refused;
  products += other.products, columns += other.columns;
  waiting += other.waiting;
  product_seconds += other.product_seconds, bytes += other.bytes;
  times.add(other.times);
}

void KindActivity::add(const KindActivity& other) {
  requests += other.requests, refused += other.refused;
  times.add(other.times);
}

/// Null above the limit. Drops what is too old.
template <class What>
What* RecentFigures::at(std::map<std::string, Past<What>>& all, std::size_t most, const std::string& name, double now,
                        std::int64_t step_seconds) {
  const std::int64_t step = second_of(now) / step_seconds, oldest = step - kSeconds / step_seconds;
  const auto drop_old = [&](Past<What>& past) {
    while (!past.empty() && past.front().first <= oldest) past.pop_front();
  };
  auto found = all.find(name);
  if (found == all.end()) {
    if (all.size() >= most)
      std::erase_if(all, [&](const auto& one) { return one.second.empty() || one.second.back().first <= oldest; });
    if (all.size() >= most) return nullptr;
    found = all.emplace(name, Past<What>()).first;
  }
  Past<What>& past = found->second;
  drop_old(past);
  if (past.empty() || past.back().first != step) past.emplace_back(step, What{});
  return &past.back().second;
}

void RecentFigures::add_request(const std::string& matrix, const std::string& kind, bool refused, double seconds,
                                double now) {
  Activity* const here = at(matrices_, kMostMatrices, matrix, now);
  auto* const kinds = at(kinds_, kMostMatrices, matrix, now, kKindSeconds);
  if (here == nullptr || kinds == nullptr) return;
  KindActivity& of_kind = (*kinds)[kind];
  ++(refused ? here->refused : here->requests);
  ++(refused ? of_kind.refused : of_kind.requests);
  if (refused) return;
  here->times.add(seconds);
  of_kind.times.add(seconds);
}

void RecentFigures::add_product(const std::string& matrix, std::int64_t columns, double seconds, double bytes, double now) {
  Activity* here = at(matrices_, kMostMatrices, matrix, now);
  if (here == nullptr) return;
  ++here->products;
  here->columns += static_cast<std::uint64_t>(columns);
  here->product_seconds += seconds, here->bytes += bytes;
}

void RecentFigures::set_waiting(const std::string& matrix, std::uint64_t requests, double now) {
  if (Activity* here = at(matrices_, kMostMatrices, matrix, now)) here->waiting = requests;
}

void RecentFigures::add_client(const std::string& client, double seconds, double now) {
  if (double* here = at(clients_, kMostClients, client, now)) *here += seconds;
}

Activity RecentFigures::over(std::int64_t first, std::int64_t end, const MayUse& may_use) const {
  Activity all;
  for (const auto& [matrix, past] : matrices_)
    if (may_use(matrix)) all.add(over(first, end, matrix));
  return all;
}

Activity RecentFigures::over(std::int64_t first, std::int64_t end, const std::string& matrix) const {
  Activity all;
  const auto found = matrices_.find(matrix);
  if (found == matrices_.end()) return all;
  const auto& past = found->second;
  auto one = std::lower_bound(past.begin(), past.end(), first, [](const auto& a, std::int64_t b) { return a.first < b; });
  for (; one != past.end() && one->first < end; ++one) {
    all.waiting = 0;  // not a sum over time
    all.add(one->second);
  }
  return all;
}

std::map<std::string, KindActivity> RecentFigures::kinds(double now, const MayUse& may_use) const {
  std::map<std::string, KindActivity> all;
  const std::int64_t oldest = (second_of(now) - kSeconds) / kKindSeconds;
  for (const auto& [matrix, past] : kinds_) {
    if (!may_use(matrix)) continue;
    for (const auto& [step, kinds] : past)
      if (step > oldest)
        for (const auto& [kind, activity] : kinds) all[kind].add(activity);
  }
  return all;
}

std::map<std::string, double> RecentFigures::clients(double now) const {
  std::map<std::string, double> all;
  for (const auto& [client, past] : clients_)
    for (const auto& [second, seconds] : past)
      if (second > second_of(now) - kSeconds) all[client] += seconds;
  return all;
}

}  // namespace shardmat::serve
