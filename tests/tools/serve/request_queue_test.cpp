// Which requests one product takes: widths, order, deadlines, and what a simulated engine makes of it.
#include "tools/serve/ranks/request_queue.h"

#include <gtest/gtest.h>

#include <random>

#include "tools/serve/ranks/fair_schedule.h"

namespace shardmat::serve {
namespace {

/// poisson27, 128³, f64 on an H200, in seconds.
WidthTable measured_table() {
  return WidthTable({{1, 118e-6}, {2, 139e-6}, {4, 225e-6}, {8, 305e-6}, {16, 449e-6}, {32, 766e-6}});
}

TEST(WidthTable, TakesTheWidthThatFinishesTheMostColumnsASecond) {
  const WidthTable table = measured_table();
  for (const auto& [waiting, width] : std::vector<std::pair<int, int>>{
           {1, 1}, {2, 2}, {3, 2}, {4, 4}, {5, 4}, {6, 8}, {8, 8}, {9, 8}, {12, 16}, {16, 16}, {31, 32}, {100, 32}})
    EXPECT_EQ(table.for_waiting(waiting, 1).width, width) << waiting;
  EXPECT_EQ(table.for_waiting(5, 5).width, 8);
  EXPECT_EQ(table.for_columns(3).width, 4);
  EXPECT_EQ(WidthTable({{1, 5}, {2, 1}}).for_columns(1).width, 2);
  EXPECT_EQ(table.for_columns(40).width, 32);  // of two products
  EXPECT_DOUBLE_EQ(table.for_columns(40).seconds, 2 * 766e-6);
  EXPECT_EQ(table.for_waiting(40, 40).width, 32);
  EXPECT_EQ(WidthTable().widest(), 0);
  EXPECT_DOUBLE_EQ(table.seconds_for(0), 0);
  EXPECT_DOUBLE_EQ(table.seconds_for(64), 2 * 766e-6);
}

bool all(std::uint64_t) { return true; }

/// The next product of a queue whose requests are all of one client.
FairSchedule::Batch take(RequestQueue& queue, const WidthTable& table, double now,
                         const RequestQueue::MayBegin& may_begin = all) {
  return FairSchedule().take(queue, table, now, may_begin);
}

constexpr int kLowest = kLevels;  ///< counts all

TEST(RequestQueue, RequestsAreTakenInOrderAndNotSplit) {
  RequestQueue queue;
  queue.add({1, 3, 0}), queue.add({2, 4, 0}), queue.add({3, 2, 0});
  EXPECT_EQ(queue.columns(kLowest, 0, 100), 9);
  EXPECT_EQ(queue.columns(kLowest, 0, 5), 5);
  const auto first = take(queue, measured_table(), 0);
  EXPECT_EQ(first.requests, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(first.columns, 7);
  EXPECT_EQ(first.width, 8);
  const auto second = take(queue, measured_table(), 0);
  EXPECT_EQ(second.requests, (std::vector<std::uint64_t>{3}));
  EXPECT_EQ(second.width, 2);
  EXPECT_TRUE(queue.empty());
  EXPECT_TRUE(take(queue, measured_table(), 0).requests.empty());
}

TEST(RequestQueue, CountsTheRequestsOfEachClientOfEveryPriority) {
  RequestQueue one, other;
  one.add({.id = 1, .client = {.name = "a"}}), one.add({.id = 2, .client = {.name = "b"}});
  one.add({.id = 3, .client = {.name = "a"}, .priority = Priority::high});
  other.add({.id = 4, .client = {.name = "a"}});
  std::map<std::string, std::size_t> waiting{{"c", 0}};
  one.count(waiting), other.count(waiting);
  EXPECT_EQ(waiting, (std::map<std::string, std::size_t>{{"a", 3}, {"b", 1}, {"c", 0}}));
}

TEST(RequestQueue, ARequestWiderThanAllProductsIsAlone) {
  const WidthTable narrow({{1, 118e-6}, {2, 139e-6}});
  RequestQueue queue;
  queue.add({1, 5, 0}), queue.add({2, 1, 0});
  const auto first = take(queue, narrow, 0);
  EXPECT_EQ(first.requests, std::vector<std::uint64_t>{1});
  EXPECT_EQ(first.width, 2);
  EXPECT_EQ(take(queue, narrow, 0).requests, std::vector<std::uint64_t>{2});
}

TEST(RequestQueue, WithoutMergingEveryRequestHasItsProduct) {
  const WidthTable alone({{1, 118e-6}, {2, 139e-6}, {4, 225e-6}}, Merging::off);
  RequestQueue queue;
  queue.add({1, 1, 0}), queue.add({2, 3, 0}), queue.add({3, 1, 0});
  for (const auto& [request, width] : std::vector<std::pair<std::uint64_t, std::int64_t>>{{1, 1}, {2, 4}, {3, 1}}) {
    const auto batch = take(queue, alone, 0);
    EXPECT_EQ(batch.requests, std::vector<std::uint64_t>{request});
    EXPECT_EQ(batch.width, width);
  }
  EXPECT_DOUBLE_EQ(alone.seconds_for(3), 3 * 118e-6);
}

TEST(RequestQueue, ThoseThatLeftOrAreLateGetNoProduct) {
  RequestQueue queue;
  queue.add({1, 1, 0, 5}), queue.add({2, 1, 1}), queue.add({3, 1, 2, 4}), queue.add({4, 1, 3});
  EXPECT_TRUE(queue.remove(2));
  EXPECT_FALSE(queue.remove(2));
  EXPECT_EQ(queue.size(), 3u);
  const auto batch = take(queue, measured_table(), 4.5);  // 1 went up a level, and takes 4 along
  EXPECT_EQ(batch.expired, (std::vector<std::uint64_t>{3}));
  EXPECT_EQ(batch.requests, (std::vector<std::uint64_t>{1, 4}));
  EXPECT_TRUE(queue.empty());
  queue.add({5, 2, 0}), queue.add({6, 1, 0});
  EXPECT_EQ(queue.clear(), (std::vector<std::uint64_t>{5, 6}));
  EXPECT_TRUE(queue.empty());
}

TEST(WidthTable, LearnsWhatWidthsTakeNow) {
  WidthTable table({{1, 1.0}, {4, 2.0}, {8, 3.0}});
  EXPECT_EQ(table.for_waiting(32, 1).width, 8);
  table.observe(8, 1000, 1000);  // one that was held up counts little
  EXPECT_EQ(table.for_waiting(32, 1).width, 8);
  for (int i = 0; i < 20; ++i) table.observe(8, 9.0, 9.0);
  EXPECT_EQ(table.for_waiting(32, 1).width, 4);
  EXPECT_NEAR(table.for_columns(8).seconds, 9, 0.1);
  for (int i = 0; i < 20; ++i) table.observe(4, 16.0, 16.0), table.observe(8, 32.0, 32.0);
  EXPECT_EQ(table.for_waiting(32, 1).width, 1);
  int singles = 0;
  while (singles < 10000 && table.for_waiting(32, 1).width == 1) table.observe(1, 1.0, 1.0), ++singles;
  EXPECT_GT(singles, 50);  // a wide one is tried again, but seldom
  EXPECT_LT(singles, 1000);
  table.observe(16, 1.0, 1.0);  // no width of this table
}

TEST(WidthTable, LearnsWhatAHandOverTakes) {
  WidthTable table({{1, 1e-6}, {4, 5e-6}});
  EXPECT_EQ(table.for_waiting(32, 1).width, 1);
  for (int i = 0; i < 50; ++i) table.observe(1, 1e-6, 31e-6);
  EXPECT_NEAR(table.hand_over(), 30e-6, 2e-6);
  EXPECT_EQ(table.for_waiting(32, 1).width, 4);
  EXPECT_DOUBLE_EQ(table.seconds_for(8), 2 * (table.for_waiting(8, 1).seconds + table.hand_over()));
  for (int i = 0; i < 50; ++i) table.observe(1, 1e-6, 10);  // somebody else had the core
  EXPECT_LT(table.hand_over(), 1e-3);
  for (int i = 0; i < 200; ++i) table.observe(1, 1e-6, 1e-6);
  EXPECT_EQ(table.for_waiting(32, 1).width, 1);
}

TEST(RequestQueue, RequestsThatAreAloneAreNotMerged) {
  RequestQueue queue;
  queue.add({1, 1, 0}), queue.add({2, 40, 0, std::numeric_limits<double>::infinity(), true}), queue.add({3, 1, 0});
  EXPECT_EQ(take(queue, measured_table(), 0).requests, (std::vector<std::uint64_t>{1}));
  const auto alone = take(queue, measured_table(), 0);
  EXPECT_EQ(alone.requests, (std::vector<std::uint64_t>{2}));
  EXPECT_EQ(alone.width, 40);
  EXPECT_EQ(take(queue, measured_table(), 0).requests, (std::vector<std::uint64_t>{3}));
  EXPECT_TRUE(queue.empty());
}

TEST(RequestQueue, NobodyPassesARequestThatMayNotBegin) {
  RequestQueue queue;
  for (std::uint64_t id = 1; id <= 4; ++id) queue.add({id, 1, 0});
  const auto not_3 = [](std::uint64_t id) { return id != 3; };
  EXPECT_EQ(take(queue, measured_table(), 0, not_3).requests, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_TRUE(take(queue, measured_table(), 0, not_3).requests.empty());
  EXPECT_EQ(take(queue, measured_table(), 0).requests, (std::vector<std::uint64_t>{3, 4}));
}

/// One engine and Poisson arrivals: the mean time from arrival to the end of the product.
struct Simulated {
  double mean_seconds = 0, columns_a_product = 0;
};
Simulated simulate(const WidthTable& table, double rate, int requests) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> gap(rate);
  std::vector<double> arrivals(static_cast<std::size_t>(requests));
  double time = 0;
  for (double& arrival : arrivals) arrival = time += gap(random);
  RequestQueue queue;
  double free = 0, sum = 0;
  std::size_t next = 0, done = 0, products = 0;
  while (done < arrivals.size()) {
    if (queue.empty()) free = std::max(free, arrivals[next]);
    for (; next < arrivals.size() && arrivals[next] <= free; ++next) queue.add({next, 1, arrivals[next]});
    const auto batch = take(queue, table, free);
    free += table.for_columns(batch.columns).seconds;
    for (const std::uint64_t request : batch.requests) sum += free - arrivals[request], ++done;
    ++products;
  }
  return {sum / requests, static_cast<double>(requests) / static_cast<double>(products)};
}

TEST(RequestQueue, MergingCarriesALoadThatSingleProductsCannot) {
  const Simulated light = simulate(measured_table(), 1000, 20000);
  EXPECT_LT(light.mean_seconds, 150e-6);
  EXPECT_LT(light.columns_a_product, 1.2);
  const Simulated heavy = simulate(measured_table(), 36000, 100000);  // one at a time: 8,475 a second
  EXPECT_LT(heavy.mean_seconds, 1.5e-3);
  EXPECT_GT(heavy.columns_a_product, 16);
  const Simulated single = simulate(WidthTable({{1, 118e-6}}), 36000, 100000);
  EXPECT_GT(single.mean_seconds, 1);
}

}  // namespace
}  // namespace shardmat::serve
