#include "tools/client/client_library.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "tools/serve/gate/sha256.h"

namespace shardmat::tools {
namespace {

using json = nlohmann::ordered_json;

struct Options : ServiceAddress {
  std::string file, name;
};

/// The bytes of a file.
class MappedFile {
 public:
  explicit MappedFile(const std::string& name) {
    const int file = open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status {};
    const bool regular = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    int why = file < 0 ? errno : EINVAL;
    if (regular && status.st_size > 0) {
      bytes_ = static_cast<std::size_t>(status.st_size);
      map_ = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
      why = map_ == MAP_FAILED ? errno : 0;
    }
    if (file >= 0) close(file);
    if (why != 0)
      throw Error(ErrorKind::input,
                  fmt::format("{}: {}", name, why == EINVAL ? "this is no file with bytes" : std::strerror(why)));
  }
  ~MappedFile() { munmap(map_, bytes_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view text() const { return {static_cast<const char*>(map_), bytes_}; }

 private:
  void* map_ = nullptr;
  std::size_t bytes_ = 0;
};

int upload(const Options& o) {
  const MappedFile file(o.file);
  const std::string name = o.name.empty() ? std::filesystem::path(o.file).filename().string() : o.name;
  std::string hash;
  for (const std::uint8_t byte : serve::sha256(file.text())) hash += fmt::format("{:02x}", byte);
  HttpClient client = connect(o);
  const HttpReply reply = ask(client, "PUT", fmt::format("/v1/library/{}?sha256={}", name, hash),
                              std::as_bytes(std::span(file.text())), "application/octet-stream");
  fmt::print("{}\n", json::parse(reply.text())["name"].get<std::string>());
  return 0;
}

int list(const Options& o) {
  HttpClient client = connect(o);
  const json library = ask_json(client, "/v1/library");
  for (const json& file : library["files"])
    fmt::print("{:<40} {}\n", file["source"].get<std::string>(), human_bytes(file["bytes"].get<double>()));
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
  return commands;
}

}  // namespace shardmat::tools
