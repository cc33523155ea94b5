// The vectors that stay on the ranks, as the front end knows them.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "kernels/base/types.h"
#include "tools/serve/http/http_message.h"

namespace shardmat::serve {

struct Vector {
  std::uint64_t number = 0;  ///< never used again for another vector
  std::string matrix;        ///< the name that it was made for; empty: for none
  std::int64_t size = 0, columns = 1;
  ValueType type = ValueType::f64;
  std::uint64_t distribution = 0;  ///< it fits a matrix whose x or y has the same number
  std::vector<std::int64_t> bytes_of_ranks;
  bool lost = false;  ///< with the ranks

  std::string id() const { return "vec-" + std::to_string(number); }
  /// Of all columns, as clients send and get them.
  std::uint64_t bytes() const {
    return static_cast<std::uint64_t>(size) * static_cast<std::uint64_t>(columns) * size_of(type);
  }
};

class Vectors {
 public:
  /// Smaller numbers belong to vectors of an earlier service.
  explicit Vectors(std::uint64_t first_number) : first_number_(first_number) {}

  /// The vector with this id; or 404 if there was none or it was deleted, 410 if it was lost.
  std::variant<const Vector*, Problem> find(const std::string& id) const;
  const std::map<std::uint64_t, Vector>& all() const { return vectors_; }
  void add(Vector vector) { vectors_[vector.number] = std::move(vector); }
  void erase(std::uint64_t number) { vectors_.erase(number); }
  /// The ranks are lost.
  void lose_all();

 private:
  std::uint64_t first_number_;
  std::map<std::uint64_t, Vector> vectors_;  ///< by number
};

}  // namespace shardmat::serve
