#include "tools/client/client_wait.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "kernels/base/error.h"
#include "tools/cli/value_checks.h"

namespace shardmat::tools {
namespace {

using json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr double kFirstPause = 0.01, kLongestPause = 0.5;
constexpr double kLongest = 1e9;  ///< seconds; more than a clock counts

struct Options : ServiceAddress {
  std::string matrix, job;
  double at_most = std::numeric_limits<double>::infinity();
};

/// Whether the wait is over; throws if what is waited for can no longer come. The state, for the message of a wait in vain.
bool is_over(const Options& o, std::string& state) {
  HttpClient client = connect(o);
  if (o.matrix.empty() && o.job.empty()) {
    const HttpReply reply = client.send("GET", "/v2/health/ready");
    state = "not ready";
    return reply.status == 200;
  }
  const json answer = ask_json(client, o.job.empty() ? "/v1/matrices/" + o.matrix : "/v1/jobs/" + o.job);
  state = answer["state"];
  if (state == "ready" || state == "done") return true;
  if (state == "loading" || state == "queued" || state == "running") return false;
  throw Error(ErrorKind::input, fmt::format("{} is {}{}", o.job.empty() ? o.matrix : o.job, state,
                                            answer.contains("reason") ? ": " + answer["reason"].get<std::string>() : ""));
}

int wait(const Options& given) {
  Options o = given;
  const Clock::time_point begun = Clock::now();
  if (o.at_most < kLongest)
    o.end = begun + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(o.at_most));
  std::string state;             // of the last answer
  std::optional<Error> refused;  // nobody listens: the service may be starting
  for (double pause = kFirstPause;; pause = std::min(1.5 * pause, kLongestPause)) {
    try {
      if (is_over(o, state)) return 0;
      refused.reset();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::resources && error.kind() != ErrorKind::rank_lost) throw;
      if (o.at_most == std::numeric_limits<double>::infinity() && error.kind() == ErrorKind::resources) throw;
      refused = error;
    }
    const double left = o.at_most - std::chrono::duration<double>(Clock::now() - begun).count();
    if (left <= 0 && refused && state.empty()) throw Error(refused->kind(), refused->what(), "at_most");
    if (left <= 0)
      throw Error(ErrorKind::rank_lost,
                  fmt::format("{} is still {} after {:g} s{}",
                              !o.job.empty()      ? o.job
                              : !o.matrix.empty() ? o.matrix
                                                  : std::string("the service"),
                              state, o.at_most, refused ? "; since it said so, the service has not answered" : ""),
                  "at_most");
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(pause, left)));
  }
}

}  // namespace

std::vector<ClientCommand> add_client_wait(const CommandLine& client) {
  const auto o = std::make_shared<Options>();
  std::vector<ClientCommand> commands;
  const CommandLine app = add_client_command(
      client, "wait", "Wait until the service is ready, a matrix is loaded, or a job is done", o, wait, commands);
  app.in(Topic::input)
      .add_option("--matrix", o->matrix, "wait until this matrix can be multiplied. Exit code 3: it cannot be loaded")
      ->check(name_in_service())
      ->common();
  app.in(Topic::input)
      .add_option("--job", o->job, "wait until this job is done. Exit code 3: it failed, or was cancelled")
      ->check(name_in_service())
      ->excludes(std::string("--matrix"))
      ->common();
  app.in(Topic::machine)
      .add_option("--at-most", o->at_most,
                  "give up after X seconds, with exit code 5. Until then also wait for a service that does not listen yet "
                  "(default: wait as long as a service listens)")
      ->check(positive_number())
      ->common();
  return commands;
}

}  // namespace shardmat::tools
