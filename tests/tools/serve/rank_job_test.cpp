// How long slices of a job are, what is kept of its history, and what its request may say.
#include "tools/serve/ranks/rank_job.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tools/serve/handlers/job_query.h"
#include "tools/serve/ranks/job_run.h"
#include "tools/serve/ranks/jobs.h"

namespace shardmat::serve {
namespace {

TEST(SliceLength, ComesToItsSecondsAndNeverBelowOnePause) {
  SliceLength length;
  EXPECT_EQ(length.pauses(), 1);
  for (int slice = 0; slice < 10; ++slice) {
    const std::int64_t pauses = length.pauses();
    length.observe(pauses, 1e-4 * static_cast<double>(pauses));
    EXPECT_LE(length.pauses(), 4 * pauses);
  }
  EXPECT_EQ(length.pauses(), 100);
  EXPECT_NEAR(length.expected_seconds(), SliceLength::kSeconds, 1e-12);
  length.observe(100, 100);  // an iteration of a second
  EXPECT_EQ(length.pauses(), 1);
  EXPECT_NEAR(length.expected_seconds(), 1, 1e-12);
  length.observe(0, 1);  // nothing was iterated: nothing is known
  EXPECT_EQ(length.pauses(), 1);
}

TEST(ResidualHistory, KeepsResidualsAtEqualDistancesWhateverTheLength) {
  ResidualHistory history;
  for (std::int64_t i = 1; i <= 100'000; ++i) history.add({i, static_cast<double>(i)});
  const auto& all = history.all();
  ASSERT_GE(all.size(), 128U);
  ASSERT_LE(all.size(), 512U);
  const std::int64_t step = all[1].iteration - all[0].iteration;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].iteration, static_cast<std::int64_t>(i + 1) * step);
    EXPECT_EQ(all[i].norm, static_cast<double>(all[i].iteration));
  }
}

TEST(JobQuery, TellsSettingsFromParameters) {
  const std::vector<std::string> settings{"solver", "rtol"};
  const auto read = [&](const std::map<std::string, std::string>& pairs) {
    return read_job_query(job_kinds().front(), pairs, settings);
  };
  const auto query = std::get<JobQuery>(read(
      {{"method", "cg"}, {"rtol", "1e-3"}, {"k", "3"}, {"wait", "2.5"}, {"limit", "7"}, {"b", "vec-1"}, {"keep", "1"}}));
  EXPECT_EQ(query.settings, "rtol=1e-3 solver=cg");
  EXPECT_EQ(query.columns, 3);
  EXPECT_EQ(query.wait_seconds, 2.5);
  EXPECT_EQ(query.limit_seconds, 7);
  EXPECT_EQ(query.b, "vec-1");
  EXPECT_TRUE(query.keeps);
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{"walt", "1"}, {"k", "257"}, {"keep", "yes"}, {"rtol", "1 solver=x"}})
    EXPECT_EQ(std::get<Problem>(read({{key, value}})).status, 400) << key;
}

TEST(Jobs, KeepTheirMatricesFromEvictionUntilTheyEnd) {
  const auto directory = std::filesystem::temp_directory_path() / ("shardmat_jobs_" + std::to_string(getpid()));
  {
    StateDirectory state(directory);
    const auto arena = service::Arena::create(1 << 16);
    EventLoop loop;
    Service service(loop, {}, state, arena);  // its ranks are not started: jobs wait
    Jobs jobs(loop, service);
    const auto job = std::get<1>(jobs.make(std::make_shared<Rights>("a", std::vector<Scope>{}, std::vector<std::string>{})));
    job->kind = "eigen", job->matrix = "K", job->mass = "M";
    EXPECT_FALSE(service.is_wanted("K"));
    jobs.add(job, nullptr, nullptr);
    EXPECT_EQ(job->state(), JobState::queued);
    EXPECT_TRUE(service.is_wanted("K"));
    EXPECT_TRUE(service.is_wanted("M"));
    EXPECT_FALSE(service.is_wanted("A"));
    job->cancel();
    EXPECT_EQ(job->state(), JobState::cancelled);
    EXPECT_FALSE(service.is_wanted("K"));
    EXPECT_FALSE(service.is_wanted("M"));
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace shardmat::serve
