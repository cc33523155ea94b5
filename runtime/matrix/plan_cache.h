// Remembers measured choices of kernels between runs, in one small JSON file for each matrix pattern, device, type and
// version. Files are written atomically: any number of ranks and processes may read and write at the same time. The
// directory may be deleted at any time. If a file cannot be read or no longer fits, the report says so and the kernel is
// chosen again.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/choose/tuner.h"

namespace shardmat {

/// $SHARDMAT_CACHE_DIR, else $XDG_CACHE_HOME/shardmat, else ~/.cache/shardmat; empty if none of these is set.
std::string default_cache_directory();

/// A hash of the shape and of some thousand row offsets and columns spread over the pattern; it takes less time than a
/// product. Two patterns with the same hash share a choice, which at worst costs speed.
std::uint64_t pattern_fingerprint(const CsrView& matrix);

struct PlanCache {
  std::string directory;    ///< empty: nothing is remembered
  std::string device_name;  ///< of the stream's device
};

/// Like choose_plan(), but takes the choice from the cache if it is there, and stores a new measured choice,
/// unless other processes had the cores of the host's threads while they were measured. The cache is
/// used only for kernel "auto" with measuring allowed; `tune` always measures. Throws as choose_plan(), and
/// Error(input) if a remembered plan does not run after it released rows of the matrix (CsrView::release).
ChosenPlan choose_remembered_plan(const CsrView& matrix, ValueType type, const PlanRequest& request, const PlanCache& cache,
                                  Stream& stream);

}  // namespace shardmat
