// What a request for a product asks for, and whether it fits the matrix and its vectors.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>

#include "tools/serve/http/http_message.h"
#include "tools/serve/http/names.h"
#include "tools/serve/ranks/matrix.h"
#include "tools/serve/state/vectors.h"

namespace shardmat::serve {

/// As written in the query and the header fields.
struct MultiplyQuery {
  std::optional<std::int64_t> columns;
  double alpha = 1, beta = 0;
  bool transpose = false;                   ///< y = alpha·Aᵀ·x + beta·y
  std::string type;                         ///< empty: the matrix's
  std::string x, y;                         ///< ids of vectors; empty: in the body, and as the body
  std::optional<std::uint64_t> x_at, y_at;  ///< or where they are in the client's memory, in bytes
  std::optional<std::uint64_t> generation;
  std::optional<Priority> priority;
  double deadline_seconds = std::numeric_limits<double>::infinity();
};

std::variant<Problem, MultiplyQuery> read_multiply_query(const RequestHead& head, const Target& target);

/// What the body and the answer have.
struct MultiplyShape {
  std::int64_t columns = 1;
  std::uint64_t x_bytes = 0, y_bytes = 0;         ///< of one column
  std::uint64_t x_vector = 0, y_vector = 0;       ///< numbers of vectors in place of x and y; 0: none
  bool block = false;                             ///< one of them has several columns
  bool x_in_memory = false, y_in_memory = false;  ///< that the client shares
  bool adds_y_of_body = false;                    ///< the y that beta is for comes in the body, behind x
  bool operator==(const MultiplyShape&) const = default;

  std::uint64_t body_bytes() const {
    return static_cast<std::uint64_t>(columns) *
           ((x_vector == 0 && !x_in_memory ? x_bytes : 0) + (adds_y_of_body ? y_bytes : 0));
  }
  /// Of the result, where it needs room of its own.
  std::uint64_t result_bytes() const {
    return y_vector == 0 && !y_in_memory && !adds_y_of_body ? static_cast<std::uint64_t>(columns) * y_bytes : 0;
  }
};

/// Or why the request does not fit, or names a vector that is not there for these rights. REQUIRES: the matrix is loaded.
std::variant<Problem, MultiplyShape> shape_of(const MultiplyQuery& query, const Matrix& matrix, const Vectors& vectors,
                                              const Rights& rights, std::uint64_t content_length);

/// Why x and y are not where the query says in a client's memory of so many bytes; nothing if they are. Values have `entry`
/// bytes.
std::optional<Problem> check_places(const MultiplyQuery& query, const MultiplyShape& shape, std::uint64_t entry,
                                    std::uint64_t memory_bytes);

}  // namespace shardmat::serve
