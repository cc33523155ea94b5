#include "runtime/doctor/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "kernels/base/error.h"

namespace shardmat::doctor {
namespace {

// What is used of nvml.h, which a machine without CUDA does not have. The driver keeps these names and layouts.
using Nvml = int;  // nvmlReturn_t; 0: success
using NvmlDevice = void*;
struct NvmlPci {
  char legacy_id[16];
  unsigned domain, bus, device, vendor_and_device, subsystem;
  char id[32];
};
struct NvmlUtilization {
  unsigned gpu, memory;  // percent
};
constexpr unsigned kSmClock = 1;
constexpr int kUncorrected = 1, kSinceStart = 0, kRead = 0, kNvlink = 2, kInsufficientSize = 7;
constexpr int kProhibited = 2, kExclusiveProcess = 3;
constexpr std::pair<unsigned long long, const char*> kSlowdowns[] = {
    {0x8, "hardware slowdown"}, {0x20, "heat (software)"}, {0x40, "heat"}, {0x80, "power brake"}, {0x4, "power cap"}};

class NvmlLibrary {
 public:
  NvmlLibrary() : handle_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr)
      throw Error(ErrorKind::resources, fmt::format("the driver's NVML cannot be opened: {}", dlerror()));
  }
  ~NvmlLibrary() { dlclose(handle_); }
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  /// Calls a function of the library; false if there is none of this name, or if it fails.
  template <class... T>
  bool call(const char* name, T... arguments) const {
    return status(name, arguments...) == 0;
  }
  template <class... T>
  Nvml status(const char* name, T... arguments) const {
    constexpr Nvml kNoFunction = 13;
    const auto function = reinterpret_cast<Nvml (*)(T...)>(dlsym(handle_, name));
    return function == nullptr ? kNoFunction : function(arguments...);
  }

 private:
  void* handle_;
};

/// "00000000:3B:00.0" as /sys names it, "0000:3b:00.0".
std::string address_of(const NvmlLibrary& nvml, NvmlDevice device) {
  NvmlPci pci{};
  if (!nvml.call("nvmlDeviceGetPciInfo_v3", device, &pci)) return {};
  std::string id = pci.id;
  std::transform(id.begin(), id.end(), id.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::size_t colon = id.find(':');
  return colon != std::string::npos && colon > 4 ? id.substr(colon - 4) : id;
}

Json slowdowns_of(unsigned long long reasons) {
  Json names = Json::array();
  for (const auto& [bit, name] : kSlowdowns)
    if ((reasons & bit) != 0) names.push_back(name);
  return names;
}

Json facts_of(const NvmlLibrary& nvml, NvmlDevice device) {
  char name[96] = {};
  unsigned value = 0;
  int mode = 0, pending = 0;
  unsigned long long count = 0;
  NvmlUtilization busy{};
  Json gpu{{"id", address_of(nvml, device)}};
  if (nvml.call("nvmlDeviceGetName", device, name, unsigned{sizeof name})) gpu["name"] = name;
  if (nvml.call("nvmlDeviceGetClockInfo", device, kSmClock, &value)) gpu["sm_mhz"] = value;
  if (nvml.call("nvmlDeviceGetMaxClockInfo", device, kSmClock, &value)) gpu["sm_mhz_possible"] = value;
  if (nvml.call("nvmlDeviceGetCurrentClocksThrottleReasons", device, &count)) gpu["slowed_by"] = slowdowns_of(count);
  if (nvml.call("nvmlDeviceGetEccMode", device, &mode, &pending)) gpu["ecc_on"] = mode != 0;
  if (nvml.call("nvmlDeviceGetTotalEccErrors", device, kUncorrected, kSinceStart, &count)) gpu["uncorrected_errors"] = count;
  if (nvml.call("nvmlDeviceGetUtilizationRates", device, &busy)) gpu["busy_share"] = busy.gpu / 100.0;
  if (nvml.call("nvmlDeviceGetComputeMode", device, &mode))
    gpu["exclusive"] = mode == kExclusiveProcess || mode == kProhibited;
  unsigned processes = 0;
  const Nvml told = nvml.status("nvmlDeviceGetComputeRunningProcesses_v3", device, &processes, static_cast<void*>(nullptr));
  if (told == 0 || told == kInsufficientSize) gpu["processes"] = processes;
  return gpu;
}

struct Session {
  const NvmlLibrary& nvml;
  ~Session() { nvml.call("nvmlShutdown"); }
};

}  // namespace

Json ask_nvml() {
  const NvmlLibrary nvml;
  if (const Nvml status = nvml.status("nvmlInit_v2"); status != 0)
    throw Error(ErrorKind::resources, fmt::format("the driver's NVML does not start (its error {})", status));
  const Session session{nvml};
  unsigned count = 0;
  if (!nvml.call("nvmlDeviceGetCount_v2", &count))
    throw Error(ErrorKind::resources, "the driver's NVML does not count GPUs");
  std::vector<NvmlDevice> devices(count);
  Json gpus = Json::array();
  for (unsigned i = 0; i < count; ++i)
    if (!nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &devices[i]))
      throw Error(ErrorKind::resources, fmt::format("NVML shows no GPU {}", i));
  for (unsigned i = 0; i < count; ++i) {
    Json gpu = facts_of(nvml, devices[i]), reached = Json::array(), linked = Json::array();
    for (unsigned other = 0; other < count; ++other) {
      int status = 1;
      if (other == i) continue;
      if (nvml.call("nvmlDeviceGetP2PStatus", devices[i], devices[other], kRead, &status) && status == 0)
        reached.push_back(address_of(nvml, devices[other]));
      if (nvml.call("nvmlDeviceGetP2PStatus", devices[i], devices[other], kNvlink, &status) && status == 0)
        linked.push_back(address_of(nvml, devices[other]));
    }
    gpu["reaches"] = std::move(reached);
    gpu["linked"] = std::move(linked);
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

}  // namespace shardmat::doctor
