// What makes the figures of a scaling study doubtful, and why they probably are as they are.
#pragma once

#include <string>
#include <vector>

#include "tools/bench/scaling_report.h"

namespace shardmat::tools {

/// A sentence for each doubt about a measured case: more threads than cores, unsteady times, a product that takes longer
/// alone than within an iteration, an efficiency far above 100 %. `base`: what its efficiency is measured against.
std::vector<std::string> notes_of(const ScalingCase& one, const ScalingCase& base);

/// "1 rank", "2 ranks".
std::string counted(int count, const std::string& noun);

/// The text in lines of at most `width` bytes, broken at spaces, the first indented by `indent` and the others by 4 more.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width);

}  // namespace shardmat::tools
