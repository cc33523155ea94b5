#include "tools/bench/service/scenario.h"

namespace shardmat::tools::service_bench {
namespace {

constexpr Scenario kScenarios[] = {
    {"overhead", "time of a request beyond its product, one client", run_overhead},
    {"rate", "small requests a second on 16 connections", run_rate},
    {"bodies", "speed of large vectors, and memory for them", run_bodies},
    {"merged", "products a second of 1 to 32 clients, merged and not", run_merged},
    {"stream", "products of 32 clients whose vectors move each time, in memory of their own", run_stream},
    {"solves", "solves a second of 1 to 8 clients, merged and not, and what products of others wait meanwhile", run_solves},
    {"latency", "waiting at half and at 70 % of the capacity, against a simulation", run_latency},
    {"overload", "three times the capacity", run_overload},
    {"kill", "ranks that are killed, amid products and solves", run_kill},
    {"stop", "a rank that is stopped, likewise", run_stop},
    {"drain", "a service that ends while clients wait for products and solves", run_drain},
    {"idle", "processor time without requests", run_idle},
    {"bits", "random requests against the library's products, bit for bit", run_bits},
    {"leaks", "memory and descriptors after many loads, requests and connections", run_leaks},
    {"chaos", "all kinds of requests at once while ranks are killed and stopped; every answer is checked", run_chaos},
};

}  // namespace

std::span<const Scenario> scenarios() { return kScenarios; }

}  // namespace shardmat::tools::service_bench
