// Requests whose body is short text, as JSON.
#pragma once

#include <functional>
#include <string_view>

#include "tools/serve/http/routes.h"

namespace shardmat::serve {

/// Texts are read on the thread of the event loop.
constexpr std::uint64_t kMostTextBytes = 64 << 10;

/// `work` gets the body, and calls `done` now or later; what comes after the client has left is ignored.
using TextWork = std::function<void(std::string_view body, const std::function<void(Reply)>& done)>;

/// A job that reads the body and calls `work`; 413 for a longer body than kMostTextBytes.
Accepted take_text(const Call& call, TextWork work);

}  // namespace shardmat::serve
