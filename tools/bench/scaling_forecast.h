// What the model expects of the cases of a scaling study.
#pragma once

#include <functional>

#include "runtime/multiply.h"
#include "tools/bench/scaling_report.h"

namespace shardmat::tools {

/// While it lives, ranks that have nothing to do wait a day for those that have.
class LongWait {
 public:
  explicit LongWait(Communicator& all) : all_(all), seconds_(all.timeout_seconds()) { all_.set_timeout(86400); }
  ~LongWait() { all_.set_timeout(seconds_); }
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;

 private:
  Communicator& all_;
  double seconds_;
};

/// Collective. Measures the model's constants for each matrix that has a case on one rank, and fills in forecasts on rank 0.
void forecast_cases(ScalingStudy& study, Communicator& all, double timeout,
                    const std::function<MultiplyOptions(const ScalingCase&)>& options_of);

}  // namespace shardmat::tools
