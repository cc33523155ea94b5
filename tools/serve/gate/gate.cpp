#include "tools/serve/gate/gate.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <utility>

namespace shardmat::serve {
namespace {

bool is_same(const std::string& a, const std::string& b) { return strcasecmp(a.c_str(), b.c_str()) == 0; }

bool changes_something(const std::string& method) { return method != "GET" && method != "HEAD" && method != "OPTIONS"; }

/// The token of "Bearer TOKEN"; empty for anything else.
std::string_view bearer(std::string_view field) {
  constexpr std::string_view kScheme = "Bearer ";
  if (field.size() <= kScheme.size() || field.size() > 512 || strncasecmp(field.data(), kScheme.data(), kScheme.size()) != 0)
    return {};
  return field.substr(kScheme.size());
}

/// A browser goes where a name's address leads, and a foreign page can have its own name lead here, even to a Unix socket
/// behind a forwarded port. Other programs on the Unix socket may call the service as they like.
bool is_browser(const RequestHead& head) {
  return head.field("User-Agent").substr(0, 8) == "Mozilla/" || !head.field("Sec-Fetch-Site").empty();
}

/// The address of an entry of X-Forwarded-For; some proxies write "192.0.2.1:5555", "[2001:db8::1]" or "[2001:db8::1]:443".
/// Anything else comes back as it is.
std::string forwarded_address(std::string_view entry) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t first = std::min(entry.find_first_not_of(kBlanks), entry.size());
  entry = entry.substr(first, entry.find_last_not_of(kBlanks) - first + 1);
  const std::size_t bracket = entry.find(']'), colon = entry.rfind(':');
  const bool in_brackets = entry.starts_with('[') && bracket != std::string_view::npos;
  const bool has_port = in_brackets ? colon == bracket + 1 : entry.find(':') == colon && colon != std::string_view::npos;
  const std::string_view host = has_port ? entry.substr(0, colon) : entry;
  const auto port = parse_whole(has_port ? entry.substr(colon + 1) : "0");
  if (!port || *port < 0 || *port > 65535) return std::string(entry);
  return std::string(in_brackets && host.size() == bracket + 1 ? host.substr(1, bracket - 1) : host);
}

Reply unauthorised(std::string text, const char* challenge) {
  Reply reply = problem_reply(401, "unauthorized", std::move(text));
  reply.fields.emplace_back("WWW-Authenticate", challenge);
  return reply;
}

Reply expired(const Rights& rights) {
  return unauthorised(fmt::format("the token {} has expired", rights.name()),
                      "Bearer realm=\"shardmat\", error=\"invalid_token\"");
}

}  // namespace

std::string host_of(std::string_view field) {
  const std::size_t bracket = field.rfind(']'), colon = field.rfind(':');
  const bool has_port = colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  if (!has_port) return std::string(field);
  const auto port = parse_whole(field.substr(colon + 1));
  return port && *port >= 0 && *port <= 65535 ? std::string(field.substr(0, colon)) : std::string();
}

Gate::Gate(Options options, TokenTable tokens)
    : options_(std::move(options)),
      tokens_(std::move(tokens)),
      unix_(std::make_shared<Rights>(Rights::of_owner("unix"))),
      anyone_(std::make_shared<Rights>(Rights::of_anyone("anyone"))) {
  for (const char* host : {"localhost", "127.0.0.1", "[::1]"}) options_.hosts.emplace_back(host);
}

