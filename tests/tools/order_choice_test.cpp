#include "tools/cli/order_choice.h"

#include <gtest/gtest.h>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "partition/generators/generator.h"
#include "partition/source/ordered_source.h"
#include "tests/support/world.h"

namespace shardmat::tools {
namespace {

/// Lets this process take about so many bytes.
class LittleMemory {
 public:
  explicit LittleMemory(std::int64_t bytes) { share_host_memory(static_cast<int>(available_host_memory() / bytes)); }
  ~LittleMemory() { share_host_memory(1); }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;
};

TEST(OrderChoice, OrdersThatThereIsNoMemoryForAreLeftOutAndSaid) {
  const auto source = make_generator("banded:n=100000,bandwidth=125");  // 25 million nonzeros: 400 MB, if all were held
  const LittleMemory memory(200'000'000);
  OrderChoices choices{possible_orders(*source), {"nnz"}, {2, 4}, "", false};
  const OrderChoice choice = choose_order(*source, choices);
  EXPECT_EQ(choice.rows, nullptr);
  EXPECT_NE(choice.table.find("without rcm: the matrix, to reorder it needs 40"), std::string::npos) << choice.table;
  EXPECT_NE(choice.table.find("\n    length  "), std::string::npos) << choice.table;
  choices.orders = {RowOrder::rcm};
  EXPECT_NE(error_of(ErrorKind::resources, [&] { choose_order(*source, choices); }).find("to reorder it"),
            std::string::npos);
}

}  // namespace
}  // namespace shardmat::tools
