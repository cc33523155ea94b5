#include "tools/bench/service/simulation.h"

#include <gtest/gtest.h>

namespace shardmat::tools::service_bench {
namespace {

/// Half a second before and after a product of 10 s for one column and 12 s for two, 1 s between products, 3 s besides.
SimulatedService service() { return {serve::WidthTable({{1, 10}, {2, 12}}), 1, 1, 3}; }

TEST(Simulation, RequestsAloneTakeTheSumOfAllParts) {
  EXPECT_EQ(simulate(service(), std::vector<double>{}), std::vector<double>{});
  EXPECT_EQ(simulate(service(), std::vector<double>{5, 100}), (std::vector<double>{15, 15}));
}

TEST(Simulation, ThoseThatWaitAreMerged) {
  // The first product runs from 0.5 to 11.5; the second one takes both others, until 24.5. They leave at 25 and 25.5.
  EXPECT_EQ(simulate(service(), std::vector<double>{0, 4, 5}), (std::vector<double>{15, 24, 23.5}));
}

TEST(Simulation, WithoutMergingEachWaitsForItsProduct) {
  SimulatedService alone = service();
  alone.table = serve::WidthTable({{1, 10}, {2, 12}}, serve::Merging::off);
  EXPECT_EQ(simulate(alone, std::vector<double>{0, 4, 5}), (std::vector<double>{15, 22, 32}));
}

}  // namespace
}  // namespace shardmat::tools::service_bench