std::optional<Problem> Gate::find_client(RequestHead& head) const {
  Peer& peer = head.peer;
  if (peer.is_unix) return std::nullopt;
  const auto is_proxy = [this](const std::string& address) {
    return std::find(options_.proxies.begin(), options_.proxies.end(), address) != options_.proxies.end();
  };
  if (!is_proxy(peer.address)) {
    if (peer.has_tls || peer.is_loopback) return std::nullopt;
    return make_problem(403, "not_proxy", "without TLS this address is for proxies alone (--trusted-proxy)");
  }
  std::string all;  // several fields are one list
  for (const auto& [name, value] : head.fields)
    if (is_same(name, "X-Forwarded-For")) all += (all.empty() ? "" : ",") + value;
  // Each proxy appends whom it sees. What stands before the last one that is no proxy of ours, the client may have written.
  while (is_proxy(peer.address) && !all.empty()) {
    const std::size_t comma = all.rfind(',');
    const auto address = parse_address(forwarded_address(comma == std::string::npos ? all : all.substr(comma + 1)));
    all.resize(comma == std::string::npos ? 0 : comma);
    if (!address) return make_problem(400, "malformed", "X-Forwarded-For is no list of addresses");
    peer.address = *address;
  }
  peer.is_loopback = false;
  peer.has_tls = peer.has_tls || head.field("X-Forwarded-Proto") == "https";
  return std::nullopt;
}

std::optional<Problem> Gate::check_source(const RequestHead& head) const {
  if ((!head.peer.is_unix || is_browser(head)) && !is_own_host(head))
    return make_problem(421, "wrong_host",
                        "this service is not called by this Host; the option --host-name of shardmat serve adds names");
  const std::string& origin = head.field("Origin");
  if (origin.empty() || is_good_origin(origin) || is_own_origin(head)) return std::nullopt;
  const bool is_preflight = head.method == "OPTIONS" && !head.field("Access-Control-Request-Method").empty();
  if (!changes_something(head.method) && !is_preflight) return std::nullopt;
  return make_problem(403, "wrong_origin",
                      "web pages of this Origin may change nothing here; the option --origin of shardmat serve allows one");
}

bool Gate::is_own_host(const RequestHead& head) const {
  const std::string host = host_of(head.field("Host"));
  const auto is_ours = [&](const std::string& own) { return is_same(own, host); };
  return !host.empty() &&
         (is_ours(head.peer.own_address) || std::any_of(options_.hosts.begin(), options_.hosts.end(), is_ours));
}

/// True for requests of the service's own page.
bool Gate::is_own_origin(const RequestHead& head) const {
  return is_own_host(head) &&
         is_same(head.field("Origin"), (head.peer.has_tls ? "https://" : "http://") + head.field("Host"));
}

bool Gate::is_good_origin(const std::string& origin) const {
  return std::find(options_.origins.begin(), options_.origins.end(), origin) != options_.origins.end();
}

std::vector<std::pair<std::string, std::string>> Gate::fields_for_pages(const RequestHead& head) const {
  if (options_.origins.empty()) return {};
  const std::string& origin = head.field("Origin");
  if (origin.empty() || !is_good_origin(origin)) return {{"Vary", "Origin"}};
  return {{"Vary", "Origin"},
          {"Access-Control-Allow-Origin", origin},
          {"Access-Control-Expose-Headers",
           "Inference-Header-Content-Length, Location, Retry-After, Server-Timing, Shardmat-Batch, Shardmat-Generation, "
           "Shardmat-Shape, Shardmat-Type, X-Request-Id"}};
}

Reply Gate::options_reply(const RequestHead& head) {
  constexpr const char* kMethods = "GET, HEAD, POST, PUT, DELETE, OPTIONS";
  Reply reply;
  reply.status = 204;
  reply.fields = {{"Allow", kMethods}};
  if (head.field("Access-Control-Request-Method").empty()) return reply;
  reply.fields.emplace_back("Access-Control-Allow-Methods", kMethods);
  reply.fields.emplace_back("Access-Control-Allow-Headers",
                            "Authorization, Content-Type, If-Match, Inference-Header-Content-Length, Shardmat-Deadline-Ms, "
                            "Shardmat-Priority, X-Request-Id, traceparent");
  reply.fields.emplace_back("Access-Control-Max-Age", "600");
  if (head.field("Access-Control-Request-Private-Network") == "true")
    reply.fields.emplace_back("Access-Control-Allow-Private-Network", "true");
  return reply;
}

