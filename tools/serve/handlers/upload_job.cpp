#include "tools/serve/handlers/upload_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

namespace shardmat::serve {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;

/// The file, as the other thread sees it.
struct Arriving {
  Arriving(const LibraryFiles& library, std::uint64_t number, std::string source, std::optional<Sha256> hash)
      : file(library, number), path(library.path() / source), wanted(hash) {
    uploaded.source = std::move(source);
  }
  ~Arriving() { close(); }  // where the service has ended before the other thread could
  Arriving(const Arriving&) = delete;
  Arriving& operator=(const Arriving&) = delete;

  void write_piece() {
    if (problem) return;
    problem = file.write(piece);
    sum.add({reinterpret_cast<const char*>(piece.data()), piece.size()});
    uploaded.bytes += piece.size();
  }

  void finish() {
    name_file();
    if (problem) file.close(false);  // before the client hears of it
  }

  void close() { file.close(is_kept); }

  std::vector<std::byte> piece;        ///< that arrives
  std::atomic<bool> is_wanted = true;  ///< its client is there, and may do this
  bool is_kept = false;                ///< set before `complete` is called
  std::optional<Problem> problem;
  Uploaded uploaded;

 private:
  void name_file() {
    if (!is_wanted) return;
    write_piece();
    if (problem) return;
    uploaded.hash = sum.finish();
    if (wanted && *wanted != uploaded.hash)
      problem = make_problem(422, "wrong_hash",
                             uploaded.source + " arrived with another SHA-256 than the request names; send it again");
    else if (is_wanted) problem = file.finish(uploaded.source);
    if (!problem) uploaded.mark = mark_of(path).value_or(FileMark{});
  }

  IncomingFile file;
  std::filesystem::path path;
  Sha256Sum sum;
  std::optional<Sha256> wanted;
};

using Complete = std::function<void(const Uploaded&, const std::function<void(Reply)>&)>;

class UploadJob final : public Job {
 public:
  UploadJob(std::shared_ptr<Uploads> uploads, std::shared_ptr<Arriving> file, std::uint64_t bytes, Complete complete)
      : uploads_(std::move(uploads)), file_(std::move(file)), rest_(bytes), complete_(std::move(complete)) {
    next_piece();
  }
  ~UploadJob() override {
    file_->is_wanted = false;
    uploads_->background.run([file = file_] { file->close(); }, [] {});
  }
  std::span<std::byte> body() override { return file_->piece; }
  std::uint64_t rest() const override { return rest_; }
  void take_piece(Next next) override {
    uploads_->background.run([file = file_] { file->write_piece(); },
                             [this, weak = std::weak_ptr(alive_), file = file_, next = std::move(next)] {
                               if (weak.expired()) return;
                               if (!file->problem) next_piece();
                               next(file->problem);
                             });
  }
  void start(std::function<void(Reply)> done) override {
    const auto here = [weak = std::weak_ptr(alive_), done = std::move(done)](Reply reply) {
      if (!weak.expired()) done(std::move(reply));  // else the client has left
    };
    // What waits for the other thread must not keep what `complete` keeps, which has that thread.
    uploads_->background.run([file = file_] { file->finish(); },
                             [this, weak = std::weak_ptr(alive_), file = file_, here] {
                               if (weak.expired()) return;
                               if (file->problem) return here(problem_reply(*file->problem));
                               file->is_kept = true;
                               const Complete complete = complete_;  // the job may end meanwhile
                               complete(file->uploaded, here);
                             });
  }

 private:
  void next_piece() {
    const std::uint64_t bytes = std::min(kPieceBytes, rest_);
    file_->piece.resize(bytes), rest_ -= bytes;
  }

  std::shared_ptr<Uploads> uploads_;
  std::shared_ptr<Arriving> file_;
  std::uint64_t rest_;
  Complete complete_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

Accepted take_file(const std::shared_ptr<Uploads>& uploads, const Call& call, const std::string& source,
                   const std::string& what, std::optional<Sha256> wanted, Complete complete) {
  if (uploads->most_bytes == 0)
    return problem_reply(403, "no_uploads", "this service takes no files; its option --upload-limit allows them");
  const std::uint64_t bytes = call.head.content_length;
  if (bytes == 0) return problem_reply(422, "wrong_length", fmt::format("the body, which is {}, has no bytes", what));
  if (bytes > uploads->most_bytes)
    return problem_reply(
        413, "too_long",
        fmt::format("{} has {} bytes; this service takes {} (--upload-limit)", what, bytes, uploads->most_bytes));
  std::error_code error;
  if (const auto space = std::filesystem::space(uploads->library.path(), error); !error && space.available < bytes)
    return problem_reply(507, "no_disk",
                         fmt::format("{} has {} bytes; the disk has room for {}", what, bytes, space.available));
  return std::make_unique<UploadJob>(uploads,
                                     std::make_shared<Arriving>(uploads->library, uploads->new_number(), source, wanted),
                                     bytes, std::move(complete));
}

}  // namespace shardmat::serve
