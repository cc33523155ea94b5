// Decides who a client is and whether it may do what it asks for, by the header of its request.
//
// On the Unix socket everyone is the owner: only this user can open it. Everywhere else a client needs a token, and its
// request must be addressed to this service and, if it changes something, not come from a foreign web page. The cookie of a
// session (sessions.h) does for the token; what changes something by it must come from the service's own page.
//
// Threads: the thread of the event loop.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/serve/gate/sessions.h"
#include "tools/serve/gate/tokens.h"
#include "tools/serve/http/http_message.h"
#include "tools/serve/http/routes.h"
#include "tools/serve/words/quota.h"

namespace shardmat::serve {

/// The name in a Host field, without its port; empty for a malformed one.
std::string host_of(std::string_view field);

/// The field that requests of the service's page have; a foreign page cannot send it.
constexpr const char* kPageField = "X-Shardmat-Page";

class Gate {
 public:
  struct Options {
    std::vector<std::string> hosts;    ///< names by which the service is called, besides localhost and the address itself
    std::vector<std::string> origins;  ///< "https://lab.example.org": web pages that may change something
    bool needs_token = true;
    std::vector<std::string> proxies = {};  ///< addresses of proxies that say for whom they ask
  };
  Gate(Options options, TokenTable tokens);

  /// From now on these are the tokens. Rights that requests under way have change with them.
  void set_tokens(TokenTable tokens);
  /// True if somebody may be this tenant.
  bool has_tenant(const std::string& tenant) const;

  /// For a request of a proxy: its client takes the place of the proxy as the peer. Why it is refused, if it comes without
  /// TLS from another host that is no such proxy.
  std::optional<Problem> find_client(RequestHead& head) const;
  /// Why the request is refused whatever it asks for.
  std::optional<Problem> check_source(const RequestHead& head) const;
  /// The fields that let a web page of a good origin read the answer.
  std::vector<std::pair<std::string, std::string>> fields_for_pages(const RequestHead& head) const;
  /// The answer to OPTIONS, by which browsers ask what a page may do.
  static Reply options_reply(const RequestHead& head);
  /// Finds out who the client is, for head.rights; or 401, or 403 for a page that is not ours. `now` is for
  /// sessions, `since_1970` for tokens, in seconds.
  std::optional<Reply> identify(RequestHead& head, double now, double since_1970);
  /// Opens a session for the owner of the token, and returns the field Set-Cookie; nothing if there is no such token, or
  /// none any more.
  std::optional<std::string> log_in(const RequestHead& head, std::string_view secret, double now, double since_1970);
  /// Closes the session of the request, if it has one, and returns the field that removes its cookie.
  std::string log_out(const RequestHead& head);
  /// 401 for a token that was one.
  static Reply revoked();
  /// Why the client may not use the route with the matrix.
  static std::optional<Problem> check_rights(const Rights& rights, Scope scope, const std::string& matrix);
  /// Counts the request; or why it comes too early. REQUIRES: the client is identified.
  std::optional<Problem> check_quota(const RequestHead& head, double now);

 private:
  struct Quotas {
    Quota requests, bytes;
  };

  bool is_own_host(const RequestHead& head) const;
  bool is_good_origin(const std::string& origin) const;
  bool is_own_origin(const RequestHead& head) const;
  std::string cookie(const RequestHead& head, const std::string& value, int seconds) const;

  Options options_;
  TokenTable tokens_;
  Sessions sessions_;
  std::map<std::string, Quotas> quotas_;  ///< by the name of the token
  std::shared_ptr<const Rights> unix_, anyone_;
};

}  // namespace shardmat::serve
