// Pictures and pages, drawn by the Python scripts that come with the program.
#pragma once

#include <string>

namespace shardmat::tools {

/// Finds a script beside the program or where it is installed, and Python with matplotlib. Throws Error(resources) saying
/// what `option` misses; asked before long work.
void require_plot_script(const std::string& script, const std::string& option = "--plot");

/// Runs `script` on a JSON report, which it reads from `json`. Throws Error(resources) if it fails.
void plot(const std::string& script, const std::string& json, const std::string& output,
          const std::string& option = "--plot");

}  // namespace shardmat::tools
