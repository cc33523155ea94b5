// Who is next: shares of the ranks' time by weights, priorities, and waiting that comes to an end. The clock is simulated.
#include "tools/serve/ranks/fair_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace shardmat::serve {
namespace {

bool all(std::uint64_t) { return true; }

TEST(FairShares, TimeIsSharedByWeights) {
  FairShares shares;
  const Client a{"a", 1}, b{"b", 3};
  const std::vector<const Client*> both{&a, &b};
  std::map<std::string, double> had;
  for (int turn = 0; turn < 4000; ++turn) {
    const Client& next = *both[shares.next(both)];
    const double seconds = &next == &a ? 0.02 : 0.001;
    shares.charge(next, seconds), had[next.name] += seconds;
  }
  EXPECT_NEAR(had["b"] / had["a"], 3, 0.1);
}

TEST(FairShares, APauseGivesNoCreditAndTakesNoDebtAway) {
  FairShares shares;
  const Client a{"a", 1}, b{"b", 1};
  const std::vector<const Client*> only_a{&a}, both{&a, &b};
  for (int turn = 0; turn < 100; ++turn) shares.next(only_a), shares.charge(a, 1);
  EXPECT_EQ(shares.next(both), 1u);  // b did not ask before
  shares.charge(b, 10);
  int turns_of_a = 0;
  for (; turns_of_a < 5; ++turns_of_a) shares.next(only_a), shares.charge(a, 1);
  for (; shares.next(both) == 0; ++turns_of_a) shares.charge(a, 1);
  EXPECT_NEAR(turns_of_a, 10, 1);
}

/// Tenants that each have some requests under way all the time; each asks for columns of one matrix.
struct Tenant {
  Client client;
  std::size_t matrix = 0;
  int connections = 1;
  Priority priority = Priority::normal;
};

struct Simulated {
  std::map<std::string, double> seconds, longest;  ///< by client: of the engine, and of a request's waiting
};

Simulated simulate(const std::vector<WidthTable>& tables, const std::vector<Tenant>& tenants, double until) {
  FairSchedule schedule;
  std::vector<RequestQueue> queues(tables.size());
  std::vector<const RequestQueue*> list;
  for (const RequestQueue& queue : queues) list.push_back(&queue);
  struct Asked {
    const Tenant* tenant;
    double time;
  };
  std::map<std::uint64_t, Asked> asked;
  std::uint64_t last = 0;
  double now = 0;
  const auto ask = [&](const Tenant& tenant) {
    WaitingRequest request{++last, 1, now};
    request.client = tenant.client, request.priority = tenant.priority;
    queues[tenant.matrix].add(request);
    asked[last] = {&tenant, now};
  };
  for (const Tenant& tenant : tenants)
    for (int i = 0; i < tenant.connections; ++i) ask(tenant);
  Simulated result;
  while (now < until) {
    const auto next = schedule.next(list, now, all);
    const WidthTable& table = tables[next->queue];
    const auto batch = schedule.take(queues[next->queue], table, now, all);
    EXPECT_NE(std::find(batch.requests.begin(), batch.requests.end(), next->request), batch.requests.end());
    const double seconds = 1.1 * table.for_columns(batch.columns).seconds;  // slower than it was measured
    for (const std::uint64_t request : batch.requests) {
      double& longest = result.longest[asked.at(request).tenant->client.name];
      longest = std::max(longest, now - asked.at(request).time);
      result.seconds[asked.at(request).tenant->client.name] += seconds / static_cast<double>(batch.columns);
    }
    now += seconds;
    schedule.settle(batch.charges, seconds);
    for (const std::uint64_t request : batch.requests) {
      const Tenant& tenant = *asked.at(request).tenant;
      asked.erase(request);
      ask(tenant);
    }
  }
  return result;
}

const std::vector<WidthTable> kCheapAndDear{
    WidthTable({{1, 1e-3}, {2, 1.2e-3}, {4, 1.5e-3}, {8, 2e-3}, {16, 3e-3}, {32, 5e-3}}), WidthTable({{1, 20e-3}})};

TEST(FairSchedule, CostsAndConnectionsDoNotChangeTheShares) {
  for (const double weight : {1.0, 3.0}) {
    const Simulated run = simulate(kCheapAndDear, {{{"many", 1}, 0, 64}, {{"one", weight}, 1, 1}}, 20);
    EXPECT_NEAR(run.seconds.at("one") / run.seconds.at("many"), weight, 0.1 * weight);
  }
  const Simulated run = simulate(kCheapAndDear, {{{"many", 1}, 1, 64}, {{"one", 1}, 0, 1}}, 20);
  EXPECT_LT(run.longest.at("one"), 2 * 1.1 * 20e-3);  // at most one product of the other, and what it is behind
  EXPECT_EQ(run.seconds.size(), 2u);
}

TEST(FairSchedule, RequestsOfSeveralClientsShareAProduct) {
  FairSchedule schedule;
  RequestQueue queue;
  for (std::uint64_t id = 1; id <= 40; ++id) queue.add({id, 1, 0, 1e9, false, {"many", 1}});
  for (std::uint64_t id = 41; id <= 44; ++id) queue.add({id, 1, 0, 1e9, false, {"few", 1}});
  const auto batch = schedule.take(queue, kCheapAndDear[0], 0, all);
  EXPECT_EQ(batch.columns, 32);
  EXPECT_EQ(std::count_if(batch.requests.begin(), batch.requests.end(), [](auto id) { return id > 40; }), 4);
  double charged = 0;
  for (const auto& charge : batch.charges) charged += charge.seconds;
  EXPECT_NEAR(charged, 5e-3, 1e-9);
}

TEST(FairSchedule, UrgentOnesGoFirstAndOthersTakeOnlyPadding) {
  FairSchedule schedule;
  RequestQueue queue;
  for (std::uint64_t id = 1; id <= 40; ++id) queue.add({id, 1, 0, 1e9, false, {"a", 1}, Priority::low});
  for (std::uint64_t id = 41; id <= 43; ++id) queue.add({id, 1, 0, 1e9, false, {"a", 1}, Priority::high});
  const std::vector<const RequestQueue*> list{&queue};
  EXPECT_EQ(schedule.next(list, 0, all)->request, 41u);
  const auto batch = schedule.take(queue, kCheapAndDear[0], 0, all);
  EXPECT_EQ(batch.width, 4);
  EXPECT_EQ(batch.requests, (std::vector<std::uint64_t>{41, 42, 43, 1}));
  const auto rest = schedule.take(queue, kCheapAndDear[0], 0, all);
  EXPECT_EQ(rest.columns, 32);
}

/// The products that a queue gives one after another, as the requests of each.
std::vector<std::vector<std::uint64_t>> products_of(RequestQueue& queue, double now) {
  FairSchedule schedule;
  std::vector<std::vector<std::uint64_t>> products;
  while (!queue.empty()) products.push_back(schedule.take(queue, kCheapAndDear[0], now, all).requests);
  return products;
}

TEST(FairSchedule, OneThatRoseTakesYoungerOnesOfItsMatrixAlong) {
  using Products = std::vector<std::vector<std::uint64_t>>;
  const double now = 1.25 * kAgeSeconds, young = now - 0.1;  // what arrived at 0 is one level higher
  RequestQueue queue;
  for (std::uint64_t id = 1; id <= 8; ++id) queue.add({id, 1, id == 1 ? 0 : young, 1e9, false, {"a", 1}});
  EXPECT_EQ(products_of(queue, now), (Products{{1, 2, 3, 4, 5, 6, 7, 8}}));
  // Of several clients, too. Those that are urgent have the room first, then those of its priority, by fair shares.
  queue.add({11, 1, 0, 1e9, false, {"old", 1}});
  for (std::uint64_t id = 17; id <= 60; ++id) queue.add({id, 1, young, 1e9, false, {"many", 1}});
  for (std::uint64_t id = 61; id <= 62; ++id) queue.add({id, 1, young, 1e9, false, {"few", 1}});
  queue.add({63, 1, young, 1e9, false, {"urgent", 1}, Priority::high});
  queue.add({64, 1, young, 1e9, false, {"patient", 1}, Priority::low});
  const auto wide = products_of(queue, now);
  ASSERT_EQ(wide.size(), 3u);
  EXPECT_EQ(std::vector(wide[0].begin(), wide[0].begin() + 2), (std::vector<std::uint64_t>{11, 63}));
  EXPECT_EQ(wide[0].size(), 32u);
  for (const std::uint64_t few : {61u, 62u}) EXPECT_EQ(std::count(wide[0].begin(), wide[0].end(), few), 1);
  EXPECT_EQ(wide[2], std::vector<std::uint64_t>{64});  // there was no padding
}

TEST(FairSchedule, UrgentOnesAreNotWidenedByOnesThatRoseLess) {
  const double now = 1.25 * kAgeSeconds;  // what is low and arrived at 0 is normal
  RequestQueue queue;
  for (std::uint64_t id = 1; id <= 40; ++id) queue.add({id, 1, 0, 1e9, false, {"a", 1}, Priority::low});
  queue.add({41, 1, now, 1e9, false, {"b", 1}, Priority::high});
  const auto products = products_of(queue, now);
  EXPECT_EQ(products[0], std::vector<std::uint64_t>{41});
  EXPECT_EQ(products[1].size(), 32u);
}

TEST(FairSchedule, TheLoadIsCarriedAlsoWhereSomeRose) {
  // A matrix waited for a long product of another one: half of its requests rose meanwhile. They take as many products as
  // if none had, and nobody who rose is behind one who did not.
  RequestQueue queue;
  const double now = 1.25 * kAgeSeconds;
  for (std::uint64_t id = 1; id <= 64; ++id)
    queue.add({id, 1, id % 2 == 0 ? 0 : now, 1e9, false, {id % 2 == 0 ? "old" : "young", 1}});
  const auto products = products_of(queue, now);
  ASSERT_EQ(products.size(), 2u);
  EXPECT_TRUE(std::all_of(products[0].begin(), products[0].end(), [](auto id) { return id % 2 == 0; }));
  // 9 columns that rose do not pay for a product of 16; with those that did not rise there are 16.
  for (std::uint64_t id = 1; id <= 16; ++id)
    queue.add({id, 1, id <= 9 ? 0 : now, 1e9, false, {id <= 9 ? "old" : "young", 1}});
  EXPECT_EQ(products_of(queue, now).size(), 1u);
}

TEST(FairSchedule, WithoutMergingNobodyTakesThePadding) {
  const WidthTable table({{1, 2}, {2, 1}}, Merging::off);
  RequestQueue queue;
  queue.add({1, 1, 0}), queue.add({2, 1, 0});
  const auto batch = FairSchedule().take(queue, table, 0, all);
  EXPECT_EQ(batch.width, 2);
  EXPECT_EQ(batch.requests, std::vector<std::uint64_t>{1});
}

TEST(FairSchedule, LowPriorityIsServedAtLast) {
  const std::vector<Tenant> tenants{{{"high", 1}, 1, 8, Priority::high}, {{"low", 1}, 1, 1, Priority::low}};
  const Simulated run = simulate(kCheapAndDear, tenants, 60);
  EXPECT_GT(run.longest.at("low"), kAgeSeconds);
  EXPECT_LT(run.longest.at("low"), 2 * kAgeSeconds + 0.1);
  EXPECT_GT(run.seconds.at("high"), 0.98 * 60);
  EXPECT_EQ(level_of(Priority::low, 10, 10), 2);
  EXPECT_EQ(level_of(Priority::low, 10, 10 + 1.5 * kAgeSeconds), 1);
  EXPECT_EQ(level_of(Priority::low, 10, 1e9), 0);
}

TEST(FairSchedule, WhoAsksForMuchDoesNotRise) {
  // The 64 requests of one tenant wait longer than kAgeSeconds, but it has its share all the time.
  const Simulated run = simulate(kCheapAndDear, {{{"many", 1}, 1, 64}, {{"one", 1}, 1, 1}}, 60);
  EXPECT_GT(run.longest.at("many"), kAgeSeconds);
  EXPECT_NEAR(run.seconds.at("one") / run.seconds.at("many"), 1, 0.1);
  EXPECT_LT(run.longest.at("one"), 3 * 1.1 * 20e-3);
}

TEST(FairSchedule, ARequestThatMayNotBeginDelaysItsLaneOnly) {
  FairSchedule schedule;
  RequestQueue queue;
  queue.add({1, 1, 0, 1e9, false, {"a", 1}}), queue.add({2, 1, 0, 1e9, false, {"a", 1}});
  queue.add({3, 1, 0, 1e9, false, {"b", 1}});
  const auto not_1 = [](std::uint64_t id) { return id != 1; };
  const std::vector<const RequestQueue*> list{&queue};
  EXPECT_EQ(schedule.next(list, 0, not_1)->request, 3u);
  EXPECT_EQ(schedule.take(queue, kCheapAndDear[0], 0, not_1).requests, std::vector<std::uint64_t>{3});
  EXPECT_FALSE(schedule.next(list, 0, not_1));
  EXPECT_EQ(schedule.take(queue, kCheapAndDear[0], 0, all).requests, (std::vector<std::uint64_t>{1, 2}));
}

}  // namespace
}  // namespace shardmat::serve
