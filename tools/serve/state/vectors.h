// The vectors that stay on the ranks, as the front end knows them. A vector belongs to the tenant that made it: for all
// other tenants it does not exist, unless it is shared with them. The owner of the service has all vectors.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "kernels/base/types.h"
#include "tools/serve/http/http_message.h"
#include "tools/serve/state/token_memory.h"
#include "tools/serve/words/rights.h"

namespace shardmat::serve {

struct Vector {
  std::uint64_t number = 0;         ///< by which the ranks know it; never used again for another vector
  std::string id;                   ///< by which clients know it; nobody can guess one
  std::string owner;                ///< the tenant that made it
  std::vector<std::string> shared;  ///< patterns of the names of tokens that may do all that its owner may
  std::string matrix;               ///< the name that it was made for; empty: for none
  std::int64_t size = 0, columns = 1;
  ValueType type = ValueType::f64;
  std::uint64_t distribution = 0;  ///< it fits a matrix whose x or y has the same number
  std::vector<std::int64_t> bytes_of_ranks;
  std::shared_ptr<TokenMemory::Charge> charge;  ///< counts its bytes; null once it is lost
  bool lost = false;                            ///< with the ranks

  /// Of all columns, as clients send and get them.
  std::uint64_t bytes() const {
    return static_cast<std::uint64_t>(size) * static_cast<std::uint64_t>(columns) * size_of(type);
  }
  bool is_owned_by(const Rights& rights) const { return rights.is_owner() || rights.tenant() == owner; }
  /// True if the vector exists for these rights.
  bool is_visible_to(const Rights& rights) const;
};

/// "vec-" and 128 random bits as 32 hexadecimal digits. Throws Error(resources) if the system gives no random bits.
std::string new_vector_id();

class Vectors {
 public:
  /// The vector with this id; 404 if there is none for these rights, 410 if it was lost.
  std::variant<const Vector*, Problem> find(const std::string& id, const Rights& rights) const;
  const std::map<std::uint64_t, Vector>& all() const { return vectors_; }
  void add(Vector vector);
  void erase(std::uint64_t number);
  /// Forgets a vector that was lost.
  void erase_lost(const std::string& id) { erase(by_id_.at(id)); }
  /// Erases the vectors of owners that are no longer, and returns the numbers of those that the ranks have.
  std::vector<std::uint64_t> erase_unowned(const std::function<bool(const std::string& owner)>& exists);
  /// The ranks are lost.
  void lose_all();

 private:
  std::map<std::uint64_t, Vector> vectors_;               ///< by number: in the order in which they were made
  std::unordered_map<std::string, std::uint64_t> by_id_;  ///< numbers
};

}  // namespace shardmat::serve
