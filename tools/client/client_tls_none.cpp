#include "kernels/base/error.h"
#include "tools/client/client_channel.h"

namespace shardmat::tools {

std::unique_ptr<ClientChannel> add_tls(std::unique_ptr<ClientChannel>, int, const std::string&, const std::string&,
                                       const Patience&) {
  throw Error(ErrorKind::resources,
              "this shardmat was built without OpenSSL and knows no https; install libssl-dev and build again", "url");
}

}  // namespace shardmat::tools