std::optional<Reply> Gate::identify(RequestHead& head, double now, double since_1970) {
  if (head.peer.is_unix) {
    head.rights = unix_;
    return std::nullopt;
  }
  if (!options_.needs_token) {
    head.rights = anyone_;
    return std::nullopt;
  }
  const std::string& field = head.field("Authorization");
  if (const auto session = field.empty() ? sessions_.find(head.field("Cookie"), now) : nullptr) {
    const bool is_ours = is_own_origin(head) || is_good_origin(head.field("Origin"));
    if (changes_something(head.method) && (!is_ours || head.field(kPageField).empty()))
      return problem_reply(
          403, "not_from_page",
          fmt::format("with a cookie only the service's own page changes something: its requests have the field "
                      "{} and its Origin; give a token instead: Authorization: Bearer TOKEN",
                      kPageField));
    if (session->rights->expires <= since_1970) return expired(*session->rights);
    head.rights = session->rights;
    head.session = session;
    return std::nullopt;
  }
  if (field.empty()) return unauthorised("a token is needed: Authorization: Bearer TOKEN", "Bearer realm=\"shardmat\"");
  if (const Token* token = tokens_.find(bearer(field))) {
    if (token->rights->expires <= since_1970) return expired(*token->rights);
    head.rights = token->rights;
    return std::nullopt;
  }
  return unauthorised("there is no such token", "Bearer realm=\"shardmat\", error=\"invalid_token\"");
}

std::optional<std::string> Gate::log_in(const RequestHead& head, std::string_view secret, double now, double since_1970) {
  const Token* token = tokens_.find(secret);
  if (token == nullptr || token->rights->expires <= since_1970) return std::nullopt;
  return cookie(head, sessions_.open(token->rights, now, token->rights->expires - since_1970), Sessions::kSeconds);
}

std::string Gate::log_out(const RequestHead& head) {
  sessions_.close(head.field("Cookie"));
  return cookie(head, "", 0);
}

std::string Gate::cookie(const RequestHead& head, const std::string& value, int seconds) const {
  return fmt::format("{}={}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{}", sessions_.cookie_name(), value, seconds,
                     head.peer.has_tls ? "; Secure" : "");
}

void Gate::set_tokens(TokenTable tokens) {
  tokens.replace(tokens_);
  tokens_ = std::move(tokens);
}

bool Gate::has_tenant(const std::string& tenant) const {
  return tokens_.has_tenant(tenant) || tenant == unix_->tenant() || tenant == anyone_->tenant();
}

Reply Gate::revoked() { return unauthorised("the token was revoked", "Bearer realm=\"shardmat\", error=\"invalid_token\""); }

std::optional<Problem> Gate::check_rights(const Rights& rights, Scope scope, const std::string& matrix) {
  if (!rights.may(scope))
    return make_problem(403, "missing_scope", fmt::format("the token {} has no scope {}", rights.name(), scope_name(scope)));
  if (!matrix.empty() && !rights.may_use(matrix))
    return make_problem(403, "wrong_matrix", fmt::format("the token {} is not for the matrix {}", rights.name(), matrix));
  return std::nullopt;
}

std::optional<Problem> Gate::check_quota(const RequestHead& head, double now) {
  const Rights& rights = *head.rights;
  if (rights.requests_per_second == 0 && rights.bytes_per_second == 0) return std::nullopt;
  Quotas& quotas = quotas_[rights.name()];
  if (quotas.requests.rate() != rights.requests_per_second) quotas.requests = Quota(rights.requests_per_second);
  if (quotas.bytes.rate() != rights.bytes_per_second) quotas.bytes = Quota(rights.bytes_per_second);
  const auto bytes = static_cast<double>(head.content_length);
  const double wait = std::max(quotas.requests.wait(1, now), quotas.bytes.wait(bytes, now));
  if (wait > 0) {
    Problem problem = make_problem(429, "quota", fmt::format("the token {} has used up its quota", rights.name()));
    problem.retry_after_seconds = wait;
    return problem;
  }
  quotas.requests.take(1);
  quotas.bytes.take(bytes);
  return std::nullopt;
}

}  // namespace shardmat::serve
