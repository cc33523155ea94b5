#include <utility>

#include "kernels/base/error.h"
#include "tools/serve/http/tls.h"

namespace shardmat::serve {

Tls::Tls(std::string certificate, std::string key) : certificate_(std::move(certificate)), key_(std::move(key)) { reload(); }
Tls::~Tls() = default;
void Tls::reload() {
  throw Error(
      ErrorKind::resources,
      "this shardmat-serve was built without OpenSSL and has no TLS; install libssl-dev and build again, or listen on "
      "the Unix socket and on loopback addresses only",
      "tls-certificate");
}

}  // namespace shardmat::serve
