// The runs of a scaling study: which program measured, in which job, where, and what else the hosts did. A study that was
// interrupted has several.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace shardmat::tools {

/// JSON of this run, as it is now; takes a quarter of a second. Collective.
std::string look_at_run(Communicator& ranks);
/// The same run later: the clocks of now, and the most load that was seen.
std::string joined_run(const std::string& before, const std::string& now, std::size_t measured);

/// A block of lines for each run; empty without runs. Lines have at most 125 characters.
std::string text_of_runs(const std::vector<std::string>& runs);
/// What two runs of one study have differently, as "commit a1 and b2"; empty if their times can stand side by side.
std::string differences_of_runs(const std::string& a, const std::string& b);

}  // namespace shardmat::tools
