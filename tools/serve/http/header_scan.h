// The bytes of a request's header before a parser reads them. What proxies and servers read differently is refused here, so
// that nobody smuggles a second request in the first.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardmat::serve {

/// Finds the end of a header that arrives bit by bit.
class HeaderScanner {
 public:
  struct Found {
    std::size_t bytes = 0;  ///< of the whole header with its empty line; 0: it is not complete
    std::string fault;      ///< why this is no header; empty if nothing is wrong so far
  };
  /// Looks at everything that has arrived since the request began.
  Found scan(std::string_view arrived);
  /// True once a line is complete.
  bool has_begun() const { return line_ > 0; }

 private:
  std::size_t line_ = 0;  ///< where the line begins that was not complete
};

/// Bytes of the empty lines that come before a request. Some clients send one behind a body.
std::size_t empty_lines(std::string_view arrived);

using Fields = std::vector<std::pair<std::string, std::string>>;

/// What is wrong with the fields that say where a request ends and whom it is for; empty if nothing is. `is_1_1`: the
/// request says HTTP/1.1.
std::string framing_fault(const Fields& fields, bool is_1_1);

/// The trace id of a W3C traceparent; empty for anything else.
std::string trace_id_of(std::string_view traceparent);

}  // namespace shardmat::serve
