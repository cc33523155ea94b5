// The paths below /v1/library: which files may be loaded, sending one there, and deleting one.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "runtime/service/wire/library.h"
#include "tools/serve/handlers/conversions.h"
#include "tools/serve/handlers/file_hashes.h"
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

/// What these routes share.
struct LibraryParts {
  explicit LibraryParts(const Parts& parts)
      : service(parts.service),
        library(parts.library.path()),
        uploads(std::make_shared<Uploads>(parts.loop, parts.library, parts.most_upload_bytes)),
        conversions(parts.loop, parts.library, parts.program, parts.state / "shards.json"),
        hashes(parts.loop, parts.library.path()) {}

  fs::path path_of(const std::string& name) const { return uploads->library.path() / name; }

  Service& service;
  service::Library library;
  std::shared_ptr<Uploads> uploads;
  Conversions conversions;
  FileHashes hashes;
};
using Shared = std::shared_ptr<LibraryParts>;

/// What the service has made of these bytes, if the shard file still is what it made.
const ShardRecord* shard_record(LibraryParts& parts, const std::string& name) {
  const ShardRecord* record = parts.conversions.records().of(name);
  if (record == nullptr) return nullptr;
  const auto mark = mark_of(parts.path_of(Conversions::shard_of(name)));
  return mark && is_same(*mark, record->shard) ? record : nullptr;
}

/// The file becomes a shard file, unless there is one of the same bytes, or it is no matrix: coordinates and vectors are
/// .npy.
void convert(LibraryParts& parts, const Uploaded& file) {
  if (file.source.ends_with(".h5") || file.source.ends_with(".npy")) return;
  const std::string hash = text_of(file.hash);
  if (const ShardRecord* record = shard_record(parts, file.source); record != nullptr && record->sha256 == hash)
    return parts.conversions.records().add(file.source, {hash, file.mark, record->shard});
  parts.conversions.add(file.source, hash, file.mark, parts.service.ranks().hellos().size());
}

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
  if (fs::exists(shared->path_of(name), error))
    return problem_reply(409, "exists", fmt::format("the library has a file {}; take another name", name));
  if (const std::string shard = Conversions::shard_of(name);
      !name.ends_with(".h5") && fs::exists(shared->path_of(shard), error)) {
    const ShardRecord* record = shard_record(*shared, name);
    if (record == nullptr || !wanted || record->sha256 != text_of(*wanted))
      return problem_reply(409, "exists",
                           fmt::format("the library has a file {}, which would count as made of {}, and is not known to be: "
                                       "delete it, or take another name",
                                       shard, name));
  }
  return take_file(shared->uploads, call, name, name, wanted,
                   [shared](const Uploaded& file, const std::function<void(Reply)>& done) {
                     convert(*shared, file);
                     done(json_reply(201, {{"name", file.source}, {"bytes", file.bytes}, {"sha256", text_of(file.hash)}}));
                   });
}

constexpr std::size_t kMostFiles = 500;
constexpr int kMostLevels = 3;
/// Entries that are looked at, so that a library in the wrong place costs little.
constexpr int kMostEntries = 20000;

bool is_hidden(const fs::path& path) { return path.filename().native().front() == '.'; }

struct Files {
  std::map<std::string, FileMark> marks;  ///< by path in the library
  bool all = true;
};

/// Regular files; links are left out. What cannot be read is left out, too.
Files files_of(const fs::path& library) {
  Files files;
  std::error_code error;
  fs::recursive_directory_iterator entry(library, fs::directory_options::skip_permission_denied, error);
  for (int seen = 0; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (++seen > kMostEntries || files.marks.size() >= kMostFiles) {
      files.all = false;
      break;
    }
    if (is_hidden(entry->path()) || entry.depth() + 1 >= kMostLevels) entry.disable_recursion_pending();
    if (is_hidden(entry->path())) continue;
    if (const auto mark = mark_of(entry->path())) files.marks[entry->path().lexically_relative(library).string()] = *mark;
  }
  return files;
}

/// How far the conversion of a file is, or which shard file was made of it; null if neither is known.
json conversion_of(const std::string& source, const Files& files, Conversions& conversions) {
  if (const Conversions::State* state = conversions.of(source)) {
    json conversion{{"state", state->word}};
    if (!state->reason.empty()) conversion["reason"] = state->reason;
    return conversion;
  }
  const ShardRecord* record = conversions.records().of(source);
  const auto shard = files.marks.find(Conversions::shard_of(source));
  if (record == nullptr || shard == files.marks.end() || !is_same(files.marks.at(source), record->source) ||
      !is_same(shard->second, record->shard))
    return nullptr;
  return {{"state", "done"}, {"source", shard->first}};
}

