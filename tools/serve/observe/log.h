// What the service tells its operator.
#pragma once

#include <string>

namespace shardmat::serve {

/// One line on standard error.
void log_line(std::string text);

}  // namespace shardmat::serve
