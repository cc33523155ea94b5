#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "tools/cli/checks.h"
#include "tools/cli/print_report.h"
#include "tools/client/client_jobs.h"
#include "tools/client/remote_answers.h"
#include "tools/client/remote_commands.h"

namespace shardmat::tools {
namespace {

using json = nlohmann::ordered_json;

/// An option, and its value as the setting of the same name that jobs have.
struct Setting {
  const char* option;
  std::string (*text)(const EigenOptions& options);
};
const Setting kSettings[] = {
    {"--method", [](const EigenOptions& o) { return std::string(name(o.method)); }},
    {"--shift", [](const EigenOptions& o) { return fmt::format("{}", o.pair.shift.value_or(0)); }},
    {"--inner", [](const EigenOptions& o) { return o.pair.inner; }},
    {"--inner-tolerance", [](const EigenOptions& o) { return fmt::format("{}", o.pair.inner_tolerance); }},
    {"--guard", [](const EigenOptions& o) { return fmt::format("{}", o.pair.guard); }},
    {"--count", [](const EigenOptions& o) { return fmt::format("{}", o.settings.count); }},
    {"--which", [](const EigenOptions& o) { return std::string(name(o.settings.which)); }},
    {"--tolerance", [](const EigenOptions& o) { return fmt::format("{}", o.settings.tolerance); }},
    {"--basis", [](const EigenOptions& o) { return fmt::format("{}", o.settings.basis); }},
    {"--seed", [](const EigenOptions& o) { return fmt::format("{}", o.settings.seed); }},
    {"--max-iterations", [](const EigenOptions& o) { return fmt::format("{}", o.settings.max_iterations); }},
    {"--check-count", [](const EigenOptions& o) { return fmt::format("{:d}", o.pair.check_count); }},
    {"--assume-symmetric", [](const EigenOptions& o) { return fmt::format("{:d}", o.settings.assume_symmetric); }},
};

std::string query_of(const CommandLine& app, const EigenOptions& options) {
  std::string query;
  for (const Setting& setting : kSettings) {
    if (app.count(setting.option) == 0) continue;
    std::string name(std::string_view(setting.option).substr(2));
    std::replace(name.begin(), name.end(), '-', '_');
    query += fmt::format("&{}={}", name, setting.text(options));
  }
  return query + (app.count("--no-confirm") > 0 ? "&confirm=0" : "");
}

}  // namespace

int eigen_remotely(const CommandLine& app, const RemoteChoice& remote, const EigenOptions& o, bool force) {
  std::vector<std::string> taken{"--mass",     "--vectors",    "--force",        "--type",      "--kernel",
                                 "--exchange", "--sort",       "--reproducible", "--same-bits", "--overlap",
                                 "--no-cache", "--no-measure", "--no-confirm"};
  for (const Setting& setting : kSettings) taken.emplace_back(setting.option);
  require_remote_options(app, "eigen", taken);
  require_spared({{o.matrix, "the matrix"}, {o.mass, "the mass matrix"}}, {o.vectors});
  check_output(o.vectors, "vectors", o.settings.count, 1, force);
  HttpClient client = connect(remote);
  WantedMatrix wanted = wanted_of(app, o.matrix, o.load);
  wanted.solvable = true;
  const RemoteMatrix matrix = find_or_load(client, wanted);
  std::string query = fmt::format("wait={}", kWaitSeconds) + query_of(app, o);
  if (!o.mass.empty()) {
    WantedMatrix of_mass = wanted;
    of_mass.matrix = mass_file(o), of_mass.type = matrix.f32 ? "f32" : "f64";
    query += "&mass=" + find_or_load(client, of_mass).name;
  }
  const HttpReply reply = send_until_taken(client, "POST", matrix.path + "/eigen?" + query);
  if (!reply.fields.contains("shardmat-job")) {
    checked(reply);
    throw Error(ErrorKind::internal, "the service answered without the job that it did");
  }
  const std::string id = reply.fields.at("shardmat-job");
  const json job = ask_json(client, "/v1/jobs/" + id);
  if (job["state"] != "done" && !job.contains("x")) checked(reply);  // throws
  finish_job(client, id, [&] {
    if (o.vectors.empty()) return;
    const std::int64_t columns = job["columns"];
    const HttpReply x = ask(client, "GET", "/v1/jobs/" + id + "/x");
    write_output(o.vectors, "vectors", matrix, rows_of_reply(x, matrix, matrix.rows, columns), columns, 1);
  });
  write_text("-", text_of(matrix, remote.where) +
                      fmt::format("Eigenvalues by {}{}\n", job.value("method", "no method"),
                                  o.mass.empty() ? "" : ": value, frequency, residual") +
                      text_of_pairs(job) +
                      fmt::format("  time           {} in the queue, {} at work\n",
                                  human_seconds(job["queued_seconds"].get<double>()),
                                  human_seconds(job["running_seconds"].get<double>())));
  if (!matrix.note.empty()) print_news(matrix.note);
  if (job["state"] == "done") return code_of_pairs(job);
  print_news(fmt::format("shardmat: not all eigenvalues converged: {}\n", job.value("reason", "")));
  return kNotConverged;
}

}  // namespace shardmat::tools
