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
  std::string source, shard;
  std::vector<std::string> command;
  fs::path library, from, to;
  std::shared_ptr<std::atomic<bool>> over;
  std::string problem;

  void run() {
    if (*over) return;
    try {
      convert();
    } catch (const Error& error) {
      problem = error.what();
    }
    std::error_code ignored;
    fs::remove(to, ignored);
  }

  void convert() {
    const int output = memfd_create("conversion", MFD_CLOEXEC);
    if (output < 0) throw Error(ErrorKind::resources, std::strerror(errno));
    const struct Closes {
      int descriptor;
      ~Closes() { close(descriptor); }
    } at_end{output};
    const pid_t child = start_process(command, output);
    const ProcessHandle process(child);
    while (!process.ended() && !*over) {
      pollfd watched{process.descriptor(), POLLIN, 0};
      poll(&watched, 1, kLookMilliseconds);
    }
    if (*over) process.signal(SIGKILL);
    const std::string end = reap(child);
    if (*over) return;
    if (end != "exit code 0") {
      const std::string said = without(library.string() + "/", first_error(output));
      throw Error(ErrorKind::input, said.empty() ? "shardmat partition ended with " + end : said);
    }
    const int error = rename_without_replacing(to, library / shard);
    if (error == EEXIST) throw Error(ErrorKind::input, fmt::format("the library has a file {}", shard));
    if (error != 0) throw Error(ErrorKind::resources, fmt::format("{}: {}", shard, std::strerror(error)));
  }
};

Conversions::Conversions(EventLoop& loop, const LibraryFiles& library, std::string program)
    : library_(library), program_(std::move(program)), loop_(loop), background_(loop) {}

Conversions::~Conversions() { *over_ = true; }

const Conversions::State* Conversions::of(const std::string& source) const {
  const auto found = known_.find(source);
  return found == known_.end() ? nullptr : &found->second;
}

void Conversions::add(const std::string& source, std::size_t parts) {
  const auto work = std::make_shared<Work>();
  work->source = source, work->shard = shard_of(source), work->over = over_;
  work->library = library_.path(), work->from = library_.path() / source;
  work->to = library_.path() / library_.own(fmt::format("conversion.{}.h5", ++last_number_));
  // One thread at the lowest priority: products come first.
  work->command = {"nice",           "-n", "19", "env", "OMP_NUM_THREADS=1", program_, "partition", work->from.string(),
                   work->to.string()};
  if (parts > 1) work->command.insert(work->command.end(), {"--parts", std::to_string(parts)});
  known_[source] = {};
  if (const auto problem = library_.make_folder()) {
    known_[source] = {"failed", problem->text};
    return;
  }
  const auto begun = [this, source] {
    if (const auto found = known_.find(source); found != known_.end()) found->second.word = "running";
  };
  const auto ended = [this, work] {
    const auto found = known_.find(work->source);
    if (!work->problem.empty()) log_line(fmt::format("{} was not converted: {}", work->source, work->problem));
    if (found == known_.end()) return;  // it was deleted meanwhile
    if (work->problem.empty()) known_.erase(found);
    else found->second = {"failed", work->problem};
  };
  background_.run([] {}, begun);
  background_.run([work] { work->run(); }, ended);
}

}  // namespace shardmat::serve
