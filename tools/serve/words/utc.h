// Times for logs.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <string>

namespace shardmat::serve {

/// Seconds since 1970.
double seconds_since_1970();
/// "2023-11-14T22:13:20.250Z", of seconds since 1970.
std::string utc(double time);

}  // namespace shardmat::serve
