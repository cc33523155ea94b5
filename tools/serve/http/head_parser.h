// From the bytes of a request's header to what the rest of the front end sees. The scanner (header_scan.h) has found its
// end.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "tools/serve/http/http_message.h"

namespace shardmat::serve {

constexpr std::size_t kMostHeaderBytes = 16 << 10;
constexpr std::size_t kMostFields = 100;

struct ParsedHead {
  RequestHead head;                ///< without its peer; with a request id if the client gave a good one
  bool keep_alive = false;         ///< a further request may follow
  bool is_1_0 = false;             ///< the request is of HTTP/1.0
  std::optional<Problem> problem;  ///< what is wrong with it; nothing behind it is a request
};
ParsedHead parse_head(std::string_view header);

}  // namespace shardmat::serve
