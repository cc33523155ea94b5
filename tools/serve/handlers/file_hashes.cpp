#include "tools/serve/handlers/file_hashes.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "tools/serve/gate/sha256.h"
#include "tools/serve/observe/service_json.h"
#include "tools/serve/state/library_files.h"

namespace shardmat::serve {
namespace {

constexpr std::size_t kSliceBytes = std::size_t{8} << 20, kMostKnown = 10'000;

}  // namespace

/// A file that is read, and who waits for its hash. Only the thread of the event loop looks at those who wait.
struct FileHashes::File {
  struct Waiting {
    std::string source;  ///< a file may have several paths
    std::weak_ptr<const void> waits;
    std::function<void(Reply)> done;
  };

  explicit File(Waiting first) : source(first.source) { waiting.push_back(std::move(first)); }
  ~File() {
    if (descriptor >= 0) close(descriptor);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  FileKey key_now() const {
    struct stat now {};
    fstat(descriptor, &now);
    return key_of(now);
  }

  void open(const service::Library& library) {
    try {
      if (LibraryFiles::is_of_service(source))
        throw Error(ErrorKind::input, fmt::format("{}: there is no such file in the library", source));
      descriptor = library.open(source);
      key = key_now();
    } catch (const Error& error) {
      problem = make_problem(404, "no_file", error.what());
    }
  }

  void read_slice() {
    slice.resize(kSliceBytes);
    const ssize_t got = read(descriptor, slice.data(), slice.size());
    if (got < 0 && errno == EINTR) return;
    if (got < 0) problem = make_problem(404, "no_file", fmt::format("{}: {}", source, std::strerror(errno)));
    if (got > 0) sum.add({slice.data(), static_cast<std::size_t>(got)});
    if (got != 0) return;
    hash = text_of(sum.finish());
    if (key_now() != key)
      problem = make_problem(409, "changed", fmt::format("{} was changed while it was read; ask again", source), 1);
  }

  bool is_wanted() const {
    return std::any_of(waiting.begin(), waiting.end(), [](const Waiting& one) { return !one.waits.expired(); });
  }
  void answer() const {
    for (const Waiting& one : waiting) {
      if (one.waits.expired()) continue;
      one.done(problem ? problem_reply(*problem)
                       : json_reply(200, {{"source", one.source}, {"bytes", std::get<2>(key)}, {"sha256", hash}}));
    }
  }

  const std::string source;
  std::vector<Waiting> waiting;
  int descriptor = -1;
  FileKey key;
  std::string slice, hash;
  Sha256Sum sum;
  std::optional<Problem> problem;
};

void FileHashes::describe(const std::string& source, std::weak_ptr<const void> waits, std::function<void(Reply)> done) {
  const auto file = std::make_shared<File>(File::Waiting{source, std::move(waits), std::move(done)});
  background_.run([this, file] { file->open(library_); }, [this, file] { begin(file); });
}

void FileHashes::begin(const std::shared_ptr<File>& file) {
  if (file->problem) return file->answer();
  if (const auto known = known_.find(file->key); known != known_.end()) {
    file->hash = known->second;
    return file->answer();
  }
  auto& read = read_[file->key];
  if (read) return read->waiting.push_back(std::move(file->waiting.front()));
  read = file;
  go_on(file);
}

/// The next slice, unless all is read or nobody waits any more.
void FileHashes::go_on(const std::shared_ptr<File>& file) {
  const bool is_read = file->problem || !file->hash.empty();
  if (!is_read && file->is_wanted()) return background_.run([file] { file->read_slice(); }, [this, file] { go_on(file); });
  read_.erase(file->key);
  if (!is_read) return;
  if (!file->problem) {
    if (known_.size() >= kMostKnown) known_.clear();
    known_[file->key] = file->hash;
  }
  file->answer();
}

}  // namespace shardmat::serve
