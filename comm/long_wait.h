// Waiting for ranks that work alone for long.
#pragma once

#include "comm/communicator.h"

namespace shardmat {

/// While it lives, ranks that have nothing to do wait a day for those that have. A rank that stops answering meanwhile is
/// noticed no sooner; one that dies ends the job through mpirun.
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

}  // namespace shardmat
