// Options out of a file: a JSON object with the options' names, as {"ranks": 2, "listen": ["127.0.0.1:8980"]}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardmat::serve {

/// The words of a command line with what the text of a file adds. Options on the command line go first: what the file says
/// of them, or of one that excludes them, is left out. `known`: names of all options, without dashes. Throws Error(usage)
/// for text that is no such object, and for an unknown name.
std::vector<std::string> add_config(std::vector<std::string> words, std::string_view text,
                                    const std::vector<std::string>& known);

/// The same for the file of --config, if there is one among the words.
std::vector<std::string> with_config_file(std::vector<std::string> words, const std::vector<std::string>& known);

}  // namespace shardmat::serve
