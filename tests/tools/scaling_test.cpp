#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tools/bench/scaling_notes.h"
#include "tools/bench/scaling_report.h"
#include "tools/bench/scaling_solve.h"
#include "tools/bench/study_file.h"

namespace shardmat::tools {
namespace {

/// On `ranks` ranks of one thread, each with a core of its own.
ScalingCase measured(const std::string& matrix, int ranks, double iteration, double product_mean, double product_max) {
  ScalingCase one;
  one.matrix = matrix;
  one.exchange = "auto";
  one.ranks = one.host_ranks = one.host_cores = ranks;
  MultiplyReport& r = one.report;
  r.backend = "host";
  r.exchange = ranks == 1 ? "none" : "halo";
  r.ranks.resize(static_cast<std::size_t>(ranks));
  r.kernel_of_rank.assign(static_cast<std::size_t>(ranks), "csr_host");
  for (OverRanks* figure : {&r.part_rows, &r.part_nnz, &r.overlapped, &r.local.of_ranks})
    figure->each.assign(static_cast<std::size_t>(ranks), 0);
  r.nnz = 1000;
  r.iteration.median = iteration, r.iteration.min = 0.9 * iteration, r.iteration.max = 1.2 * iteration;
  r.local.of_ranks.mean = product_mean, r.local.of_ranks.max = product_max;
  r.bandwidth.mean = 1e10, r.copy_bandwidth.mean = 2e10;
  return one;
}

void expect_sum(const ScalingCase& one, double product, double imbalance, double waiting) {
  EXPECT_DOUBLE_EQ(one.product(), product);
  EXPECT_NEAR(one.imbalance(), imbalance, 1e-18);
  EXPECT_NEAR(one.waiting(), waiting, 1e-18);
  EXPECT_DOUBLE_EQ(one.product() + one.imbalance() + one.waiting(), one.iteration());
}

TEST(ScalingCase, PartsOfAnIterationAddUpToIt) {
  expect_sum(measured("a.h5", 2, 10e-6, 6e-6, 7e-6), 6e-6, 1e-6, 3e-6);
  expect_sum(measured("a.h5", 2, 10e-6, 6e-6, 15e-6), 6e-6, 4e-6, 0);
  expect_sum(measured("a.h5", 1, 22.3e-6, 20e-3, 20e-3), 22.3e-6, 0, 0);
}

std::vector<std::string> notes(std::vector<ScalingCase> cases) {
  find_efficiencies(cases);
  return cases.back().notes;
}

void expect_note(const std::vector<std::string>& notes, const std::string& text) {
  ASSERT_EQ(notes.size(), 1);
  EXPECT_NE(notes[0].find(text), std::string::npos) << notes[0];
}

TEST(ScalingNotes, NothingToSayOfPlausibleFigures) {
  EXPECT_TRUE(notes({measured("a.h5", 1, 10e-6, 10e-6, 10e-6), measured("a.h5", 2, 5e-6, 4e-6, 5e-6)}).empty());
}

TEST(ScalingNotes, MoreRanksThanCores) {
  ScalingCase crowded = measured("a.h5", 4, 5e-6, 4e-6, 5e-6);
  crowded.host_cores = 2;
  expect_note(notes({measured("a.h5", 1, 10e-6, 9e-6, 9e-6), crowded}), "4 ranks with 1 thread each share 2 cores");
}

TEST(ScalingNotes, UnsteadyTimes) {
  ScalingCase unsteady = measured("a.h5", 1, 10e-6, 9e-6, 9e-6);
  unsteady.report.iteration.min = 4e-6;
  expect_note(notes({unsteady}), "unsteady iterations (shortest 4.0 µs, median 10.0 µs, longest 12.0 µs)");
}

TEST(ScalingNotes, AProductThatTakesLongerThanTheIteration) {
  expect_note(notes({measured("a.h5", 1, 22.3e-6, 20e-3, 20e-3)}),
              "alone took 20.00 ms, longer than an iteration with it (22.3");
}

TEST(ScalingNotes, WhyACaseIsFasterThanPerfect) {
  const std::string weak = "poisson27:n=8,nz={8}";
  ScalingCase base = measured(weak, 1, 50e-6, 50e-6, 50e-6), fast = measured(weak, 2, 10e-6, 9e-6, 9e-6);
  fast.report.nnz = 2 * base.report.nnz;
  expect_note(notes({base, fast}), "500.0 % of perfect scaling: the baseline was probably disturbed");
  base.report.iteration.min = 8e-6;
  expect_note(notes({base, fast}), "the baseline on 1 rank was disturbed (shortest 8.0 µs, median 50.0 µs");
  base.report.iteration.min = 49e-6;
  fast.report.nnz = base.report.nnz;
  expect_note(notes({base, fast}), "50.0 % fewer nonzeros");
  fast.report.nnz = 2 * base.report.nnz;
  fast.report.bandwidth.mean = 5e10;
  expect_note(notes({base, fast}), "a cache probably holds its parts");
  fast.report.threads_per_rank = 2, fast.host_cores = 4;
  expect_note(notes({base, fast}), "have 2 threads each, those of the baseline 1");
}

TEST(ScalingReport, NotesAndThreadsAreInJsonAndCsv) {
  ScalingStudy study;
  study.threads = 1;
  study.cases = {measured("a.h5", 1, 22.3e-6, 20e-3, 20e-3)};
  study.to_come = {measured("a.h5", 2, 0, 0, 0)};
  study.to_come[0].why_not = "not yet";
  find_efficiencies(study.cases);
  const auto json = to_json(study);
  EXPECT_EQ(json["threads_per_rank"], 1);
  EXPECT_EQ(json["cases"].size(), 1);
  EXPECT_EQ(json["cases"][0]["notes"].size(), 1);
  const std::string csv = to_csv(study);
  EXPECT_NE(csv.find("longer than an iteration"), std::string::npos);
  EXPECT_NE(csv.find("not yet"), std::string::npos);
}

TEST(StudyFile, ACaseThatWasReadHasTheSameFiguresAndText) {
  ScalingStudy study;
  study.type = "f64", study.threads = 1;
  study.cases = {measured("a.h5", 1, 22.3e-6, 20e-6, 21e-6), measured("a.h5", 2, 11e-6, 9e-6, 10e-6)};
  study.cases[1].report.iteration.samples = {11e-6, 12e-6, 10e-6};
  study.cases[1].report.exchange_bytes.max = 800;
  study.cases[1].report.verification.emplace().passed = true;
  study.cases.push_back(measured("a.h5", 3, 0, 0, 0));
  study.cases[2].why_not = "WRONG: verification failed";
  find_efficiencies(study.cases);
  const auto json = to_json(study);
  ScalingStudy again = study;
  again.cases.clear();
  for (const auto& one : json["cases"]) again.cases.push_back(read_case(one));
  find_efficiencies(again.cases);
  EXPECT_EQ(to_json(again)["cases"], json["cases"]);
  EXPECT_EQ(table(again), table(study));
  EXPECT_EQ(to_csv(again), to_csv(study));
  ASSERT_TRUE(again.cases[2].report.verification);
  EXPECT_FALSE(again.cases[2].report.verification->passed);
}

TEST(Solves, EfficiencyIsThatOfTheSamePreconditioner) {
  const auto solved = [](int ranks, const char* preconditioner, double seconds) {
    SolveCase one;
    one.matrix = "a.h5", one.preconditioner = preconditioner, one.ranks = ranks;
    one.set_up = {1, 1, 1}, one.solve = {seconds - 1, seconds, seconds + 1};
    return one;
  };
  std::vector<SolveCase> cases{solved(1, "multigrid", 7), solved(1, "jacobi", 15), solved(2, "multigrid", 4),
                               solved(2, "jacobi", 7), solved(4, "jacobi", 3)};
  cases[4].why_not = "it did not converge";
  find_efficiencies(cases);
  EXPECT_DOUBLE_EQ(cases[2].efficiency, 8.0 / 5 / 2);
  EXPECT_DOUBLE_EQ(cases[3].efficiency, 1);
  EXPECT_EQ(cases[4].efficiency, 0);
  EXPECT_EQ(to_json(cases[4])["why_not"], "it did not converge");
  EXPECT_NE(table(cases).find("did not converge"), std::string::npos);
}

TEST(ScalingReport, NotesAreWrappedAtSpaces) {
  EXPECT_EQ(wrapped("one two three four", 2, 9), "  one two\n      three\n      four\n");
  EXPECT_EQ(wrapped("", 2, 9), "  \n");
}

TEST(ScalingTable, LinesAreNarrowWhateverTheFigures) {
  ScalingStudy study;
  study.type = "f64", study.threads = 1;
  for (const double scale : {1e-12, 1.0, 1e9}) {
    for (const int ranks : {1, 2, 100'000}) {
      ScalingCase one = measured("a.h5", ranks, 3e-4 / ranks * scale, 3e-4 * scale, 7e3 * scale);
      one.forecast.emplace();
      one.forecast->iteration = 12'345 * scale;
      one.report.gflops = 123'456'789 * scale;
      one.report.exchange_times.median = 54'321 * scale;
      one.report.backend = "host";
      one.report.ranks[0].device = "a processor with a name of many words that its maker thought would sell, at 2.10 GHz";
      study.cases.push_back(one);
    }
    study.cases.back().report.iteration.median = 1e-9;  // against 3e-4 s on one rank
  }
  study.cases.push_back(measured("b.h5", 2, 1, 1, 1));
  study.cases.back().why_not =
      "there is no room for it on rank 1, which has 123,456,789,012 bytes of 987,654,321,098,765 free";
  for (int i = 0; i < 10; ++i)
    study.no_forecasts.push_back("b.h5: its iterations took between 0.1 and 123,456,789.1 times the median");
  study.no_forecasts.back() += study.no_forecasts.front();
  find_efficiencies(study.cases);
  std::istringstream lines(table(study));
  const auto goes_on = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };  // of a character in UTF-8
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(line.size() - static_cast<std::size_t>(std::count_if(line.begin(), line.end(), goes_on)), 125) << line;
  EXPECT_NE(table(study).find("987,654,321,098,765 free"), std::string::npos);
}

}  // namespace
}  // namespace shardmat::tools
