// How many bytes each token holds: in vectors that stay on the ranks, and in the arena for requests under way.
//
// Threads: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "tools/serve/words/rights.h"

namespace shardmat::serve {

class TokenMemory {
 public:
  enum class Kind { vectors, requests };
  using Used = std::array<std::uint64_t, 2>;  ///< bytes by kind

  /// Of one tenant.
  struct Account {
    Used used{};
    std::size_t charges = 0;  ///< the account ends with the last one
  };
  using Accounts = std::map<std::string, Account>;  ///< by tenant

  TokenMemory() = default;
  TokenMemory(const TokenMemory&) = delete;
  TokenMemory& operator=(const TokenMemory&) = delete;

  /// Bytes that count as held by a token until the object ends. REQUIRES: the table outlives it.
  class Charge {
   public:
    Charge(TokenMemory& table, std::shared_ptr<const Rights> rights, Kind kind);
    ~Charge();
    /// Takes the bytes over: the other one then counts none.
    Charge(Charge&& other) noexcept;
    Charge& operator=(Charge&&) = delete;

    std::uint64_t bytes() const { return bytes_; }
    /// Counts at least `bytes` from now on. False, and nothing changes, if the token would hold more than it may.
    bool raise(std::uint64_t bytes);
    /// Counts `bytes` from now on, whatever the limit is: they are held already.
    void correct(std::uint64_t bytes);

   private:
    TokenMemory& table_;
    std::shared_ptr<const Rights> rights_;
    Accounts::iterator account_;  ///< of who the tenant was at first, whatever becomes of the rights
    Kind kind_;
    std::uint64_t bytes_ = 0;
  };

  /// Zeros for a tenant that holds nothing.
  Used used(const std::string& tenant) const;
  const Accounts& all() const { return accounts_; }

 private:
  Accounts accounts_;
};

}  // namespace shardmat::serve
