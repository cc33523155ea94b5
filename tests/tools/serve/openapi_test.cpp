// Every path is described, and every description has a path; and options out of a file.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "kernels/base/error.h"
#include "tools/serve/handlers/api.h"
#include "tools/serve/handlers/openapi.h"
#include "tools/serve/observe/events.h"
#include "tools/serve/observe/live.h"
#include "tools/serve/observe/metrics.h"
#include "tools/serve/ranks/jobs.h"
#include "tools/serve/state/library_files.h"
#include "tools/serve/words/config_file.h"

namespace shardmat::serve {
namespace {

/// The scopes of all operations by their names, "GET /v1/ranks".
using Operations = std::map<std::string, std::string>;

Operations of_routes() {
  const auto directory = std::filesystem::temp_directory_path() / ("shardmat_openapi_" + std::to_string(getpid()));
  Operations operations;
  {
    StateDirectory state(directory);
    const auto arena = service::Arena::create(1 << 16);
    EventLoop loop;
    Service service(loop, {}, state, arena);
    Metrics metrics(service);
    Events events(loop, service);
    Jobs jobs(loop, service);
    Gate gate({}, {});
    Live live(loop, service, jobs);
    const LibraryFiles library(directory, state.id());
    const Api api({service, metrics, events, jobs, loop, gate, live, library});
    for (const Route& route : api.routes().all()) {
      EXPECT_FALSE(route.op.empty()) << route.path;
      EXPECT_TRUE(operations.emplace(route.method + " " + route.path, scope_name(route.scope)).second) << route.path;
    }
  }
  std::filesystem::remove_all(directory);
  return operations;
}

Operations of_description(const nlohmann::json& description) {
  Operations operations;
  for (const auto& [path, methods] : description["paths"].items())
    for (const auto& [method, operation] : methods.items()) {
      std::string name = method;
      for (char& c : name) c = static_cast<char>(std::toupper(c));
      operations[name + " " + path] = operation["x-scope"];
    }
  return operations;
}

TEST(OpenApi, DescribesEveryRouteAndNothingElse) {
  const auto description = nlohmann::json::parse(openapi_text());
  EXPECT_EQ(description["openapi"], "3.1.0");
  EXPECT_EQ(of_description(description), of_routes());
}

TEST(OpenApi, DescribesEveryParameterOfAPathOnce) {
  const auto description = nlohmann::json::parse(openapi_text());
  std::set<std::string> ids;
  for (const auto& [path, methods] : description["paths"].items())
    for (const auto& [method, operation] : methods.items()) {
      EXPECT_TRUE(ids.insert(operation["operationId"]).second) << path;
      EXPECT_EQ(operation.contains("security"), operation["x-scope"] == "none") << path;
      std::set<std::string> described, in_path;
      for (const auto& parameter : operation.value("parameters", nlohmann::json::array())) {
        const auto& there = parameter.contains("$ref")
                                ? description[nlohmann::json::json_pointer(parameter["$ref"].get<std::string>().substr(1))]
                                : parameter;
        if (there["in"] == "path") described.insert(there["name"]);
      }
      for (std::size_t at = 0; (at = path.find('{', at)) != std::string::npos; ++at)
        in_path.insert(path.substr(at + 1, path.find('}', at) - at - 1));
      EXPECT_EQ(described, in_path) << path;
    }
}

TEST(OpenApi, ArraysTakeTheParametersOfALoad) {
  const auto description = nlohmann::json::parse(openapi_text());
  std::set<std::string> of_arrays{"source"}, of_load;
  for (const auto& parameter : description["paths"]["/v1/matrices/{matrix}"]["put"]["parameters"])
    if (parameter.contains("name")) of_arrays.insert(parameter["name"]);
  for (const auto& [name, property] : description["components"]["schemas"]["load"]["properties"].items())
    of_load.insert(name);
  EXPECT_EQ(of_arrays, of_load);
}

TEST(Config, AddsWhatTheCommandLineDoesNotSay) {
  const std::vector<std::string> known{"ranks", "launcher", "listen", "no-token", "tokens", "state", "timeout"};
  const auto added = [&](std::vector<std::string> words, const char* text) {
    return add_config(std::move(words), text, known);
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(
      added({"--state", "s"}, R"({"ranks": 2, "listen": ["a:1", "b:2"], "no-token": true, "timeout": 2.5, "state": "t"})"),
      (Words{"--state", "s", "--ranks=2", "--listen=a:1", "--listen=b:2", "--no-token", "--timeout=2.5"}));
  EXPECT_EQ(added({"--state=s", "--launcher", "x"}, R"({"ranks": 2, "no-token": false, "state": "t"})"),
            (Words{"--state=s", "--launcher", "x"}));
  EXPECT_EQ(added({"--no-token"}, R"({"tokens": "t"})"), Words{"--no-token"});
  for (const char* bad : {"", "[]", "{", R"({"rank": 2})", R"({"ranks": null})", R"({"ranks": {}})",
                          R"({"listen": [["a"]]})", R"({"config": "c"})"})
    EXPECT_THROW(added({}, bad), Error) << bad;
}

}  // namespace
}  // namespace shardmat::serve
