// Browsers that show the service's page. One gives a token once; from then on it has a cookie, whose value is a random
// number. The number says nothing of the token, is known in this process alone, and is of no use after the session.
//
// Threads: one at a time. Times are seconds of the steady clock.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "tools/serve/gate/sha256.h"
#include "tools/serve/words/rights.h"

namespace shardmat::serve {

struct Session {
  std::shared_ptr<const Rights> rights;  ///< of the token
  double ends = 0;
  bool closed = false;

  bool is_over(double now) const { return closed || now >= ends || rights->is_revoked(); }
};

class Sessions {
 public:
  static constexpr int kSeconds = 12 * 60 * 60;
  static constexpr std::size_t kMost = 1000;  ///< above it the oldest one is closed

  /// Throws Error(resources) if the system has no random numbers.
  Sessions();

  /// Returns the value of the cookie. `seconds`: those that the token still has; the session is no longer.
  std::string open(std::shared_ptr<const Rights> rights, double now, double seconds = kSeconds);
  /// The session whose cookie is in the header field Cookie; null if there is none, or it is over.
  std::shared_ptr<const Session> find(std::string_view cookies, double now);
  /// Closes it, if there is one.
  void close(std::string_view cookies);

  /// Differs from service to service: browsers send the cookies of one port to all others of the host.
  const std::string& cookie_name() const { return cookie_name_; }
  std::size_t size() const { return sessions_.size(); }

 private:
  using ById = std::map<Sha256, std::shared_ptr<Session>>;  ///< by the hash of the number
  ById::iterator find(std::string_view cookies);

  std::string cookie_name_;
  ById sessions_;
};

/// The value of a cookie in the header field Cookie; empty if it is not there.
std::string_view cookie_of(std::string_view field, std::string_view name);

}  // namespace shardmat::serve
