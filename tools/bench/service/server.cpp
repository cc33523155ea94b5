#include "tools/bench/service/server.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "kernels/base/error.h"
#include "tools/bench/service/materials.h"
#include "tools/cli/other_programs.h"

namespace shardmat::tools::service_bench {

namespace fs = std::filesystem;
using json = nlohmann::json;

namespace {

std::size_t entry_bytes(const std::string& type) { return type == "f32" ? sizeof(float) : sizeof(double); }

constexpr double kReadySeconds = 90, kStopSeconds = 30;

void nap(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

std::string last_line_of(const fs::path& log) {
  std::ifstream file(log);
  std::string last;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) last = line;
  return last;
}

/// Beside the library.
fs::path make_state_directory(const fs::path& library) {
  std::string name = (library.parent_path() / "state-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw Error(ErrorKind::resources, fmt::format("cannot make a folder {}", name));
  return name;
}

}  // namespace

void run_to_end(const std::vector<std::string>& command, const fs::path& log) {
  const std::string how = serve::reap(serve::start_process(command, log));
  if (how == "exit code 0") return;
  std::string words;
  for (const std::string& word : command) words += (words.empty() ? "" : " ") + word;
  throw Error(ErrorKind::resources, fmt::format("{} ended with {}: {}", words, how, last_line_of(log)));
}

Resident::Resident(std::string_view description) {
  const json all = json::parse(description);
  name = all["name"], source = all["source"], type = all["type"], exchange = all["exchange"];
  rows = all["rows"], cols = all["cols"];
  for (const json& width : all["widths"]) widths.push_back({width["columns"], width["seconds"]});
}

std::size_t Resident::x_bytes() const { return static_cast<std::size_t>(cols) * entry_bytes(type); }
std::size_t Resident::y_bytes() const { return static_cast<std::size_t>(rows) * entry_bytes(type); }

double Resident::most_per_second() const {
  double most = 0;
  for (const service::WidthTime& width : widths) most = std::max(most, static_cast<double>(width.width) / width.seconds);
  return most;
}

Server::Server(const MatrixFolder& library, int ranks, const std::vector<std::string>& more)
    : state_(make_state_directory(library.path())), socket_((state_ / "http.sock").string()), ranks_(ranks) {
  std::vector<std::string> command{(program_folder() / "shardmat").string(),
                                   "serve",
                                   "--library",
                                   library.path().string(),
                                   "--state",
                                   state_.string(),
                                   "--backend",
                                   library.backend(),
                                   "--ranks",
                                   std::to_string(ranks)};
  command.insert(command.end(), more.begin(), more.end());
  const double began = now();
  process_ = serve::start_process(command, state_ / "server.log");
  handle_ = serve::ProcessHandle(process_);
  try {
    wait_until_ready(kReadySeconds);
  } catch (...) {
    stop();
    throw;
  }
  start_seconds_ = now() - began;
}

Server::~Server() { stop(); }

std::string Server::stop() {
  if (process_ == 0) return "not running";
  std::vector<serve::ProcessHandle> family;
  for (const pid_t one : family_of(process_)) family.emplace_back(one);
  handle_.signal(SIGTERM);
  for (const double end = now() + kStopSeconds; !handle_.ended() && now() < end;) nap(0.005);
  for (const serve::ProcessHandle& one : family)
    if (!one.ended()) one.signal(SIGKILL);
  const std::string how = serve::reap(process_);
  process_ = 0;
  std::error_code ignored;
  fs::remove_all(state_, ignored);
  return how;
}

std::string Server::last_line() const {
  const std::string ranks = last_line_of(state_ / "workers.log");
  return last_line_of(state_ / "server.log") + (ranks.empty() ? "" : "; " + ranks);
}

bool Server::ready() {
  if (handle_.ended()) throw Error(ErrorKind::rank_lost, fmt::format("the service has ended: {}", last_line()));
  try {
    return Connection(socket_).ask(make_request("GET", "/v2/health/ready")).status == 200;
  } catch (const Error&) {  // it does not listen yet
    return false;
  }
}

void Server::wait_until_ready(double seconds) {
  for (const double end = now() + seconds; !ready(); nap(0.002))
    if (now() > end)
      throw Error(ErrorKind::rank_lost, fmt::format("the service is not ready after {:g} s: {}", seconds, last_line()));
}

Resident Server::load(const std::string& name, const std::string& source, const std::string& type) {
  Connection connection(socket_);
  const std::string body = json{{"source", source}, {"type", type}}.dump();
  const Reply reply =
      connection.ask(make_request("POST", fmt::format("/v1/matrices/{}/load?wait=1", name), std::as_bytes(std::span(body))));
  if (reply.status != 200)
    throw Error(ErrorKind::resources, fmt::format("{} was not loaded: {} {}", source, reply.status, reply.text()));
  return Resident(reply.text());
}

void Server::unload(const std::string& name) {
  Connection connection(socket_);
  const Reply reply = connection.ask(make_request("POST", fmt::format("/v1/matrices/{}/unload", name)));
  if (reply.status != 200)
    throw Error(ErrorKind::resources, fmt::format("{} was not unloaded: {} {}", name, reply.status, reply.text()));
}

std::string Server::make_vector(const Resident& matrix, bool as_y, std::int64_t columns) {
  Connection connection(socket_);
  const std::string body = json{{"matrix", matrix.name}, {"layout", as_y ? "rows" : "columns"}, {"columns", columns}}.dump();
  const Reply reply = connection.ask(make_request("POST", "/v1/vectors", std::as_bytes(std::span(body))));
  if (reply.status != 201)
    throw Error(ErrorKind::resources, fmt::format("a vector was not made: {} {}", reply.status, reply.text()));
  return json::parse(reply.text())["id"];
}

std::vector<pid_t> Server::rank_processes() const {
  std::vector<pid_t> ranks;
  for (const pid_t one : family_of(process_)) {
    const std::vector<std::string> words = words_of(one);
    if (words.size() > 1 && words[1] == "worker") ranks.push_back(one);
  }
  return ranks;
}

Totals Server::totals() const {
  Totals totals;
  for (const pid_t one : family_of(process_)) {
    const Usage usage = usage_of(one);
    totals.cpu_seconds += usage.cpu_seconds;
    totals.bytes += usage.own_bytes + (one == process_ ? usage.shared_bytes : 0);
    totals.descriptors += usage.descriptors;
    totals.shm_bytes += usage.shm_bytes;
  }
  return totals;
}

}  // namespace shardmat::tools::service_bench
