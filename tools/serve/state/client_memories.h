// Memories that clients of the Unix socket share with the ranks, as the front end knows them: one for a connection, of which
// the client has the descriptor. The front end itself neither reads nor writes them.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "runtime/service/wire/arena.h"
#include "tools/serve/http/http_message.h"

namespace shardmat::serve {

class ClientMemories;

/// It lives as long as its connection, and as a product that uses it. REQUIRES: the list that made it outlives it.
class ClientMemory {
 public:
  ClientMemory(ClientMemories& list, std::uint64_t number, service::Arena memory)
      : list_(list), number_(number), memory_(std::move(memory)) {}
  ~ClientMemory();
  ClientMemory(const ClientMemory&) = delete;
  ClientMemory& operator=(const ClientMemory&) = delete;

  std::uint64_t number() const { return number_; }
  std::uint64_t bytes() const { return memory_.bytes(); }
  int descriptor() const { return memory_.descriptor(); }
  bool lost = false;  ///< new ranks could not map it

 private:
  ClientMemories& list_;
  std::uint64_t number_;
  service::Arena memory_;
};

class ClientMemories {
 public:
  /// All together have at most `most_bytes`. `gone` is called with the number of each whose time is over.
  ClientMemories(std::uint64_t most_bytes, std::function<void(std::uint64_t)> gone)
      : most_bytes_(most_bytes), gone_(std::move(gone)) {}
  ClientMemories(const ClientMemories&) = delete;
  ClientMemories& operator=(const ClientMemories&) = delete;

  /// Of at least so many bytes; or 413 if there is never room, 507 if there is none now. REQUIRES: bytes > 0.
  std::variant<Problem, std::shared_ptr<ClientMemory>> make(std::uint64_t bytes);
  std::vector<std::shared_ptr<ClientMemory>> all() const;

  std::uint64_t used_bytes() const { return used_; }
  std::size_t count() const { return memories_.size(); }

 private:
  friend class ClientMemory;
  void remove(const ClientMemory& memory);

  std::uint64_t most_bytes_, used_ = 0, last_ = 0;
  std::function<void(std::uint64_t)> gone_;
  std::map<std::uint64_t, std::weak_ptr<ClientMemory>> memories_;  ///< by number
};

}  // namespace shardmat::serve
