// Matrices that grow with the ranks, for weak scaling.
#pragma once

#include <string>

namespace shardmat::tools {

/// True if numbers of the generator stand in braces.
bool grows(const std::string& matrix);
/// The matrix on so many ranks: {64} stands for 64·ranks. Throws Error(usage) for braces that hold no such number.
std::string on_ranks(const std::string& matrix, int ranks);

}  // namespace shardmat::tools
