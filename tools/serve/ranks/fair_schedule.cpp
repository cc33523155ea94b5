#include "tools/serve/ranks/fair_schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace shardmat::serve {
namespace {

using Heads = std::vector<RequestQueue::Head>;

/// Those of the highest level there is, the oldest first.
Heads most_urgent(Heads heads) {
  int level = kLevels;
  for (const auto& head : heads) level = std::min(level, head.level);
  std::erase_if(heads, [&](const auto& head) { return head.level > level; });
  std::sort(heads.begin(), heads.end(), [](const auto& a, const auto& b) { return a.request->id < b.request->id; });
  return heads;
}

std::vector<const Client*> clients_of(const Heads& heads) {
  std::vector<const Client*> clients;
  for (const auto& head : heads) clients.push_back(&head.request->client);
  return clients;
}

}  // namespace

std::optional<FairSchedule::Next> FairSchedule::next(std::span<const RequestQueue* const> queues, double now,
                                                     const MayBegin& may_begin) {
  Heads heads;
  std::map<std::uint64_t, std::size_t> places;  // queues of the requests
  for (std::size_t i = 0; i < queues.size(); ++i)
    for (const auto& head : queues[i]->heads(now, may_begin)) heads.push_back(head), places[head.request->id] = i;
  if (heads.empty()) return std::nullopt;
  const Heads urgent = most_urgent(std::move(heads));
  FairShares& shares = shares_[static_cast<std::size_t>(urgent.front().level)];
  const std::uint64_t first = urgent[shares.next(clients_of(urgent))].request->id;
  return Next{places.at(first), first};
}

RequestQueue::Head FairSchedule::first_of(const Heads& heads) const {
  const Heads urgent = most_urgent(heads);
  return urgent[shares_[static_cast<std::size_t>(urgent.front().level)].least(clients_of(urgent))];
}

void FairSchedule::take(RequestQueue& queue, const RequestQueue::Head& head, double seconds, Batch& batch) {
  const WaitingRequest& request = *head.request;
  shares_[static_cast<std::size_t>(head.level)].charge(request.client, seconds);
  batch.requests.push_back(request.id);
  batch.charges.push_back({request.client, head.level, static_cast<double>(request.columns), seconds});
  batch.columns += request.columns;
  queue.pop(request);
}

/// Adds requests of this level or above until the batch has so many columns. Nobody passes another one in its lane.
void FairSchedule::fill(RequestQueue& queue, int level, std::int64_t columns, double seconds_of_column, double now,
                        const MayBegin& may_begin, Batch& batch) {
  std::set<std::uint64_t> too_wide;
  while (batch.columns < columns) {
    Heads heads = queue.heads(now, may_begin);
    std::erase_if(heads, [&](const auto& head) {
      return head.request->alone || head.level > level || too_wide.contains(head.request->id);
    });
    if (heads.empty()) return;
    const RequestQueue::Head head = first_of(heads);
    const std::int64_t more = head.request->columns;
    if (batch.columns + more > columns) too_wide.insert(head.request->id);
    else take(queue, head, seconds_of_column * static_cast<double>(more), batch);
  }
}

FairSchedule::Batch FairSchedule::take(RequestQueue& queue, const WidthTable& table, double now, const MayBegin& may_begin) {
  Batch batch;
  batch.expired = queue.take_expired(now);
  const Heads heads = queue.heads(now, may_begin);
  if (heads.empty()) return batch;
  const RequestQueue::Head first = first_of(heads);
  const std::int64_t columns = first.request->columns;
  if (first.request->alone) {
    take(queue, first, table.seconds_for(columns), batch);
    batch.width = columns;
  } else {
    const int lowest = static_cast<int>(first.request->priority);  // its level when it came; now it may be higher
    const std::int64_t most = table.columns_of_next(queue.columns(lowest, now, table.widest()), columns);
    const double seconds_of_column = table.for_columns(most).seconds / static_cast<double>(most);
    fill(queue, lowest, most, seconds_of_column, now, may_begin, batch);
    batch.width = table.for_columns(batch.columns).width;
    if (table.merging() == Merging::on) fill(queue, kLevels, batch.width, seconds_of_column, now, may_begin, batch);
  }
  queue.close_product(now);
  return batch;
}

void FairSchedule::settle(std::span<const Charge> charges, double seconds) {
  double columns = 0;
  for (const Charge& charge : charges) columns += charge.columns;
  for (const Charge& charge : charges)
    shares_[static_cast<std::size_t>(charge.level)].charge(charge.client,
                                                           seconds * charge.columns / columns - charge.seconds);
}

}  // namespace shardmat::serve
