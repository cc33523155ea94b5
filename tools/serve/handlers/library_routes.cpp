// The paths below /v1/library: which files may be loaded, and sending one there. A file has its name only once it is
// complete: before, it has none, and the system removes it if the client leaves or the service ends.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "tools/serve/gate/sha256.h"
#include "tools/serve/handlers/route_groups.h"
#include "tools/serve/handlers/text_job.h"
#include "tools/serve/http/background.h"
#include "tools/serve/observe/service_json.h"

namespace shardmat::serve {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;

/// What uploads share: their thread and where they go.
struct Uploads {
  explicit Uploads(const Parts& parts)
      : library(parts.library), most_bytes(parts.most_upload_bytes), background(parts.loop) {}
  fs::path library;
  std::uint64_t most_bytes;
  Background background;
};

/// A file on its way into the library.
class Upload {
 public:
  Upload(fs::path library, std::string name, std::optional<Sha256> wanted)
      : library_(std::move(library)), name_(std::move(name)), wanted_(wanted) {}
  ~Upload() {
    if (file_ >= 0) close(file_);
  }
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  /// Bytes of the piece that arrives.
  std::vector<std::byte> piece;
  /// Why there will be no file.
  std::optional<Problem> problem;

  /// Appends the piece.
  void write_piece() {
    if (problem) return;
    if (file_ < 0) file_ = open(library_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
    if (file_ < 0) return fail("the library takes no files");
    for (std::size_t done = 0; done < piece.size();) {
      const ssize_t written = ::write(file_, piece.data() + done, piece.size() - done);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return fail("the file cannot be written");
      done += static_cast<std::size_t>(written);
    }
    bytes_ += piece.size();
  }

  /// Compares the hash and gives the file its name.
  void finish() {
    write_piece();
    if (problem) return;
    void* const map = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file_, 0);
    if (map == MAP_FAILED) return fail("the file cannot be read");
    hash_ = sha256({static_cast<const char*>(map), bytes_});
    munmap(map, bytes_);
    if (wanted_ && *wanted_ != hash_) {
      problem =
          make_problem(422, "wrong_hash", name_ + " arrived with another SHA-256 than the request names; send it again");
      return;
    }
    if (fsync(file_) != 0) return fail("the file cannot be written");
    if (linkat(AT_FDCWD, fmt::format("/proc/self/fd/{}", file_).c_str(), AT_FDCWD, (library_ / name_).c_str(),
               AT_SYMLINK_FOLLOW) == 0)
      return;
    if (errno != EEXIST) return fail("the file cannot get its name");
    problem = make_problem(409, "exists", fmt::format("the library has a file {}; take another name", name_));
  }

  nlohmann::ordered_json json() const {
    std::string hash;
    for (const std::uint8_t byte : hash_) hash += fmt::format("{:02x}", byte);
    return {{"name", name_}, {"bytes", bytes_}, {"sha256", hash}};
  }

 private:
  void fail(const char* what) { problem = make_problem(507, "no_disk", fmt::format("{}: {}", what, std::strerror(errno))); }

  fs::path library_;
  std::string name_;
  std::optional<Sha256> wanted_;
  Sha256 hash_{};
  std::uint64_t bytes_ = 0;
  int file_ = -1;
};

class UploadJob final : public Job {
 public:
  UploadJob(std::shared_ptr<Uploads> uploads, std::shared_ptr<Upload> upload, std::uint64_t bytes)
      : uploads_(std::move(uploads)), upload_(std::move(upload)), rest_(bytes) {
    next_piece();
  }
  std::span<std::byte> body() override { return upload_->piece; }
  std::uint64_t rest() const override { return rest_; }
  void take_piece(Next next) override {
    uploads_->background.run([upload = upload_] { upload->write_piece(); },
                             [this, weak = std::weak_ptr(alive_), upload = upload_, next = std::move(next)] {
                               if (weak.expired()) return;
                               if (!upload->problem) next_piece();
                               next(upload->problem);
                             });
  }
  void start(std::function<void(Reply)> done) override {
    uploads_->background.run([upload = upload_] { upload->finish(); },
                             [weak = std::weak_ptr(alive_), upload = upload_, done = std::move(done)] {
                               if (!weak.expired())
                                 done(upload->problem ? problem_reply(*upload->problem) : json_reply(201, upload->json()));
                             });
  }

