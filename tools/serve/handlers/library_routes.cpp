// The paths below /v1/library: which files may be loaded, sending one there, and deleting one.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "kernels/base/error.h"
#include "runtime/service/wire/library.h"
#include "tools/serve/handlers/conversions.h"
#include "tools/serve/handlers/route_groups.h"
#include "tools/serve/handlers/text_job.h"
#include "tools/serve/handlers/upload_job.h"
#include "tools/serve/observe/service_json.h"

namespace shardmat::serve {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

/// A letter or digit, then letters, digits, '.', '_' and '-'.
bool is_file_name(std::string_view name) { return name.size() <= 255 && is_request_id(name) && name[0] != '.'; }

/// SHA-256 of files of the library, each formed once unless the file changes. Runs on the thread of the uploads.
class Hashes {
 public:
  explicit Hashes(const fs::path& library) : library_(library) {}

  /// What the library has under this path. Throws Error(input) as a load does.
  json describe(const std::string& source) {
    const struct Closes {
      int descriptor;
      ~Closes() { close(descriptor); }
    } file{library_.open(source)};
    struct stat status {};
    fstat(file.descriptor, &status);
    const Key key{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
    auto found = known_.find(key);
    if (found == known_.end()) {
      if (known_.size() >= kMostKnown) known_.clear();
      found = known_.emplace(key, text_of(hash_of(file.descriptor, source))).first;
    }
    return {{"source", source}, {"bytes", status.st_size}, {"sha256", found->second}};
  }

 private:
  using Key = std::tuple<dev_t, ino_t, off_t, time_t, long>;
  static constexpr std::size_t kMostKnown = 10'000;

  static Sha256 hash_of(int file, const std::string& source) {
    Sha256Sum sum;
    std::string piece(std::size_t{1} << 20, '\0');
    while (true) {
      const ssize_t got = read(file, piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw Error(ErrorKind::input, fmt::format("{}: {}", source, std::strerror(errno)));
      if (got == 0) return sum.finish();
      sum.add({piece.data(), static_cast<std::size_t>(got)});
    }
  }

  service::Library library_;
  std::map<Key, std::string> known_;
};

/// What these routes share.
struct LibraryParts {
  explicit LibraryParts(const Parts& parts)
      : service(parts.service),
        uploads(std::make_shared<Uploads>(parts)),
        conversions(parts.loop, *parts.library, parts.program),
        hashes(parts.library->path()) {}

  Service& service;
  std::shared_ptr<Uploads> uploads;
  Conversions conversions;
  Hashes hashes;
};
using Shared = std::shared_ptr<LibraryParts>;

Accepted put(const Shared& shared, const Call& call) {
  const std::string& name = call.parameters.front();
  if (shared->uploads->most_bytes > 0 && !is_matrix_name(name))
    return problem_reply(
        400, "bad_name",
        "the name of a file is a letter or digit, then at most 63 letters, digits, dots, hyphens and underscores");
  std::optional<Sha256> wanted;
  for (const auto& [key, value] : call.target.query) {
    wanted = key == "sha256" ? parse_sha256(value) : std::nullopt;
    if (!wanted) return problem_reply(400, "malformed", "an upload takes sha256=, 64 hexadecimal digits");
  }
  std::error_code error;
  if (fs::exists(shared->uploads->library.path() / name, error))
    return problem_reply(409, "exists", fmt::format("the library has a file {}; take another name", name));
  return take_file(shared->uploads, call, name, name, wanted,
                   [shared](const Uploaded& file, const std::function<void(Reply)>& done) {
                     if (!file.source.ends_with(".h5"))
                       shared->conversions.add(file.source, shared->service.ranks().hellos().size());
                     done(json_reply(201, {{"name", file.source}, {"bytes", file.bytes}, {"sha256", text_of(file.hash)}}));
                   });
}

constexpr std::size_t kMostFiles = 500;
constexpr int kMostLevels = 3;
/// Entries that are looked at, so that a library in the wrong place costs little.
constexpr int kMostEntries = 20000;

bool is_hidden(const fs::path& path) { return path.filename().native().front() == '.'; }

/// Regular files by their paths in the library; links are left out. What cannot be read is left out, too.
json files_of(const fs::path& library) {
  std::vector<std::pair<std::string, std::uintmax_t>> files;
  bool all = true;
  std::error_code error;
  fs::recursive_directory_iterator entry(library, fs::directory_options::skip_permission_denied, error);
  for (int seen = 0; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (++seen > kMostEntries || files.size() >= kMostFiles) {
      all = false;
      break;
    }
    std::error_code ignored;
    if (is_hidden(entry->path()) || entry.depth() + 1 >= kMostLevels) entry.disable_recursion_pending();
    if (is_hidden(entry->path()) || entry->is_symlink(ignored) || !entry->is_regular_file(ignored)) continue;
    files.emplace_back(entry->path().lexically_relative(library).string(), entry->file_size(ignored));
  }
  std::sort(files.begin(), files.end());
  json answer{{"files", json::array()}, {"all", all}};
  for (const auto& [source, bytes] : files) answer["files"].push_back({{"source", source}, {"bytes", bytes}});
  return answer;
}

/// Adds to each file how far its conversion is, or which shard file was made of it.
void add_conversions(json& answer, const Conversions& conversions) {
  std::set<std::string> names;
  for (const json& file : answer["files"]) names.insert(file["source"].get<std::string>());
  for (json& file : answer["files"]) {
    const std::string source = file["source"], shard = Conversions::shard_of(source);
    if (const Conversions::State* state = conversions.of(source)) {
      file["conversion"] = {{"state", state->word}};
      if (!state->reason.empty()) file["conversion"]["reason"] = state->reason;
    } else if (names.contains(shard)) {
      file["conversion"] = {{"state", "done"}, {"source", shard}};
    }
  }
}

Accepted list(const Shared& shared, const Call& call) {
  std::string wanted;
  for (const auto& [key, value] : call.target.query) {
    if (key != "source" || value.empty())
      return problem_reply(400, "malformed", "the list takes source=, the path of one file, of which it has the SHA-256");
    wanted = value;
  }
  return take_text(call, [shared, wanted](std::string_view, const std::function<void(Reply)>& done) {
    const auto answer = std::make_shared<json>();
    const auto problem = std::make_shared<std::optional<Problem>>();
    if (!wanted.empty())
      return shared->uploads->background.run(
          [shared, wanted, answer, problem] {
            try {
              *answer = shared->hashes.describe(wanted);
            } catch (const Error& error) {
              *problem = make_problem(404, "no_file", error.what());
            }
          },
          [answer, problem, done] { done(*problem ? problem_reply(**problem) : json_reply(200, *answer)); });
    shared->service.background().run([shared, answer] { *answer = files_of(shared->uploads->library.path()); },
                                     [shared, answer, done] {
                                       add_conversions(*answer, shared->conversions);
                                       (*answer)["most_upload_bytes"] = shared->uploads->most_bytes;
                                       done(json_reply(200, *answer));
                                     });
  });
}

Accepted remove(const Shared& shared, const Call& call) {
  const std::string& name = call.parameters.front();
  if (shared->uploads->most_bytes == 0)
    return problem_reply(403, "no_uploads", "this service changes no files; its option --upload-limit allows that");
  std::error_code error;
  const fs::path path = shared->uploads->library.path() / name;
  if (!is_file_name(name) || !fs::is_regular_file(fs::symlink_status(path, error)))
    return problem_reply(404, "no_file", fmt::format("the library has no file {} that clients may delete", name));
  if (shared->service.has_source(name))
    return problem_reply(409, "in_use",
                         fmt::format("a matrix is loaded from {}, and would be again after a restart; "
                                     "unload it first",
                                     name));
  const Conversions::State* conversion = shared->conversions.of(name);
  if (conversion != nullptr && conversion->word != std::string_view("failed"))
    return problem_reply(make_problem(409, "converting", fmt::format("{} is being converted; try again later", name), 1));
  if (!fs::remove(path, error) && error)
    return problem_reply(507, "no_disk", fmt::format("{} cannot be deleted: {}", name, error.message()));
  shared->conversions.forget(name);
  Reply reply;
  reply.status = 204;
  return reply;
}

}  // namespace

void add_library_routes(Routes& routes, const Parts& parts) {
  const auto shared = std::make_shared<LibraryParts>(parts);
  routes.add(
      {"GET", "/v1/library", Scope::library, "library", [shared](const Call& call) { return list(shared, call); }, true});
  routes.add({"PUT", "/v1/library/{file}", Scope::library, "upload",
              [shared](const Call& call) { return put(shared, call); }, true});
  routes.add({"DELETE", "/v1/library/{file}", Scope::library, "delete_file",
              [shared](const Call& call) { return remove(shared, call); }});
  add_array_routes(routes, parts, shared->uploads);
}

}  // namespace shardmat::serve
