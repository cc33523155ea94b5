// What it costs that ranks share a GPU and hand their vectors to the rank that owns it: compared with a copy of the same
// bytes; and how much of a core such a rank (a feeder) takes while its owner works.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/shared_gpu/rank_group.h"
#include "comm/shared_gpu/rank_groups.h"
#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "tools/bench/bench.h"
#include "tools/bench/outputs.h"
#include "tools/cli/checks.h"
#include "tools/cli/environment.h"
#include "tools/cli/report_option.h"
#include "tools/cli/run_ranks.h"

namespace shardmat::tools {
namespace {

struct Options {
  int owners = 1;
  std::vector<std::int64_t> bytes{std::int64_t{8} << 20, std::int64_t{16} << 20, std::int64_t{32} << 20,
                                  std::int64_t{64} << 20};
  int repetitions = 21;
  double idle_seconds = 3, timeout = 60;
  std::string json;
};

/// Medians of one rank, in seconds.
struct Medians {
  double copy = 0, give = 0, take = 0;
};

struct Report {
  struct Row {
    std::int64_t bytes;
    Medians slowest;  ///< of the feeders
  };
  std::string command;
  int ranks, owners, repetitions;
  std::vector<Row> rows;
  double idle_share = 0;

  std::string text() const {
    std::string text = fmt::format(
        "{} ranks, {} {} a host; medians of {} calls, of the slowest rank that hands over\n\n{:>10} {:>12} {:>21} {:>21}\n",
        ranks, owners, owners == 1 ? "owner" : "owners", repetitions, "bytes", "memcpy", "handed over", "taken back");
    for (const auto& [bytes, of] : rows)
      text += fmt::format("{:>10} {:>12} {:>12} {:>6.2f} x {:>12} {:>6.2f} x\n", human_bytes(static_cast<double>(bytes)),
                          human_seconds(of.copy), human_seconds(of.give), of.give / of.copy, human_seconds(of.take),
                          of.take / of.copy);
    return text +
           fmt::format("\na rank that has handed over takes {:.3f} % of a core while the owner works\n", 100 * idle_share);
  }

  nlohmann::ordered_json json() const {
    nlohmann::ordered_json vectors = nlohmann::ordered_json::array();
    for (const auto& [bytes, of] : rows)
      vectors.push_back({{"bytes", bytes}, {"memcpy_s", of.copy}, {"handed_over_s", of.give}, {"taken_back_s", of.take}});
    return {{"command", command},         {"ranks", ranks},     {"owners_of_host", owners},
            {"repetitions", repetitions}, {"vectors", vectors}, {"idle_share_of_core", idle_share}};
  }
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

double cpu_seconds_of_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Feeders hand over and take back vectors of `bytes`; their owners have none. Copies, calls that give and calls that take
/// alternate.
Medians measure(RankGroup& group, std::size_t bytes, int repetitions) {
  std::vector<char> from(group.owns() ? 0 : bytes, 'x'), to(from.size(), 'y');
  std::vector<double> copies, gives, takes;
  const auto call = [&](const Operand& operand) {
    Timer timer;
    group.call(
        "a vector", [&] { return std::vector<Operand>{operand}; },
        [](std::span<const GroupOperand>) { return std::string(); });
    return timer.seconds();
  };
  for (int i = -2; i < repetitions; ++i) {  // two times unmeasured
    Timer timer;
    if (!group.owns()) std::memcpy(to.data(), from.data(), bytes);
    const double copy = timer.seconds(), give = call(Operand::given(from.data(), from.size())),
                 take = call(Operand::taken(to.data(), to.size()));
    if (i < 0) continue;
    copies.push_back(copy), gives.push_back(give), takes.push_back(take);
  }
  return {median(copies), median(gives), median(takes)};
}

/// The share of a core that this rank takes while its owner works.
double idle_share(RankGroup& group, double seconds) {
  const double before = cpu_seconds_of_thread();
  group.call(
      "long work", [] { return std::vector<Operand>(); },
      [&](std::span<const GroupOperand>) {
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        return std::string();
      });
  return (cpu_seconds_of_thread() - before) / seconds;
}

/// The largest value of a feeder, on all ranks.
double most_of_feeders(RankGroup& group, double mine) {
  return group.all().all_reduce(group.owns() ? 0.0 : mine, Reduction::max);
}

int run(const Options& o, Communicator& all) {
  const std::vector<int> owners = owners_of_ranks(all, BackendChoice::host, {true, o.owners});
  RankGroup group(all, owners);
  if (all.all_reduce(group.owns() ? 1 : 0, Reduction::min) == 1)
    throw AgreedError(ErrorKind::usage, "every rank owns its rows; start more ranks, or ask for fewer owners", "owners");
  Report report{command_line(), all.size(), o.owners, o.repetitions, {}};
  all.run_agreed([&] {
    if (all.rank() == 0) require_outputs({o.json, ""}, "", {});
  });
  for (const std::int64_t bytes : o.bytes) {
    const Medians mine = measure(group, static_cast<std::size_t>(bytes), o.repetitions);
    report.rows.push_back(
        {bytes, {most_of_feeders(group, mine.copy), most_of_feeders(group, mine.give), most_of_feeders(group, mine.take)}});
  }
  report.idle_share = most_of_feeders(group, idle_share(group, o.idle_seconds));
  const GrowingReport file({o.json, ""}, "", all);
  all.run_agreed([&] {
    if (all.rank() != 0) return;
    if (o.json != "-") fmt::print("{}", report.text());
    file.finish(report.json());
  });
  return 0;
}

}  // namespace

std::function<int()> add_bench_shared_gpu(const CommandLine& bench) {
  const CommandLine app = bench.add_subcommand(
      "shared-gpu",
      "Hand vectors to the ranks that own a device, through shared memory, compared with a copy in one process");
  auto options = std::make_shared<Options>();
  app.in(Topic::machine)
      .add_option("--owners", options->owners,
                  "ranks of each host that own rows; the other ranks hand their vectors to them")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str()
      ->common();
  app.in(Topic::input)
      .add_option("--bytes", options->bytes, "bytes of the vector that a rank hands over; several: 8MB,64MB")
      ->delimiter(',')
      ->transform(bytes_with_unit())
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--repetitions", options->repetitions, "take the median of N calls")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--idle", options->idle_seconds, "seconds of work of the owner, for which the other ranks wait")
      ->check(positive_number())
      ->capture_default_str();
  add_json_option(app, options->json);
  app.in(Topic::machine)
      .add_option("--timeout", options->timeout, "stop if a rank has not answered for X seconds")
      ->check(positive_number())
      ->capture_default_str();
  app.footer("\nExample:\n  mpirun -n 2 shardmat bench shared-gpu --owners 1\n");
  return [app, options] { return run_ranks(app, options->timeout, [&](Communicator& all) { return run(*options, all); }); };
}

}  // namespace shardmat::tools
