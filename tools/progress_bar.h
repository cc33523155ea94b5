// Progress on standard error while something long runs.
#pragma once

#include "kernels/base/progress.h"

namespace shardmat::tools {

/// A bar redrawn a few times a second, for work that takes longer than half a second; empty where none is wanted
/// (SHARDMAT_PROGRESS, no terminal, not rank 0).
Progress make_progress_bar();

}  // namespace shardmat::tools
