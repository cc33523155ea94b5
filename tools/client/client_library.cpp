#include "tools/client/client_library.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "kernels/base/text.h"
#include "tools/client/mapped_file.h"
#include "tools/serve/gate/sha256.h"

namespace shardmat::tools {
namespace {

using json = nlohmann::ordered_json;

struct Options : ServiceAddress {
  std::string file, name;
};

int upload(const Options& o) {
  const MappedFile file(o.file);
  const std::string name = o.name.empty() ? std::filesystem::path(o.file).filename().string() : o.name;
  const std::string hash = serve::text_of(serve::sha256(file.text()));  // before the service waits for a request
  HttpClient client = connect(o);
  const HttpReply reply = ask(client, "PUT", fmt::format("/v1/library/{}?sha256={}", name, hash),
                              std::as_bytes(std::span(file.text())), "application/octet-stream");
  fmt::print("{}\n", json::parse(reply.text())["name"].get<std::string>());
  return 0;
}

/// ", as a shard file: bar.mtx.h5".
std::string conversion_of(const json& file) {
  if (!file.contains("conversion")) return "";
  const json& conversion = file["conversion"];
  const std::string state = conversion["state"];
  if (state == "done") return ", as a shard file: " + conversion["source"].get<std::string>();
  const std::string reason = conversion.value("reason", "");
  return fmt::format(", conversion {}{}", state, reason.empty() ? "" : ": " + reason);
}

int list(const Options& o) {
  HttpClient client = connect(o);
  const json library = ask_json(client, "/v1/library");
  for (const json& file : library["files"])
    fmt::print("{:<40} {}{}\n", file["source"].get<std::string>(), human_bytes(file["bytes"].get<double>()),
               conversion_of(file));
  return 0;
}

int remove(const Options& o) {
  HttpClient client = connect(o);
  ask(client, "DELETE", "/v1/library/" + o.name);
  return 0;
}

}  // namespace

std::vector<ClientCommand> add_client_library(const CommandLine& client) {
  const auto o = std::make_shared<Options>();
  std::vector<ClientCommand> commands;
  const CommandLine app = add_client_command(
      client, "upload", "Send a matrix file into the service's library, and print its name there", o, upload, commands);
  app.add_option("file", o->file, "the file, in any format that the service can load")->required();
  app.add_option("name", o->name, "its name in the library, with the same suffix (default: that of the file)")
      ->check(name_in_service());
  add_client_command(client, "library", "List the files that the service can load", o, list, commands);
  add_client_command(client, "delete-file", "Delete a file of the service's library, of which no matrix is loaded", o,
                     remove, commands)
      .add_option("name", o->name, "its name in the library")
      ->required()
      ->check(name_in_service());
  return commands;
}

}  // namespace shardmat::tools