json list_json(const Files& files, Conversions& conversions) {
  json answer{{"files", json::array()}, {"all", files.all}};
  for (const auto& [source, mark] : files.marks) {
    answer["files"].push_back({{"source", source}, {"bytes", mark.bytes}});
    if (json conversion = conversion_of(source, files, conversions); !conversion.is_null())
      answer["files"].back()["conversion"] = std::move(conversion);
  }
  return answer;
}

Accepted list(const Shared& shared, const Call& call) {
  std::string wanted;
  for (const auto& [key, value] : call.target.query) {
    if (key != "source" || value.empty())
      return problem_reply(400, "malformed", "the list takes source=, the path of one file, of which it has the SHA-256");
    wanted = value;
  }
  const auto client = std::make_shared<int>();  // goes with the request
  return take_text(call, [shared, wanted, client](std::string_view, const std::function<void(Reply)>& done) {
    if (!wanted.empty()) return shared->hashes.describe(wanted, client, done);
    const auto files = std::make_shared<Files>();
    shared->service.background().run([shared, files] { *files = files_of(shared->uploads->library.path()); },
                                     [shared, files, done] {
                                       json answer = list_json(*files, shared->conversions);
                                       answer["most_upload_bytes"] = shared->uploads->most_bytes;
                                       done(json_reply(200, answer));
                                     });
  });
}

/// True if a matrix is loaded from the file, whatever path it was loaded by.
bool is_loaded(const LibraryParts& parts, const struct stat& file) {
  for (const std::string& source : parts.service.sources()) {
    try {
      struct stat there {};
      const int descriptor = parts.library.open(source);
      fstat(descriptor, &there);
      close(descriptor);
      if (there.st_dev == file.st_dev && there.st_ino == file.st_ino) return true;
    } catch (const Error&) {  // it has gone
    }
  }
  return false;
}

/// Open files that have lost their names. The disk frees their room when they are closed, which may take a while.
class NamelessFiles {
 public:
  NamelessFiles() = default;
  ~NamelessFiles() { close_all(); }
  NamelessFiles(const NamelessFiles&) = delete;
  NamelessFiles& operator=(const NamelessFiles&) = delete;

  /// Takes the name away. Returns errno; 0: done.
  int unlink(const fs::path& file) {
    const int descriptor = open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor >= 0) descriptors_.push_back(descriptor);
    return ::unlink(file.c_str()) == 0 ? 0 : errno;
  }
  void close_all() {
    for (const int descriptor : std::exchange(descriptors_, {})) close(descriptor);
  }

 private:
  std::vector<int> descriptors_;
};

Accepted remove(const Shared& shared, const Call& call) {
  const std::string& name = call.parameters.front();
  if (shared->uploads->most_bytes == 0)
    return problem_reply(403, "no_uploads", "this service changes no files; its option --upload-limit allows that");
  if (!is_file_name(name) || !mark_of(shared->path_of(name)))
    return problem_reply(404, "no_file", fmt::format("the library has no file {} that clients may delete", name));
  std::vector<std::string> names;
  if (shard_record(*shared, name) != nullptr) names.push_back(Conversions::shard_of(name));
  names.push_back(name);
  for (const std::string& one : names) {
    struct stat status {};
    if (lstat(shared->path_of(one).c_str(), &status) == 0 && is_loaded(*shared, status))
      return problem_reply(
          409, "in_use",
          fmt::format("a matrix is loaded from {}, and would be again after a restart; unload it first", one));
  }
  if (!shared->conversions.cancel(name))
    return problem_reply(make_problem(409, "converting", fmt::format("{} is just converted; try again", name), 1));
  const auto files = std::make_shared<NamelessFiles>();
  for (const std::string& one : names)
    if (const int failed = files->unlink(shared->path_of(one)); failed != 0)
      return problem_reply(507, "no_disk", fmt::format("{} cannot be deleted: {}", one, std::strerror(failed)));
  shared->uploads->background.run([files] { files->close_all(); }, [] {});
  shared->conversions.records().erase(name);
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
