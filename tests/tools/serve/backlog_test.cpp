// How long one more request would wait.
#include "tools/serve/ranks/backlog.h"

#include <gtest/gtest.h>

namespace shardmat::serve {
namespace {

/// A column of matrix m takes m seconds.
double seconds(std::uint64_t matrix, std::int64_t columns) {
  return static_cast<double>(matrix) * static_cast<double>(columns);
}

Backlog::Work work(const char* client, std::int64_t columns, std::uint64_t matrix = 1, Priority priority = Priority::normal,
                   double weight = 1) {
  return {matrix, columns, {client, weight}, priority};
}

TEST(Backlog, OfOneClientIsTheSumOfAllThatWaits) {
  Backlog backlog;
  EXPECT_EQ(backlog.wait(work("a", 1), seconds), 0);
  {
    const auto first = backlog.add(work("a", 3)), second = backlog.add(work("a", 2, 10));
    EXPECT_DOUBLE_EQ(backlog.wait(work("a", 1), seconds), 3 + 20);
    EXPECT_DOUBLE_EQ(backlog.wait(work("a", 1, 7), seconds), 3 + 20);
  }
  EXPECT_EQ(backlog.wait(work("a", 1), seconds), 0);
}

TEST(Backlog, AnotherClientWaitsForItsShareOnly) {
  Backlog backlog;
  const auto many = backlog.add(work("a", 100)), few = backlog.add(work("b", 2));
  EXPECT_DOUBLE_EQ(backlog.wait(work("a", 1), seconds), 100 + 2);
  EXPECT_DOUBLE_EQ(backlog.wait(work("b", 1), seconds), 2 + 3);  // a has as much as b in the meantime
  EXPECT_DOUBLE_EQ(backlog.wait(work("c", 4), seconds), 4 + 2);
  EXPECT_DOUBLE_EQ(backlog.wait(work("c", 4, 1, Priority::normal, 4), seconds), 1 + 1);
}

TEST(Backlog, WhatIsMoreUrgentComesFirst) {
  Backlog backlog;
  const auto high = backlog.add(work("a", 10, 1, Priority::high)), low = backlog.add(work("a", 50, 1, Priority::low));
  EXPECT_DOUBLE_EQ(backlog.wait(work("a", 1, 1, Priority::high), seconds), 10);
  EXPECT_DOUBLE_EQ(backlog.wait(work("b", 1, 1, Priority::normal), seconds), 10);
  EXPECT_DOUBLE_EQ(backlog.wait(work("a", 1, 1, Priority::low), seconds), 60);
}

TEST(Backlog, MergedColumnsTakeLess) {
  Backlog backlog;
  const auto wide = [](std::uint64_t, std::int64_t columns) { return columns > 1 ? 2.0 : 1.0; };
  const auto a = backlog.add(work("a", 4)), b = backlog.add(work("b", 4));
  EXPECT_DOUBLE_EQ(backlog.wait(work("a", 1), wide), 2);
  EXPECT_DOUBLE_EQ(backlog.wait(work("a", 4), wide), 2);
}

TEST(Backlog, UnitsOfWorkTakeTheirTimeBesideTheColumns) {
  Backlog backlog;
  Backlog::Work batch = work("a", 1);
  batch.units = 1000;
  {
    const auto first = backlog.add(batch), second = backlog.add(batch), other = backlog.add(work("b", 5));
    EXPECT_DOUBLE_EQ(backlog.wait(work("a", 1), seconds, 0.5), 2 + 1000 + 5);
    EXPECT_DOUBLE_EQ(backlog.wait(work("b", 1), seconds, 0.5), 5 + 6);  // a has as much as b in the meantime
    EXPECT_DOUBLE_EQ(backlog.wait(batch, seconds, 0.001), 2 + 2 + 5);
    Backlog::Work of_b = batch;
    of_b.client.name = "b";
    EXPECT_DOUBLE_EQ(backlog.wait(of_b, seconds, 0.001), 5 + 2 + 2);
  }
  EXPECT_EQ(backlog.wait(batch, seconds, 0.5), 0);
}

}  // namespace
}  // namespace shardmat::serve
