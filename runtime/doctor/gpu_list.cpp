#include "runtime/doctor/gpu_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

namespace shardmat::doctor {

std::string driver_version(const HostFiles& files) {
  for (const std::string& word : words_of(files.line("/proc/driver/nvidia/version")))
    if (std::isdigit(static_cast<unsigned char>(word.front())) != 0 && word.find('.') != std::string::npos) return word;
  return {};
}

int cuda_of_driver(const std::string& version) {
  constexpr std::pair<int, int> kFirstBranches[] = {{580, 13000}, {525, 12000}, {450, 11000}, {410, 10000}};
  const int branch = std::atoi(version.c_str());
  for (const auto& [first, cuda] : kFirstBranches)
    if (branch >= first) return cuda;
  return 0;
}

Json gpus_on_host(const HostFiles& files) {
  Json gpus = Json::array();
  for (const std::string& id : files.names("/proc/driver/nvidia/gpus")) {
    const std::string about = fmt::format("/proc/driver/nvidia/gpus/{}/information", id),
                      device = "/sys/bus/pci/devices/" + id;
    Json& gpu = gpus.emplace_back(
        Json{{"id", id}, {"name", files.behind(about, "Model")}, {"uuid", files.behind(about, "GPU UUID")}});
    for (const auto& [name, file] : {std::pair("numa_node", "numa_node"), std::pair("pcie_lanes", "current_link_width"),
                                     std::pair("pcie_lanes_possible", "max_link_width")})
      if (const auto value = files.number(fmt::format("{}/{}", device, file)); value && *value >= 0) gpu[name] = *value;
    const std::string minor = files.behind(about, "Device Minor");
    if (const auto usable = minor.empty() ? std::nullopt : files.may_use("/dev/nvidia" + minor)) gpu["usable"] = *usable;
  }
  return gpus;
}

std::string plain_uuid(const std::string& uuid) {
  std::string plain;
  for (const char c : uuid.rfind("GPU-", 0) == 0 ? uuid.substr(4) : uuid)
    if (c != '-') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

Json visible_of(const Json& gpus, const char* value) {
  const std::vector<std::string> words = value == nullptr ? std::vector<std::string>() : words_of(value, ", ");
  Json usable = Json::array();
  for (const Json& gpu : gpus) {
    if (value != nullptr && words.empty()) break;
    if (!gpu.contains("usable")) return {};
    if (!gpu["usable"].get<bool>()) continue;
    usable.push_back(gpu);
    usable.back().erase("usable");
  }
  if (value == nullptr) return usable;
  Json visible = Json::array();
  for (const std::string& word : words) {
    if (word.rfind("MIG-", 0) == 0) return {};  // a part of a GPU that the kernel module does not name
    const bool number = std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    const auto found = std::find_if(usable.begin(), usable.end(), [&](const Json& gpu) {
      return number ? &gpu - &usable[0] == std::atoi(word.c_str()) : get<std::string>(gpu, "uuid", "").rfind(word, 0) == 0;
    });
    if (found == usable.end()) break;  // CUDA ignores what follows, too
    visible.push_back(*found);
  }
  return visible;
}

}  // namespace shardmat::doctor
