// What the model expects of the cases of a scaling study.
#pragma once

#include <functional>

#include "runtime/run/multiply.h"
#include "tools/bench/scaling_report.h"

namespace shardmat::tools {

/// Collective. Measures the model's constants for each matrix that has a case on one rank, and fills in forecasts on rank 0.
/// Cases in blocks of columns, and with another exchange than the one expected to be fastest, get none.
/// What cannot be measured, or is too large for one rank to look through, is left out with a line in study.no_forecasts.
void forecast_cases(ScalingStudy& study, Communicator& all, double timeout,
                    const std::function<MultiplyOptions(const ScalingCase&)>& options_of);

}  // namespace shardmat::tools
