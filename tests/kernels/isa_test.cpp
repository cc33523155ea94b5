// Which instruction set host kernels take.
#include "kernels/base/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "kernels/base/error.h"
#include "tests/support/instruction_sets.h"

namespace shardmat {
namespace {

/// SHARDMAT_ISA while in scope.
class Variable {
 public:
  explicit Variable(const std::string& value) {
    if (const char* old = std::getenv("SHARDMAT_ISA")) old_ = old;
    setenv("SHARDMAT_ISA", value.c_str(), 1);
  }
  ~Variable() {
    if (old_) setenv("SHARDMAT_ISA", old_->c_str(), 1);
    else unsetenv("SHARDMAT_ISA");
  }

 private:
  std::optional<std::string> old_;
};

TEST(Isa, OfTheEnvironmentElseTheBest) {
  for (const Isa isa : test::instruction_sets()) {
    const Variable variable{std::string(name(isa))};
    EXPECT_EQ(isa_of_environment(), isa);
  }
  const Variable none("");
  EXPECT_EQ(isa_of_environment(), best_isa());
}

TEST(Isa, RefusesUnknownNamesAndWhatTheCpuLacks) {
  const Variable variable("sse9");
  try {
    isa_of_environment();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(e.what()).find("choose baseline, avx2 or avx512"), std::string::npos) << e.what();
  }
  if (best_isa() == Isa::avx512) return;  // lacks none
  const Variable beyond("avx512");
  EXPECT_THROW(isa_of_environment(), Error);
}

TEST(Isa, ScopesNest) {
  const Isa usual = instruction_set();
  {
    const IsaScope outer(Isa::baseline);
    EXPECT_EQ(instruction_set(), Isa::baseline);
    {
      const IsaScope inner(best_isa());
      EXPECT_EQ(instruction_set(), best_isa());
    }
    EXPECT_EQ(instruction_set(), Isa::baseline);
  }
  EXPECT_EQ(instruction_set(), usual);
}

}  // namespace
}  // namespace shardmat
