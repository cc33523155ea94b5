// The description of all paths, which the build takes from openapi.json.
#pragma once

#include <string_view>

namespace shardmat::serve {

std::string_view openapi_text();

}  // namespace shardmat::serve
