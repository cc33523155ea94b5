// Chooses a plan for another number of right-hand sides on a stored matrix, without another conversion.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "kernels/choose/spmm_tuner.h"
#include "kernels/choose/tuner.h"
#include "kernels/matrix/statistics.h"

namespace shardmat {

using StoredFormats = std::span<const std::shared_ptr<Storage>>;

/// A plan for one right-hand side on one of the storages, or none if no requested kernel runs on them. Where it pays
/// (pays_to_measure()), candidates are measured, three products each, until that has taken about 30 products of the best;
/// else the first is taken. `rows`: statistics of the stored matrix. Throws Error(usage) for a wrong name or policy.
std::optional<ChosenPlan> choose_stored_plan(StoredFormats storages, const RowStatistics& rows, const PlanRequest& request,
                                             Stream& stream);

/// The same for several right-hand sides, X and Y row-major. `late`: as in SpmmTuner.
std::optional<ChosenSpmmPlan> choose_stored_spmm_plan(StoredFormats storages, std::int64_t right_hand_sides,
                                                      const SpmmRequest& request, std::optional<LateX> late, Stream& stream);

}  // namespace shardmat
