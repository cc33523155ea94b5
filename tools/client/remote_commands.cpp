#include "tools/client/remote_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/solver_settings.h"
#include "tools/cli/checks.h"
#include "tools/cli/print_report.h"
#include "tools/cli/setting_options.h"
#include "tools/client/remote_answers.h"

namespace shardmat::tools {
namespace {

using json = nlohmann::ordered_json;

/// A vector that stays on the ranks while a solve reads it.
class RemoteVector {
 public:
  RemoteVector(HttpClient& client, const RemoteMatrix& matrix, std::int64_t columns) : client_(client) {
    const std::string body = json{{"matrix", matrix.name}, {"columns", columns}}.dump();
    id_ = json::parse(ask(client, "POST", "/v1/vectors", std::as_bytes(std::span(body))).text())["id"];
  }
  ~RemoteVector() {
    try {
      client_.send("DELETE", "/v1/vectors/" + id_);
    } catch (const Error&) {  // the service has ended, and the vector with it
    }
  }
  RemoteVector(const RemoteVector&) = delete;
  RemoteVector& operator=(const RemoteVector&) = delete;

  void put(const HostVector<char>& bytes) {
    ask(client_, "PUT", "/v1/vectors/" + id_, std::as_bytes(std::span(bytes)), kBinary);
  }
  const std::string& id() const { return id_; }

