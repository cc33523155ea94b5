#include "tools/client/client_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "kernels/base/error.h"
#include "tools/cli/value_checks.h"
#include "tools/serve/http/names.h"
#include "tools/serve/options/serve_options.h"
#include "tools/serve/state/state_directory.h"

namespace shardmat::tools {

using json = nlohmann::ordered_json;

std::filesystem::path ServiceAddress::state_file(const char* file) const {
  return (state.empty() ? serve::default_state_directory() : std::filesystem::path(state)) / file;
}

namespace {

/// The first line of the token's file.
std::string read_token(const ServiceAddress& o) {
  const std::string file = o.token_file.empty() ? o.state_file(serve::kTokenFile).string() : o.token_file;
  std::ifstream stream(file);
  std::string token;
  if (!std::getline(stream, token))
    throw Error(ErrorKind::input, fmt::format("{}: there is no token; name its file", file), "token-file");
  if (std::any_of(token.begin(), token.end(), [](char c) { return c <= ' ' || c > '~'; }))
    throw Error(ErrorKind::input, fmt::format("{}: this is no token", file), "token-file");
  return token;
}

ErrorKind kind_of(int status) {
  switch (status) {
    case 503:
      return ErrorKind::rank_lost;
    case 413:
    case 429:
    case 507:
      return ErrorKind::resources;
    case 500:
      return ErrorKind::internal;
    default:
      return ErrorKind::input;
  }
}

/// Of requests of clients without a limit.
constexpr double kRetrySeconds = 60;
constexpr double kShortestPause = 0.01, kLongestPause = 2;

/// When a request that was refused before it began may come again, in seconds; nothing: never.
std::optional<double> seconds_to_retry(const HttpReply& reply) {
  if (reply.status != 429 && reply.status != 503) return std::nullopt;
  const json problem = json::parse(reply.text(), nullptr, false);
  if (!problem.is_object() || !problem.contains("retry_after_ms") || !problem["retry_after_ms"].is_number())
    return std::nullopt;
  const std::string code = problem.value("code", "");
  if (reply.status == 503 && code != "restarting" && code != "starting" && code != "too_many_connections")
    return std::nullopt;
  return problem["retry_after_ms"].get<double>() / 1000;
}

}  // namespace

HttpReply send_until_taken(HttpClient& client, const std::string& method, const std::string& target,
                           std::span<const std::byte> body, const std::string& content_type) {
  using Clock = Patience::Clock;
  using Seconds = std::chrono::duration<double>;
  const RetryLimit& limit = client.retries();
  const Clock::time_point begun = Clock::now();
  for (double pause = kShortestPause;; pause = std::min(2 * pause, kLongestPause)) {
    HttpReply reply = client.send(method, target, body, content_type);
    const std::optional<double> wait = seconds_to_retry(reply);
    if (!wait) return reply;
    const Clock::time_point time = Clock::now();
    const Seconds left = std::min(Seconds(limit.seconds) - Seconds(time - begun), Seconds(limit.end - time));
    const Seconds next(std::max(*wait, pause));
    if (next > left) return reply;
    std::this_thread::sleep_for(next);
  }
}

HttpClient connect(const ServiceAddress& o) {
  const Patience patience(o.timeout, o.end, o.timeout_setting);
  const RetryLimit retries{o.timeout > 0 ? o.timeout : kRetrySeconds, o.end};
  if (o.url.empty()) {
    const std::string path = o.unix_socket.empty() ? o.state_file(serve::kDefaultSocket).string() : o.unix_socket;
    return {[path, patience] { return connect_unix(path, patience); }, "localhost", "", retries};
  }
  const ServerUrl url = parse_server_url(o.url);
  const std::string token = o.no_token ? "" : read_token(o), authorities = o.authorities;
  return {[url, authorities, patience] { return connect_url(url, authorities, patience); }, url.authority, token, retries};
}

HttpReply checked(HttpReply reply) {
  if (reply.status < 400) return reply;
  const json problem = json::parse(reply.text(), nullptr, false);
  const bool clear = problem.is_object() && problem.contains("error") && problem["error"].is_string();
  throw Error(kind_of(reply.status),
              clear ? problem["error"].get<std::string>() : fmt::format("the service answered {}", reply.status));
}

HttpReply ask(HttpClient& client, const std::string& method, const std::string& target, std::span<const std::byte> body,
              const std::string& content_type) {
  return checked(send_until_taken(client, method, target, body, content_type));
}

json ask_json(HttpClient& client, const std::string& target) { return json::parse(ask(client, "GET", target).text()); }

ValueCheck name_in_service() {
  return value_check([](const std::string& text) { return serve::is_matrix_name(text); },
                     "a letter or digit, then at most 63 letters, digits, '.', '_' and '-'");
}

void add_address_options(const CommandLine& command, ServiceAddress& o) {
  const CommandLine app = command.in(Topic::machine);
  app.add_option("--unix", o.unix_socket, "the service's socket (default: http.sock in --state)")->type_name("PATH");
  app.add_option("--state", o.state, "the service's state directory (default: as for shardmat serve)")->type_name("DIR");
  app.add_option("--url", o.url, "an address of the service in place of its socket, as http://127.0.0.1:8980")
      ->type_name("URL")
      ->excludes(std::string("--unix"));
  app.add_option("--token-file", o.token_file, "file with the token for --url (default: token in --state)")
      ->type_name("FILE");
  app.add_flag("--no-token", o.no_token, "use --url without a token")->excludes(std::string("--token-file"));
  app.add_option("--ca", o.authorities, "PEM file with the certificates to trust for https (default: those of this system)")
      ->type_name("FILE");
  app.add_option(
         "--timeout", o.timeout,
         "give up, with exit code 5, if the service neither takes nor sends anything for X seconds. A load can take "
         "minutes. What the service refuses to begin, as it is busy or starts its ranks, is sent again for that long, too "
         "(default: wait as long as the service does, and send again for 60 s)")
      ->check(positive_number());
}

}  // namespace shardmat::tools
