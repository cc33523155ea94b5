// One exception type with a kind inside; the kind becomes an exit code (or an HTTP status) at the edge.
// Ownership: values. Nothing is collective.
// Threads: any thread, several at a time; there is no shared state.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace shardmat {

/// The numeric value is the exit code of the process.
enum class ErrorKind {
  internal = 1,      ///< a broken invariant or an unexpected library failure
  usage = 2,         ///< a wrong option or argument
  input = 3,         ///< an invalid file or matrix
  resources = 4,     ///< memory, device or disk is missing or full
  rank_lost = 5,     ///< another rank died or did not answer within the deadline
  verification = 6,  ///< the computed product is wrong
};

/// A message names what went wrong, where (file, line, row, rank), and what to do about it. It speaks of things, not of the
/// options of one program.
class Error : public std::runtime_error {
 public:
  /// `setting`: the field of the options that the caller should change, such as "allow_nonfinite". "right_hand_sides=2" also
  /// says to which value. A program adds its own name of this field to the message: an option, a field of a request, an
  /// argument.
  Error(ErrorKind kind, const std::string& message, std::string setting = {})
      : std::runtime_error(message), kind_(kind), setting_(std::move(setting)) {}
  ErrorKind kind() const { return kind_; }
  /// Empty if no other setting would help.
  const std::string& setting() const { return setting_; }
  int exit_code() const { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
  std::string setting_;
};

}  // namespace shardmat
