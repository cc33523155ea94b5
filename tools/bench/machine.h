// Where a benchmark runs: what figures must be read with.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kernels/base/device.h"

namespace shardmat::tools {

struct Machine {
  Device device;
  std::string host, processor, software;  ///< processor: GPU or CPU; software: versions, with this program's
  std::string why;                        ///< this backend
  int threads = 1;                        ///< of the host
  double copy_bandwidth = 0;              ///< bytes a second read plus written, measured in this run

  /// Two lines for people.
  std::string text() const;
  nlohmann::ordered_json json() const;
};

/// Versions of this program and of what the device is used through.
std::string software_versions(const DeviceProperties& device);

/// `backend` is auto, host or cuda; auto takes the first GPU if there is one. Throws Error(resources) if there is none for
/// cuda. Measures the copy bandwidth.
Machine examine_machine(const std::string& backend);

}  // namespace shardmat::tools
