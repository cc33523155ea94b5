// The header of a reply as bytes.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstddef>
#include <ctime>
#include <string>

#include "tools/serve/http/http_message.h"

namespace shardmat::serve {

/// "Fri, 27 Nov 2026 12:29:29 GMT"
std::string http_date(std::time_t seconds);

/// For a body of so many bytes. `connection`: what the field Connection says; empty: it is left out.
std::string header_of(const Reply& reply, std::size_t bytes, const std::string& request_id, const char* connection);

}  // namespace shardmat::serve
