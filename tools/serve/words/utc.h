// Times for logs.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <optional>
#include <string>

namespace shardmat::serve {

/// Seconds since 1970.
double seconds_since_1970();
/// "2023-11-14T22:13:20.250Z", of seconds since 1970.
std::string utc(double time);
/// Seconds since 1970 of "2023-11-14T22:13:20Z" or "2023-11-14"; nothing for anything else.
std::optional<double> parse_utc(const std::string& text);

}  // namespace shardmat::serve
