// How many connections are open, in all and from each address. Some places are kept for the Unix socket, whose clients are
// the owner of the service.
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

#include "tools/serve/http/listener.h"

namespace shardmat::serve {

class ConnectionCount {
 public:
  /// All loopback addresses together have at most half of the connections, or as many as another host if this is more.
  ConnectionCount(std::size_t most, std::size_t most_an_address)
      : most_(most),
        most_an_address_(most_an_address),
        most_of_loopback_(std::max(most / 2, std::min(most, most_an_address))),
        for_unix_(std::min<std::size_t>(kMostForUnix, most / 4)) {}

  /// Counts a connection; false if there are too many.
  bool add(const Peer& peer) {
    if (all_ >= most_) return false;
    if (!peer.is_unix) {
      if (tcp_ >= most_ - for_unix_) return false;
      const auto place = by_address_.try_emplace(key_of(peer), 0).first;
      if (place->second >= (peer.is_loopback ? most_of_loopback_ : most_an_address_)) return false;
      ++place->second, ++tcp_;
    }
    ++all_;
    return true;
  }
  /// REQUIRES: add() returned true.
  void remove(const Peer& peer) {
    --all_;
    if (peer.is_unix) return;
    --tcp_;
    if (--by_address_[key_of(peer)] == 0) by_address_.erase(key_of(peer));
  }
  std::size_t all() const { return all_; }
  std::size_t tcp() const { return tcp_; }

 private:
  static constexpr std::size_t kMostForUnix = 32;
  static std::string key_of(const Peer& peer) { return peer.is_loopback ? "loopback" : peer.address; }

  std::size_t most_, most_an_address_, most_of_loopback_, for_unix_, all_ = 0, tcp_ = 0;
  std::map<std::string, std::size_t> by_address_;
};

}  // namespace shardmat::serve