 private:
  void next_piece() {
    const std::uint64_t bytes = std::min(kPieceBytes, rest_);
    upload_->piece.resize(bytes), rest_ -= bytes;
  }

  std::shared_ptr<Uploads> uploads_;
  std::shared_ptr<Upload> upload_;
  std::uint64_t rest_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

Accepted put(const std::shared_ptr<Uploads>& uploads, const Call& call) {
  const std::string& name = call.parameters.front();
  if (uploads->most_bytes == 0)
    return problem_reply(403, "no_uploads", "this service takes no files; its option --upload-limit allows them");
  if (!is_matrix_name(name))
    return problem_reply(
        400, "bad_name",
        "the name of a file is a letter or digit, then at most 63 letters, digits, dots, hyphens and underscores");
  std::optional<Sha256> wanted;
  for (const auto& [key, value] : call.target.query) {
    wanted = key == "sha256" ? parse_sha256(value) : std::nullopt;
    if (!wanted) return problem_reply(400, "malformed", "an upload takes sha256=, 64 hexadecimal digits");
  }
  const std::uint64_t bytes = call.head.content_length;
  if (bytes == 0) return problem_reply(422, "wrong_length", "the body, which is the file, has no bytes");
  if (bytes > uploads->most_bytes)
    return problem_reply(
        413, "too_long",
        fmt::format("{} has {} bytes; this service takes {} (--upload-limit)", name, bytes, uploads->most_bytes));
  std::error_code error;
  if (fs::exists(uploads->library / name, error))
    return problem_reply(409, "exists", fmt::format("the library has a file {}; take another name", name));
  if (const fs::space_info space = fs::space(uploads->library, error); !error && space.available < bytes)
    return problem_reply(507, "no_disk",
                         fmt::format("{} has {} bytes; the disk has room for {}", name, bytes, space.available));
  return std::make_unique<UploadJob>(uploads, std::make_shared<Upload>(uploads->library, name, wanted), bytes);
}

constexpr std::size_t kMostFiles = 500;
constexpr int kMostLevels = 3;
/// Entries that are looked at, so that a library in the wrong place costs little.
constexpr int kMostEntries = 20000;

bool is_hidden(const fs::path& path) { return path.filename().native().front() == '.'; }

/// Regular files by their paths in the library; links are left out. What cannot be read is left out, too.
nlohmann::ordered_json files_of(const fs::path& library) {
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
  nlohmann::ordered_json answer{{"files", nlohmann::ordered_json::array()}, {"all", all}};
  for (const auto& [source, bytes] : files) answer["files"].push_back({{"source", source}, {"bytes", bytes}});
  return answer;
}

}  // namespace

void add_library_routes(Routes& routes, const Parts& parts) {
  const auto uploads = std::make_shared<Uploads>(parts);
  routes.add(
      {"GET", "/v1/library", Scope::admin, "library", [&service = parts.service, uploads](const Call& call) -> Accepted {
         return take_text(call, [&service, uploads](std::string_view, const std::function<void(Reply)>& done) {
           const auto answer = std::make_shared<nlohmann::ordered_json>();
           service.background().run([uploads, answer] { *answer = files_of(uploads->library); },
                                    [uploads, answer, done] {
                                      (*answer)["most_upload_bytes"] = uploads->most_bytes;
                                      done(json_reply(200, *answer));
                                    });
         });
       }});
  routes.add({"PUT", "/v1/library/{file}", Scope::admin, "upload",
              [uploads](const Call& call) { return put(uploads, call); }, true});
}

}  // namespace shardmat::serve
