// Choices made by measuring, remembered between runs: one small JSON file for each matrix pattern, device, type and version,
// written atomically, so that any number of ranks and processes may read and write at once. The whole directory may be
// deleted at any time. A file that cannot be read or no longer fits is said in the report and the choice is made anew.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/choose/tuner.h"

namespace shardmat {

/// $SHARDMAT_CACHE_DIR, else $XDG_CACHE_HOME/shardmat, else ~/.cache/shardmat; empty if none of these is set.
std::string default_cache_directory();

/// A number for the pattern: of its shape and some thousand row offsets and columns spread over it, so that it takes less
/// than a product. Two patterns that agree there share a choice, which costs speed at worst.
std::uint64_t pattern_fingerprint(const CsrView& matrix);

struct PlanCache {
  std::string directory;    ///< empty: nothing is remembered
  std::string device_name;  ///< of the stream's device
};

/// choose_plan(), asking the cache before anything is measured and telling it what was. Only requests with kernel "auto"
/// that allow measuring look; `tune` measures anew. Throws as choose_plan().
ChosenPlan choose_remembered_plan(const CsrView& matrix, ValueType type, const PlanRequest& request, const PlanCache& cache,
                                  Stream& stream);

}  // namespace shardmat
