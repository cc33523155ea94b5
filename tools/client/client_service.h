// How the commands of `shardmat client` reach the service, and what they make of its answers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/host_vector.h"
#include "tools/cli/command.h"
#include "tools/cli/options.h"
#include "tools/client/http_client.h"

namespace shardmat::tools {

/// Where the service is, and by which token it knows this client.
struct ServiceAddress {
  std::string unix_socket, state, url, token_file, authorities;
  bool no_token = false;
  const char* timeout_setting = "timeout";
  double timeout = 0;                                                    ///< of each step, in seconds; 0: none
  Patience::Clock::time_point end = Patience::Clock::time_point::max();  ///< of all of them

  std::filesystem::path state_file(const char* file) const;
};

void add_address_options(const CommandLine& app, ServiceAddress& address);

/// A command of `shardmat client`, and what it does.
struct ClientCommand {
  CommandLine app;
  std::function<int()> run;
};

/// Adds a command whose options `run` gets; `O` is a ServiceAddress.
template <class O>
CommandLine add_client_command(const CommandLine& client, const char* name, const char* help, const std::shared_ptr<O>& o,
                               int (*run)(const O&), std::vector<ClientCommand>& commands) {
  const CommandLine app = client.add_subcommand(name, help);
  add_address_options(app, *o);
  commands.push_back({app, [o, run] { return run(*o); }});
  return app;
}

/// What a matrix or vector may be called: part of a request's path.
ValueCheck name_in_service();

/// Throws Error(resources) if no service listens there, Error(input) without its token.
HttpClient connect(const ServiceAddress& address);

/// The reply, if it is not an error of the service; that is thrown.
HttpReply checked(HttpReply reply);
/// As HttpClient::send(). A request that the service refuses before it begins (its queue is full, its ranks start), and
/// for which it names a time to come again, is sent again then, within the client's limit.
HttpReply send_until_taken(HttpClient& client, const std::string& method, const std::string& target,
                           std::span<const std::byte> body = {}, const std::string& content_type = "application/json");
/// The same, checked().
HttpReply ask(HttpClient& client, const std::string& method, const std::string& target, std::span<const std::byte> body = {},
              const std::string& content_type = "application/json");
nlohmann::ordered_json ask_json(HttpClient& client, const std::string& target);

/// Appends columns [first, first + count) of a row-major matrix, one after another.
template <class T>
void append_columns(std::span<const double> rows, std::int64_t columns, std::int64_t first, std::int64_t count,
                    HostVector<T>& result) {
  const std::int64_t n = std::ssize(rows) / columns;
  for (std::int64_t j = 0; j < count; ++j)
    for (std::int64_t i = 0; i < n; ++i)
      result.push_back(static_cast<T>(rows[static_cast<std::size_t>(i * columns + first + j)]));
}

/// Row by row, from columns one after another.
template <class T>
HostVector<double> rows_of(std::span<const std::byte> bytes, std::int64_t n, std::int64_t columns) {
  const T* values = reinterpret_cast<const T*>(bytes.data());
  HostVector<double> rows(static_cast<std::size_t>(n * columns));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      rows[static_cast<std::size_t>(i * columns + j)] = static_cast<double>(values[j * n + i]);
  return rows;
}

}  // namespace shardmat::tools
