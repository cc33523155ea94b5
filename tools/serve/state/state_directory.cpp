#include "tools/serve/state/state_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "kernels/base/error.h"
#include "tools/serve/state/replace_file.h"
#include "tools/serve/words/old_logs.h"
#include "tools/serve/words/value_names.h"

namespace shardmat::serve {

namespace fs = std::filesystem;

namespace {

constexpr const char* kMatrices = "matrices.json";

[[noreturn]] void fail(const fs::path& path, const std::string& why) {
  throw Error(ErrorKind::resources, fmt::format("{}: {}; name another state directory", path.string(), why), "state");
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

fs::path default_state_directory() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/')
    return fs::path(state) / "shardmat";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return fs::path(home) / ".local/state/shardmat";
  return {};
}

StateDirectory::StateDirectory(const fs::path& path) : path_(path) {
  if (path.empty())
    throw Error(ErrorKind::usage, "there is neither XDG_STATE_HOME nor HOME; name a state directory", "state");
  std::error_code error;
  const bool is_new = fs::create_directories(path, error);
  if (error) fail(path, error.message());
  path_ = fs::absolute(path);
  if (is_new) chmod(path.c_str(), 0700);
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) fail(path, std::strerror(errno));
  if (status.st_uid != geteuid() || (status.st_mode & 077) != 0) fail(path, "other users have access (it needs mode 0700)");
  const fs::path lock = path_ / "lock";
  lock_ = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_ < 0) fail(lock, std::strerror(errno));
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    const std::string process = content_of(lock);
    close(lock_);
    fail(path, fmt::format("the server with process {} uses it", process.empty() ? "?" : process));
  }
  const std::string process = std::to_string(getpid());
  if (ftruncate(lock_, 0) != 0 || write(lock_, process.data(), process.size()) < 0) fail(lock, std::strerror(errno));
  fs::remove_all(path_ / "run", error);
  keep_old_logs(worker_log());
}

StateDirectory::~StateDirectory() {
  std::error_code ignored;
  fs::remove_all(path_ / "run", ignored);
  [[maybe_unused]] const int emptied = ftruncate(lock_, 0);
  close(lock_);
}

std::string StateDirectory::id() const {
  const fs::path file = path_ / "id";
  std::string id = content_of(file).substr(0, 16);
  if (id.size() == 16 && id.find_first_not_of("0123456789abcdef") == std::string::npos) return id;
  std::uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) != sizeof bits) fail(file, std::strerror(errno));
  id = fmt::format("{:016x}", bits);
  if (const auto error = replace_file(file, id + "\n")) fail(file, error.message());
  return id;
}

fs::path StateDirectory::new_run_directory() {
  std::error_code error;
  fs::remove_all(path_ / "run", error);
  const fs::path run = path_ / "run" / std::to_string(++runs_);
  fs::create_directories(run, error);
  if (error) fail(run, error.message());
  return run;
}

std::vector<WantedMatrix> StateDirectory::read_matrices() const {
  const fs::path file = path_ / kMatrices;
  if (!fs::exists(file)) return {};
  std::vector<WantedMatrix> matrices;
  try {
    const auto json = nlohmann::json::parse(content_of(file));
    for (const auto& one : json.at("matrices"))
      matrices.push_back({one.at("name"), one.at("source"), parse_type(one.at("type").get<std::string>()).value(),
                          one.at("exchange"), one.value("kernel", "auto"), one.value("sort", "auto"),
                          one.value("updatable", false), one.value("solvable", false), one.value("has_new_values", false),
                          one.value("pinned", false), one.value("of_arrays", false), one.value("coordinates", "")});
  } catch (const std::exception& error) {
    throw Error(ErrorKind::input,
                fmt::format("{}: this is not what the service wrote ({}); remove the file to start without "
                            "matrices",
                            file.string(), error.what()));
  }
  return matrices;
}

void StateDirectory::write_matrices(const std::vector<WantedMatrix>& matrices) const {
  auto list = nlohmann::ordered_json::array();
  for (const WantedMatrix& one : matrices)
    list.push_back({{"name", one.name},
                    {"source", one.source},
                    {"type", type_name(one.type)},
                    {"exchange", one.exchange},
                    {"kernel", one.kernel},
                    {"sort", one.sort},
                    {"updatable", one.updatable},
                    {"solvable", one.solvable},
                    {"has_new_values", one.has_new_values},
                    {"pinned", one.pinned},
                    {"of_arrays", one.of_arrays},
                    {"coordinates", one.coordinates}});
  const fs::path file = path_ / kMatrices;
  if (const auto error = replace_file(file, nlohmann::ordered_json{{"matrices", list}}.dump(2) + "\n"))
    fail(file, error.message());
}

}  // namespace shardmat::serve
