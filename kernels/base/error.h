// One exception type with a kind inside; the kind becomes an exit code (or an HTTP status) at the edge.
#pragma once

#include <stdexcept>
#include <string>

namespace shardmat {

/// The numeric value is the exit code of the process.
enum class ErrorKind {
  internal = 1,      ///< a broken invariant or an unexpected library failure
  usage = 2,         ///< a wrong option or argument
  input = 3,         ///< a file or matrix that is not what it should be
  resources = 4,     ///< memory, device or disk is missing or full
  rank_lost = 5,     ///< another rank died or did not answer within the deadline
  verification = 6,  ///< the product was computed and is wrong
};

/// A message names what went wrong, where (file, line, row, rank), and what to do about it.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }
  int exit_code() const { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
};

}  // namespace shardmat
