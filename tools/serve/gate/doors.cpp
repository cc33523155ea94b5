#include "tools/serve/gate/doors.h"

#include <fmt/format.h>
#include <grp.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "kernels/base/error.h"
#include "tools/serve/words/log.h"

namespace shardmat::serve {
namespace {

void check(const ServeOptions& o, const std::vector<TcpAddress>& addresses) {
  if (o.tls_certificate.empty() != o.tls_key.empty())
    throw Error(ErrorKind::usage, "a certificate and its key go together; give both",
                o.tls_key.empty() ? "tls-key" : "tls-certificate");
  if (addresses.empty() && !o.tls_certificate.empty())
    throw Error(ErrorKind::usage, "a certificate is for addresses; give one to listen on", "listen");
  for (const TcpAddress& address : addresses) {
    if (is_loopback(address)) continue;
    if (o.no_token)
      throw Error(ErrorKind::usage, fmt::format("{} is reached from other hosts: clients need tokens there", address.host),
                  "no-token");
    if (o.tls_certificate.empty() && o.trusted_proxies.empty())
      throw Error(
          ErrorKind::usage,
          fmt::format(
              "{} is reached from other hosts and needs TLS; give a certificate and its key, listen on 127.0.0.1, or "
              "name the proxies that alone may come without TLS (--trusted-proxy)",
              address.host),
          "listen");
  }
}

std::vector<std::string> proxies_of(const ServeOptions& o) {
  if (!o.trusted_proxies.empty() && o.no_token)
    throw Error(ErrorKind::usage, "clients of a proxy come from other hosts and need tokens", "no-token");
  std::vector<std::string> proxies;
  for (const std::string& text : o.trusted_proxies) {
    const auto address = parse_address(text);
    if (!address)
      throw Error(ErrorKind::usage, fmt::format("{} is no address; give that of the proxy, as 10.0.0.2", text),
                  "trusted-proxy");
    proxies.push_back(*address);
  }
  return proxies;
}

std::optional<gid_t> group_of(const ServeOptions& o, const StateDirectory& state) {
  if (o.unix_group.empty()) return std::nullopt;
  const group* found = getgrnam(o.unix_group.c_str());
  if (found == nullptr) throw Error(ErrorKind::usage, fmt::format("there is no group {}", o.unix_group), "unix-group");
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::absolute(o.unix_socket, ignored).parent_path();
  if (o.unix_socket.empty() || std::filesystem::equivalent(folder, state.path(), ignored))
    throw Error(ErrorKind::usage,
                "the state directory is open to this user alone; name a socket in a directory that the group may enter",
                "unix");
  return found->gr_gid;
}

}  // namespace

Doors::Doors(const ServeOptions& o, const StateDirectory& state) : tokens_file_(o.tokens) {
  std::vector<TcpAddress> addresses;
  for (const std::string& text : o.listen) addresses.push_back(parse_tcp_address(text));
  check(o, addresses);
  if (!addresses.empty() && !o.no_token) {
    const std::string secret = own_secret(state.path() / kTokenFile);
    own_ = Token{sha256(secret), std::make_shared<Rights>(Rights::of_owner("owner"))};
  }
  gate_ = std::make_unique<Gate>(Gate::Options{o.host_names, o.origins, !o.no_token, proxies_of(o)}, tokens());
  if (!o.tls_certificate.empty()) tls_ = std::make_unique<Tls>(o.tls_certificate, o.tls_key);
  listeners_.push_back(Listener::unix_socket(
      o.unix_socket.empty() ? (state.path() / kDefaultSocket).string() : o.unix_socket, group_of(o, state)));
  for (const TcpAddress& address : addresses) listeners_.push_back(Listener::tcp(address));
  if (o.no_token && !addresses.empty())
    log_line("WARNING: --no-token: every program and every user of this host may use the service, without a token");
}

TokenTable Doors::tokens() const {
  TokenTable table = tokens_file_.empty() ? TokenTable() : read_tokens(tokens_file_);
  if (own_) table.add(*own_);
  return table;
}

void Doors::open(HttpServer& server) {
  for (Listener& listener : listeners_) {
    const bool tcp = !listener.is_unix();
    log_line(fmt::format("listening on {}{}", tcp ? tls_ ? "https://" : "http://" : "", listener.name()));
    server.add(std::move(listener), tcp ? tls_.get() : nullptr);
  }
  listeners_.clear();
}

void read_again(const char* what, const std::function<void()>& read) {
  try {
    read();
    log_line(fmt::format("SIGHUP: {} read again", what));
  } catch (const Error& error) {
    log_line(fmt::format("SIGHUP: {} not read, the old stays: {}", what, error.what()));
  }
}

void Doors::reload() {
  if (!tokens_file_.empty()) read_again("tokens", [this] { gate_->set_tokens(tokens()); });
  if (tls_) read_again("certificate and key", [this] { tls_->reload(); });
}

}  // namespace shardmat::serve
