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

/// 503 for a connection above the limits.
Reply too_many_connections();

/// For a client that speaks plain HTTP to a port of TLS: it reads no TLS, either.
constexpr const char* kTlsOnlyReply =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 68\r\nConnection: close\r\n\r\n"
    "this port speaks TLS only: write https:// in place of http:// here.\n";

}  // namespace shardmat::serve
