#include "tools/bench/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "kernels/bandwidth.h"
#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"

namespace shardmat::tools {

std::string software_versions(const DeviceProperties& device) {
  return "shardmat " SHARDMAT_VERSION + (device.software.empty() ? "" : ", " + device.software);
}

Machine examine_machine(const std::string& backend) {
  Machine machine;
  const bool gpu = cuda_device_count() > 0;
  if (backend == "cuda" && !gpu)
    throw Error(ErrorKind::resources, fmt::format("there is no CUDA device ({}); take the host", why_no_cuda_device()),
                "backend=host");
  machine.device = {gpu && backend != "host" ? Backend::cuda : Backend::host, 0};
  machine.why = backend != "auto" ? "as asked" : gpu ? "the first GPU" : why_no_cuda_device();
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  machine.host = host;
  const DeviceProperties device = properties(machine.device);
  machine.processor = device.name;
  machine.software = software_versions(device);
  machine.threads = thread_count();
  const DeviceGuard guard(machine.device);
  Stream stream(machine.device);
  machine.copy_bandwidth = measure_copy_bandwidth(stream);
  return machine;
}

std::string Machine::text() const {
  return fmt::format("{} on {}, {} backend ({}), {} host threads\n{}; copy bandwidth {}/s\n", processor, host,
                     name(device.backend), why, threads, software, human_bytes(copy_bandwidth));
}

nlohmann::ordered_json Machine::json() const {
  return {{"host", host},       {"processor", processor}, {"backend", name(device.backend)},
          {"threads", threads}, {"software", software},   {"copy_bandwidth_bytes_per_s", copy_bandwidth}};
}

}  // namespace shardmat::tools
