// The certificate with which the service proves who it is. Without OpenSSL at build time there is none, and the constructor
// says so.
//
// Threads: the thread of the event loop.
#pragma once

#include <memory>
#include <string>

namespace boost::asio::ssl {
class context;
}

namespace shardmat::serve {

class Tls {
 public:
  /// PEM files: a certificate with its chain, and its private key. Throws Error(input) if they cannot be read or do not
  /// belong together, and Error(resources) if this build has no TLS.
  Tls(std::string certificate, std::string key);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  /// Reads the files again, for new connections. Throws as the constructor, and then keeps what it had.
  void reload();
  boost::asio::ssl::context& context() const { return *context_; }
  /// When the first certificate of the chain is no longer valid, in seconds since 1970.
  double expires() const { return expires_; }

 private:
  std::string certificate_, key_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  double expires_ = 0;
};

}  // namespace shardmat::serve
