// Which option stands for the setting that an error names. Errors below tools/ speak of things and know no options.
#pragma once

#include <string>
#include <string_view>

#include "kernels/base/error.h"
#include "tools/cli/options.h"

namespace shardmat::tools {

/// The message of the error, and behind it the option of its setting if `command` has one: "… use another kernel, or auto
/// (--kernel)".
std::string message_of(const Error& error, const CommandLine& command);

/// The option of a setting: "--node-block-size" of "node_block_size".
std::string option_of(std::string_view setting);

}  // namespace shardmat::tools
