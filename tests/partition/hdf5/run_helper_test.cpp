#include "partition/hdf5/run_helper.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "kernels/base/error.h"
#include "partition/hdf5/file.h"
#include "tests/partition/test_matrices.h"

namespace shardmat {
namespace {

/// Helpers that misbehave, in place of shardmat-h5check.
class RunHelper : public testing::Test {
 protected:
  void take(const std::string& script) {
    const std::string program = (directory_ / "helper").string();
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    ::chmod(program.c_str(), 0700);
    ::setenv("SHARDMAT_H5CHECK", program.c_str(), 1);
  }
  HelperResult run(const std::string& script, double seconds = 20, std::int64_t bytes = 1 << 20) {
    take(script);
    const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const HelperResult result = run_helper("shardmat-h5check", {"a", "b c"}, input, {seconds, bytes});
    ::close(input);
    return result;
  }
  ~RunHelper() override { ::unsetenv("SHARDMAT_H5CHECK"); }

  test::TemporaryDirectory directory_;
};

TEST_F(RunHelper, GivesWhatItPrints) {
  const HelperResult result = run("echo \"$2\"; env | grep -c SHARDMAT");
  EXPECT_EQ(result.output, "b c\n0\n");
  EXPECT_TRUE(run("echo good").succeeded);
  EXPECT_FALSE(run("exit 3").succeeded);
}

TEST_F(RunHelper, EndsWhatNeverEnds) {
  for (const char* script : {"exec sleep 100", "exec >&-; exec sleep 100"}) {
    const HelperResult result = run(script, 0.3);
    EXPECT_TRUE(result.timed_out) << script;
    EXPECT_FALSE(result.succeeded) << script;
  }
  EXPECT_TRUE(run("yes", 20, 1000).too_long);
  EXPECT_FALSE(run("yes", 20, 1000).succeeded);
}

TEST_F(RunHelper, ACrashIsAnErrorOfTheInput) {
  std::ofstream(directory_ / "a.h5") << "anything";
  const auto message = [&](const std::string& script) {
    take(script);
    try {
      Hdf5File::open(directory_ / "a.h5");
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input);
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(message("kill -SEGV $$").find("a.h5: the HDF5 library crashed"), std::string::npos);
  EXPECT_NE(message("echo '{}'").find("description"), std::string::npos);
  EXPECT_NE(message("echo '{\"error\": \"bad magic\"}'; exit 3").find("bad magic"), std::string::npos);
  EXPECT_NE(message("exit 4").find("a.h5"), std::string::npos);
}

}  // namespace
}  // namespace shardmat
