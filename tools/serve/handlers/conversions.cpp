#include "tools/serve/handlers/conversions.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "tools/serve/ranks/child_process.h"
#include "tools/serve/words/log.h"

namespace shardmat::serve {

namespace fs = std::filesystem;

namespace {

constexpr int kLookMilliseconds = 100;

/// The first line of an error message of the program.
std::string first_error(int output) {
  std::string text(4096, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, pread(output, text.data(), text.size(), 0))));
  constexpr std::string_view kName = "shardmat: ";
  const std::size_t begin = text.find(kName);
  if (begin == std::string::npos) return {};
  const std::size_t from = begin + kName.size();
  return text.substr(from, text.find('\n', from) - from);
}

/// Clients know paths in the library alone.
std::string without(const std::string& folder, std::string text) {
  for (std::size_t at = 0; (at = text.find(folder, at)) != std::string::npos;) text.erase(at, folder.size());
  return text;
}

}  // namespace

/// A conversion, as the other thread sees it.
struct Conversions::Work {
  enum class Stage { waiting, running, naming, cancelled };

  std::string source, shard, sha256;
  std::vector<std::string> command;
  const LibraryFiles* library = nullptr;
  fs::path from, to;
  FileMark mark, made;         ///< of the source; of the shard file once there is one
  std::optional<FileKey> key;  ///< of the source
  std::shared_ptr<std::atomic<bool>> over;
  std::atomic<Stage> stage = Stage::waiting;
  std::string problem;

  bool advance(Stage before, Stage after) { return stage.compare_exchange_strong(before, after); }
  bool is_over() const { return *over || stage == Stage::cancelled; }

  void run() {
    if (*over || !advance(Stage::waiting, Stage::running)) return;
    try {
      convert();
    } catch (const Error& error) {
      problem = error.what();
    }
    std::error_code ignored;
    fs::remove(to, ignored);
  }

  void convert() {
    if (const auto no_folder = library->make_folder()) throw Error(ErrorKind::resources, no_folder->text);
    const int output = memfd_create("conversion", MFD_CLOEXEC);
    if (output < 0) throw Error(ErrorKind::resources, std::strerror(errno));
    const struct Closes {
      int descriptor;
      ~Closes() { close(descriptor); }
    } at_end{output};
    const pid_t child = start_process(command, output);
    const ProcessHandle process(child);
    while (!process.ended() && !is_over()) {
      pollfd watched{process.descriptor(), POLLIN, 0};
      poll(&watched, 1, kLookMilliseconds);
    }
    if (is_over()) process.signal(SIGKILL);
    const std::string end = reap(child);
    if (is_over()) return;
    if (end != "exit code 0") {
      const std::string said = without(library->path().string() + "/", first_error(output));
      throw Error(ErrorKind::input, said.empty() ? "shardmat partition ended with " + end : said);
    }
    if (mark_of(from) != mark) throw Error(ErrorKind::input, fmt::format("{} has changed since it was sent", source));
    made = mark_of(to).value_or(FileMark{});
    if (!advance(Stage::running, Stage::naming)) return;
    const int error = rename_without_replacing(to, library->path() / shard);
    if (error == EEXIST) throw Error(ErrorKind::input, fmt::format("the library has a file {}", shard));
    if (error != 0) throw Error(ErrorKind::resources, fmt::format("{}: {}", shard, std::strerror(error)));
  }
};

Conversions::Conversions(EventLoop& loop, const LibraryFiles& library, std::string program, const fs::path& records)
    : library_(library), program_(std::move(program)), records_(records), background_(loop) {}

Conversions::~Conversions() { *over_ = true; }

const Conversions::State* Conversions::of(const std::string& source) {
  const auto found = known_.find(source);
  if (found == known_.end()) return nullptr;
  const auto& [state, work] = found->second;
  if (!state.has_failed() || key_of(work->from) == work->key) return &state;
  known_.erase(found);
  return nullptr;
}

bool Conversions::cancel(const std::string& source) {
  using Stage = Work::Stage;
  const auto found = known_.find(source);
  if (found == known_.end()) return true;
  Work& work = *found->second.work;
  if (!found->second.state.has_failed() && !work.advance(Stage::waiting, Stage::cancelled) &&
      !work.advance(Stage::running, Stage::cancelled))
    return false;
  known_.erase(found);
  return true;
}

void Conversions::add(const std::string& source, const std::string& sha256, const FileMark& mark, std::size_t parts) {
  const auto work = std::make_shared<Work>();
  work->source = source, work->shard = shard_of(source), work->sha256 = sha256, work->mark = mark, work->over = over_;
  work->library = &library_, work->from = library_.path() / source;
  work->key = key_of(work->from);
  work->to = library_.path() / library_.own(fmt::format("conversion.{}.h5", ++last_number_));
  // One thread at the lowest priority: products come first.
  work->command = {"nice",           "-n", "19", "env", "OMP_NUM_THREADS=1", program_, "partition", work->from.string(),
                   work->to.string()};
  if (parts > 1) work->command.insert(work->command.end(), {"--parts", std::to_string(parts)});
  known_[source] = {{}, work};
  records_.erase(source);
  const auto state = [this, work]() -> State* {  // null if it was cancelled
    const auto found = known_.find(work->source);
    return found == known_.end() || found->second.work != work ? nullptr : &found->second.state;
  };
  const auto begun = [state] {
    if (State* const known = state()) known->word = "running";
  };
  const auto ended = [this, work, state] {
    State* const known = state();
    if (known == nullptr) return;
    if (!work->problem.empty()) {
      log_line(fmt::format("{} was not converted: {}", work->source, work->problem));
      *known = {"failed", work->problem};
      return;
    }
    known_.erase(work->source);
    records_.add(work->source, {work->sha256, work->mark, work->made});
  };
  background_.run([] {}, begun);
  background_.run([work] { work->run(); }, ended);
}

}  // namespace shardmat::serve
