// How many connections are open, in all and from each address.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "tools/serve/http/listener.h"

namespace shardmat::serve {

class ConnectionCount {
 public:
  ConnectionCount(std::size_t most, std::size_t most_an_address) : most_(most), most_an_address_(most_an_address) {}

  /// Counts a connection; false if there are too many. Peers on this host have no limit of their own.
  bool add(const Peer& peer) {
    const bool counted = is_counted(peer);
    if (all_ >= most_ || (counted && by_address_[peer.address] >= most_an_address_)) return false;
    ++all_;
    if (counted) ++by_address_[peer.address];
    return true;
  }
  /// REQUIRES: add() returned true.
  void remove(const Peer& peer) {
    --all_;
    if (is_counted(peer) && --by_address_[peer.address] == 0) by_address_.erase(peer.address);
  }
  std::size_t all() const { return all_; }

 private:
  static bool is_counted(const Peer& peer) { return !peer.is_unix && !peer.is_loopback; }

  std::size_t most_, most_an_address_, all_ = 0;
  std::map<std::string, std::size_t> by_address_;
};

}  // namespace shardmat::serve
