// The doors by which clients come in, as the options say: sockets, certificate and tokens.
//
// Threads: the thread of the event loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/serve/gate/gate.h"
#include "tools/serve/http/http_server.h"
#include "tools/serve/options/serve_options.h"
#include "tools/serve/state/state_directory.h"

namespace shardmat::serve {

/// Reads something anew and says in the log whether that went well.
void read_again(const char* what, const std::function<void()>& read);

class Doors {
 public:
  /// Listens, but takes no connection yet. Throws Error for options that do not go together, and for files and addresses
  /// that cannot be used.
  Doors(const ServeOptions& options, const StateDirectory& state);

  Gate& gate() { return *gate_; }
  /// The server takes connections from now on. Must not outlive this object. Writes the addresses to the log.
  void open(HttpServer& server);
  /// Reads the tokens and the certificate again. What is wrong is written to the log, and the old ones stay.
  void reload();
  /// When the certificate ends, in seconds since 1970; nothing without TLS.
  std::optional<double> certificate_expires() const { return tls_ ? std::optional(tls_->expires()) : std::nullopt; }

 private:
  TokenTable tokens() const;

  std::string tokens_file_;
  std::optional<Token> own_;  ///< of the state directory
  std::unique_ptr<Tls> tls_;
  std::vector<Listener> listeners_;
  std::unique_ptr<Gate> gate_;
};

}  // namespace shardmat::serve
