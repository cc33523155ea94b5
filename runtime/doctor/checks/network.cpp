// Network interfaces, and ports of RDMA networks.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/doctor/check_list.h"

namespace shardmat::doctor {
namespace {

constexpr double kSlowMegabits = 10'000;
constexpr const char *kInterfaces = "/sys/class/net", *kRdma = "/sys/class/infiniband";

/// A number behind a name; left out if it cannot be read, or is negative: a port that is down has no speed.
void add_number(Json& facts, const char* name, const HostFiles& files, const std::string& path) {
  if (const auto value = files.number(path); value && *value >= 0) facts[name] = *value;
}

Json look_at_network(const Viewpoint& viewpoint) {
  const HostFiles& files = viewpoint.files;
  Json interfaces = Json::array(), rdma = Json::array();
  for (const std::string& name : files.names(kInterfaces)) {
    const std::string folder = fmt::format("{}/{}", kInterfaces, name);
    if (!files.exists(folder + "/device")) continue;  // lo, bridges, tunnels
    Json& one = interfaces.emplace_back(Json{{"name", name}, {"state", files.line(folder + "/operstate")}});
    add_number(one, "megabits_per_s", files, folder + "/speed");
    add_number(one, "numa_node", files, folder + "/device/numa_node");
  }
  for (const std::string& name : files.names(kRdma))
    for (const std::string& port : files.names(fmt::format("{}/{}/ports", kRdma, name))) {
      const std::string folder = fmt::format("{}/{}/ports/{}", kRdma, name, port);
      Json& one = rdma.emplace_back(Json{{"name", fmt::format("{}:{}", name, port)},
                                         {"state", files.line(folder + "/state")},
                                         {"rate", files.line(folder + "/rate")},
                                         {"link_layer", files.line(folder + "/link_layer")}});
      add_number(one, "numa_node", files, fmt::format("{}/{}/device/numa_node", kRdma, name));
    }
  return {{"interfaces", interfaces}, {"rdma", rdma}};
}

bool is_active(const Json& port) { return get<std::string>(port, "state", "").find("ACTIVE") != std::string::npos; }

void judge_network(const Gathered& all, Findings& findings) {
  for (const Gathered::Host& host : all.hosts()) {
    const Json& facts = all.facts(host.ranks.front(), "network");
    const Json rdma = get(facts, "rdma", Json::array());
    for (const Json& port : rdma)
      if (!is_active(port) && get<std::string>(port, "link_layer", "") == "InfiniBand")
        findings.push_back({"port_down",
                            fmt::format("the InfiniBand port {}{} is {}", get<std::string>(port, "name", ""),
                                        on_host(all, host.name), get<std::string>(port, "state", "in an unknown state")),
                            "MPI and NCCL use the remaining ports, or Ethernet, at a fraction of the bandwidth.",
                            "Look at ibstat, the cable and the subnet manager; or take the host out of the job."});
    if (all.hosts().size() == 1 || std::any_of(rdma.begin(), rdma.end(), is_active)) continue;
    double fastest = 0;
    for (const Json& one : get(facts, "interfaces", Json::array()))
      if (get<std::string>(one, "state", "") == "up") fastest = std::max(fastest, get(one, "megabits_per_s", 0.0));
    if (fastest > 0 && fastest < kSlowMegabits)
      findings.push_back(
          {"slow_network",
           fmt::format("the fastest network{} is an Ethernet of {:g} Gb/s", on_host(all, host.name), fastest / 1000),
           "Ranks of different hosts exchange entries of x in every iteration.",
           "Use hosts with InfiniBand or a faster Ethernet, or one host."});
  }
}

void show_network(const Gathered& all, Rows& rows) {
  rows.emplace_back("interfaces", by_host(all, [&](int rank) {
                      std::string text;
                      for (const Json& one : get(all.facts(rank, "network"), "interfaces", Json::array())) {
                        const double speed = get(one, "megabits_per_s", 0.0);
                        text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", get<std::string>(one, "name", ""),
                                            get<std::string>(one, "state", ""),
                                            speed > 0 ? fmt::format(", {:g} Gb/s", speed / 1000) : "");
                      }
                      return text;
                    }));
  rows.emplace_back("RDMA", by_host(all, [&](int rank) {
                      std::string text;
                      for (const Json& one : get(all.facts(rank, "network"), "rdma", Json::array()))
                        text += fmt::format("{}{} {}, {}", text.empty() ? "" : ", ", get<std::string>(one, "name", ""),
                                            get<std::string>(one, "state", ""), get<std::string>(one, "rate", ""));
                      return text.empty() ? std::string("none") : text;
                    }));
}

}  // namespace

const Check kNetwork{
    .name = "network", .title = "Network", .look = look_at_network, .judge = judge_network, .show = show_network};

}  // namespace shardmat::doctor