 private:
  HttpClient& client_;
  std::string id_;
};

/// "&rtol=1e-10&restart=50" of the settings that were given.
std::string settings_of(const CommandLine& app, const SolverOptions& solver) {
  std::string query;
  for (const SolverSetting& setting : solver_settings())
    if (app.has_option(option_of(setting.name)) && app.count(option_of(setting.name)) > 0)
      query += fmt::format("&{}={}", setting.name, setting.get(solver));
  if (query.find_first_of(" %+#") == std::string::npos) return query;
  throw Error(ErrorKind::usage, "a service takes settings of solvers that are words and numbers alone");
}

std::string text_of_job(const json& job) {
  std::string text = fmt::format("Solve\n  method         {}, preconditioner {}\n", job.value("method", "none"),
                                 job.value("preconditioner", "none"));
  for (const json& column : job.value("result", json::array())) {
    const auto share =
        column["norm_of_b"].is_number() && column["true_residual"].is_number() && column["norm_of_b"] > 0
            ? fmt::format("{:.2e} of b", column["true_residual"].get<double>() / column["norm_of_b"].get<double>())
            : std::string("unknown");
    text += fmt::format("  column         {}, residual {} ({})\n",
                        human_count(column["iterations"].get<std::int64_t>(), "iteration"), share,
                        column["reason"].get<std::string>());
  }
  return text + fmt::format("  time           {} in the queue, {} at work\n",
                            human_seconds(job["queued_seconds"].get<double>()),
                            human_seconds(job["running_seconds"].get<double>()));
}

}  // namespace

int solve_remotely(const CommandLine& app, const RemoteChoice& remote, const SolveOptions& o, bool force) {
  std::vector<std::string> taken{"--b",        "--initial-guess", "--seed",      "--output",  "--files",
                                 "--force",    "--type",          "--rhs",       "--kernel",  "--exchange",
                                 "--sort",     "--reproducible",  "--same-bits", "--overlap", "--no-measure",
                                 "--no-cache", "--no-advice"};
  for (const SolverSetting& setting : solver_settings())
    if (setting.name != "node_block_size") taken.push_back(option_of(setting.name));
  require_remote_options(app, "solve", taken);
  if (!o.nodes.near_null_vectors.empty())
    throw Error(ErrorKind::usage, "a service takes no vectors of the near null space", "near_null_space");
  const std::int64_t columns = o.load.right_hand_sides;
  require_spared({{o.b, "b"}, {o.initial_guess, "the initial guess"}}, {o.output});
  check_output(o.output, "x", columns, o.files, force);
  HttpClient client = connect(remote);
  WantedMatrix wanted = wanted_of(app, o.matrix, o.load);
  wanted.solvable = true;
  const RemoteMatrix matrix = find_or_load(client, wanted);
  const auto b = open_vector(o.b, "b", matrix.rows, o.seed, columns);
  std::string query = fmt::format("k={}&wait={}&keep=1&alone=1", columns, kWaitSeconds) + settings_of(app, o.solver);
  std::unique_ptr<RemoteVector> guess;
  if (o.initial_guess != "zeros") {
    const auto x0 = open_vector(o.initial_guess, "x", matrix.rows, o.seed, columns);
    guess = std::make_unique<RemoteVector>(client, matrix, columns);
    guess->put(columns_of(*x0, matrix, matrix.rows, 0, columns));
    query += "&x0=" + guess->id();
  }
  const HostVector<char> body = columns_of(*b, matrix, matrix.rows, 0, columns);
  HttpReply reply =
      send_until_taken(client, "POST", matrix.path + "/solve?" + query, std::as_bytes(std::span(body)), kBinary);
  if (!reply.fields.contains("shardmat-job")) {
    checked(reply);
    throw Error(ErrorKind::internal, "the service answered without the job that it did");
  }
  const std::string id = reply.fields["shardmat-job"], path = "/v1/jobs/" + id;
  const json job = ask_json(client, path);
  if (job["state"] != "done" && !job.contains("x")) checked(reply);  // throws
  finish_job(client, id, [&] {
    if (job["state"] != "done") reply = ask(client, "GET", path + "/x");
    write_output(o.output, "x", matrix, rows_of_reply(reply, matrix, matrix.rows, columns), columns, o.files);
  });
  write_text("-", text_of(matrix, remote.where) + text_of_job(job));
  if (!matrix.note.empty()) print_news(matrix.note);
  if (job["state"] == "done") return 0;
  print_news(fmt::format("shardmat: the solver did not converge: {}\n", job.value("reason", "")));
  return kNotConverged;
}

int multiply_remotely(const CommandLine& app, const RemoteChoice& remote, const MultiplyOptions& o, bool force) {
  require_remote_options(app, "multiply",
                         {"--x",    "--y0",           "--seed",      "--output",  "--files",      "--force",   "--alpha",
                          "--beta", "--transpose",    "--type",      "--rhs",     "--iterations", "--kernel",  "--exchange",
                          "--sort", "--reproducible", "--same-bits", "--overlap", "--no-measure", "--no-cache"});
  const std::int64_t columns = o.load.right_hand_sides;
  require_spared({{o.x, "x"}, {o.y0, "y0"}}, {o.output});
  check_output(o.output, "y", columns, o.files, force);
  HttpClient client = connect(remote);
  WantedMatrix wanted = wanted_of(app, o.matrix, o.load);
  wanted.transposable = o.transpose;
  const RemoteMatrix matrix = find_or_load(client, wanted);
  const std::int64_t of_x = o.transpose ? matrix.rows : matrix.cols, of_y = o.transpose ? matrix.cols : matrix.rows;
  const auto x = open_vector(o.x, "x", of_x, o.seed, columns);
  const auto y0 = open_vector(o.y0, "y", of_y, o.seed, columns);
  HostVector<double> y(static_cast<std::size_t>(of_y * columns));
  std::vector<double> seconds;
  const std::int64_t repeated = app.count("--iterations") > 0 ? o.iterations : 0;
  for (std::int64_t first = 0; first < columns; first += matrix.widest) {
    const std::int64_t count = std::min(matrix.widest, columns - first);
    HostVector<char> body = columns_of(*x, matrix, of_x, first, count);
    if (o.beta != 0) {
      const HostVector<char> added = columns_of(*y0, matrix, of_y, first, count);
      body.insert(body.end(), added.begin(), added.end());
    }
    const std::string target = fmt::format("{}/multiply?k={}&alpha={}&beta={}&transpose={}", matrix.path, count, o.alpha,
                                           o.beta, o.transpose ? 1 : 0);
    for (std::int64_t turn = 0; turn <= repeated; ++turn) {
      const auto begun = std::chrono::steady_clock::now();
      const HttpReply reply = ask(client, "POST", target, std::as_bytes(std::span(body)), kBinary);
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
      const HostVector<double> part = rows_of_reply(reply, matrix, of_y, count);
      for (std::int64_t i = 0; i < of_y; ++i) std::copy_n(part.begin() + i * count, count, y.begin() + i * columns + first);
    }
  }
  write_output(o.output, "y", matrix, y, columns, o.files);
  std::sort(seconds.begin(), seconds.end());
  write_text("-", text_of(matrix, remote.where) +
                      fmt::format("{}, there and back\n  min {}, median {}, max {}\n",
                                  human_count(std::ssize(seconds), "request"), human_seconds(seconds.front()),
                                  human_seconds(seconds[seconds.size() / 2]), human_seconds(seconds.back())));
  if (!matrix.note.empty()) print_news(matrix.note);
  return 0;
}

}  // namespace shardmat::tools
