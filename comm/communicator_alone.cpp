// A communicator of one rank that makes no MPI call.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "comm/communicator.h"

namespace shardmat {

Communicator::Communicator(WithoutMpi, double timeout_seconds) : timeout_(timeout_seconds) {
  std::array<char, 256> name{};
  host_ = gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

Communicator Communicator::alone(double timeout_seconds) { return Communicator(WithoutMpi{}, timeout_seconds); }

void Communicator::copy_to_self(std::span<const Transfer::Outgoing> sends, std::span<const Transfer::Incoming> receives) {
  std::size_t next = 0;
  for (const Transfer::Outgoing& sent : sends) {
    if (sent.bytes == 0) continue;
    while (next < receives.size() && receives[next].bytes == 0) ++next;
    if (sent.to != 0 || next == receives.size() || receives[next].from != 0 || receives[next].bytes != sent.bytes)
      throw Error(ErrorKind::internal,
                  fmt::format("the only rank sends {} bytes to rank {}, which nothing receives", sent.bytes, sent.to));
    std::memcpy(receives[next++].data, sent.data, sent.bytes);
  }
  for (; next < receives.size(); ++next)
    if (receives[next].bytes > 0)
      throw Error(ErrorKind::internal,
                  fmt::format("the only rank waits for {} bytes, which nothing sends", receives[next].bytes));
}

}  // namespace shardmat
