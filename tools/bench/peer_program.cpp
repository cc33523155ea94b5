#include "tools/bench/peer_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <limits>
#include <sstream>
#include <string_view>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/base/timer.h"
#include "tools/cli/environment.h"
#include "tools/cli/other_programs.h"

namespace shardmat::tools {
namespace {

constexpr double kStartSeconds = 60;  ///< in which a program must connect
constexpr const char* kPeerProgram = "shardmat-peers";
constexpr const char* kPackages = "libeigen3-dev, libdune-istl-dev, petsc-dev, librsb-dev";

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorKind::resources, what); }
std::string reason() { return std::strerror(errno); }

/// This process's environment with some variables replaced.
std::vector<std::string> environment_with(const std::vector<std::string>& settings) {
  std::vector<std::string> result = settings;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable, name = text.substr(0, text.find('=') + 1);
    if (std::none_of(settings.begin(), settings.end(), [&](const std::string& s) { return s.starts_with(name); }))
      result.emplace_back(text);
  }
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

/// A listening socket of the abstract namespace, where no file has to be removed.
int listen_at(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (listener < 0 || ::bind(listener, reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
      ::listen(listener, 64) != 0)
    fail("cannot open a socket for the peer program: " + reason());
  return listener;
}

/// Of this user: anybody on the machine could connect to a socket without a file.
bool is_own(int socket) {
  ucred other{};
  socklen_t size = sizeof other;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == ::getuid();
}

/// Waits until `socket` can be read, up to `milliseconds`.
bool is_readable(int socket, int milliseconds) {
  pollfd waiting{socket, POLLIN, 0};
  return ::poll(&waiting, 1, milliseconds) > 0;
}

template <class T>
void write_arrays(const CsrView& matrix, std::byte* block, const peers::OperandsHeader& header,
                  const std::function<double(std::int64_t)>& entry) {
  auto* row_ptr = reinterpret_cast<std::int32_t*>(block + header.row_ptr);
  auto* col_idx = reinterpret_cast<std::int32_t*>(block + header.col_idx);
  auto* values = reinterpret_cast<T*>(block + header.values);
  auto* x = reinterpret_cast<T*>(block + header.x);
  row_ptr[0] = 0;
  for (std::int64_t i = 0; i < header.rows; ++i)
    row_ptr[i + 1] = static_cast<std::int32_t>(matrix.row_ptr[static_cast<std::size_t>(i) + 1] - matrix.row_ptr[0]);
  for (std::int64_t k = 0; k < header.nnz; ++k) {
    col_idx[k] = static_cast<std::int32_t>(matrix.col_idx[static_cast<std::size_t>(k)]);
    values[k] = static_cast<T>(matrix.values[static_cast<std::size_t>(k)]);
  }
  for (std::int64_t i = 0; i < header.cols * header.columns; ++i) x[i] = static_cast<T>(entry(i));
}

/// Starts a program with its standard output on standard error. `alone`: without mpirun.
pid_t spawn(std::vector<std::string> words, int threads, bool alone) {
  // Threads that wait must sleep: the other process multiplies meanwhile. MKL takes the same OpenMP library as all others.
  std::vector<std::string> settings{fmt::format("OMP_NUM_THREADS={}", threads), "OMP_WAIT_POLICY=passive",
                                    "MKL_THREADING_LAYER=GNU", "MKL_DYNAMIC=FALSE"};
  if (alone)  // PETSc starts no daemon, and shares no files with other processes alone (comm/mpi_session.cpp)
    settings.insert(settings.end(), {"OMPI_MCA_ess_singleton_isolated=1", "OMPI_MCA_orte_create_session_dirs=0"});
  std::vector<std::string> variables = environment_with(settings);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, 2, 1);  // standard output is for the report
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, words[0].c_str(), &files, nullptr, pointers_to(words).data(), pointers_to(variables).data());
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) fail(fmt::format("cannot start {}: {}", words[0], std::strerror(error)));
  return child;
}

}  // namespace

std::string peer_program_path() { return (program_folder() / kPeerProgram).string(); }

void require_peer_program() {
  if (std::filesystem::exists(peer_program_path())) return;
  throw Error(ErrorKind::resources,
              fmt::format("there is no {} in {}: it is built with the libraries that it compares, and never installed. "
                          "Install some of them ({}; or deploy/install-dependencies.sh --peers), configure and build again",
                          kPeerProgram, program_folder().string(), kPackages));
}

void start_apart(std::vector<std::string> command, int threads) { spawn(std::move(command), threads, false); }

void let_waiting_threads_sleep() {
  std::string policy = environment("OMP_WAIT_POLICY", "");
  std::transform(policy.begin(), policy.end(), policy.begin(), [](unsigned char c) { return std::tolower(c); });
  if (policy == "passive") return;
  ::setenv("OMP_WAIT_POLICY", "passive", 1);
  std::vector<std::string> own = own_words();
  std::vector<char*> words;
  for (std::string& word : own) words.push_back(word.data());
  words.push_back(nullptr);
  ::execv("/proc/self/exe", words.data());
  throw Error(ErrorKind::resources, "cannot start anew with OMP_WAIT_POLICY=passive; set this variable yourself");
}

SharedOperands::SharedOperands(const CsrView& matrix, ValueType type, const RightHandSides& rhs,
                               const std::function<double(std::int64_t)>& entry, const SystemNodes& nodes) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (std::max({matrix.rows, matrix.cols, matrix.nnz()}) >= most)
    fail("the peers count rows, columns and nonzeros with 32 bits; take a matrix with fewer than 2^31 of each");
  peers::OperandsHeader header;
  header.rows = matrix.rows, header.cols = matrix.cols, header.nnz = matrix.nnz();
  header.columns = rhs.count, header.column_major = rhs.x == DenseOrder::column_major;
  header.value_bytes = static_cast<std::int64_t>(size_of(type));
  header.node_size = nodes.size, header.dimensions = nodes.dimensions;
  header.lay_out();
  bytes_ = static_cast<std::size_t>(header.bytes);
  require_memory({}, header.bytes, "the operands for the peers");
  file_ = ::memfd_create("shardmat operands", MFD_CLOEXEC);
  if (file_ < 0 || ::ftruncate(file_, header.bytes) != 0) fail("cannot make shared memory for the peers: " + reason());
  void* block = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (block == MAP_FAILED) fail("cannot map shared memory for the peers: " + reason());
  block_ = static_cast<std::byte*>(block);
  std::memcpy(block_, &header, sizeof header);
  if (type == ValueType::f64) write_arrays<double>(matrix, block_, header, entry);
  else write_arrays<float>(matrix, block_, header, entry);
  std::copy(nodes.coordinates.begin(), nodes.coordinates.end(), reinterpret_cast<double*>(block_ + header.coordinates));
}

SharedOperands::~SharedOperands() {
  if (block_ != nullptr) ::munmap(block_, bytes_);
  if (file_ >= 0) ::close(file_);
}

std::string SharedOperands::path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), file_); }

void SharedOperands::poison_y() { std::memset(block_ + header().y, 0xff, bytes_ - static_cast<std::size_t>(header().y)); }

void SharedOperands::set_y(std::span<const double> y) {
  std::copy(y.begin(), y.end(), reinterpret_cast<double*>(block_ + header().y));
}

double SharedOperands::relative_residual(double factor) const {
  const auto* row_ptr = reinterpret_cast<const std::int32_t*>(block_ + header().row_ptr);
  const auto* col_idx = reinterpret_cast<const std::int32_t*>(block_ + header().col_idx);
  const auto* values = reinterpret_cast<const double*>(block_ + header().values);
  const auto* x = reinterpret_cast<const double*>(block_ + header().x);
  const auto* y = reinterpret_cast<const double*>(block_ + header().y);
  double of_residual = 0, of_x = 0;
  for (std::int64_t i = 0; i < header().rows; ++i) {
    double sum = 0;
    for (std::int32_t k = row_ptr[i]; k < row_ptr[i + 1]; ++k) sum += values[k] * y[col_idx[k]];
    of_residual += (x[i] - factor * sum) * (x[i] - factor * sum);
    of_x += x[i] * x[i];
  }
  return std::sqrt(of_residual / of_x);
}

PeerProgram::PeerProgram(std::vector<std::string> command, int ranks, int threads, bool cpu_clock) : program_(command[0]) {
  static int number = 0;
  const std::string name = fmt::format("shardmat-bench-{}-{}", ::getpid(), ++number);
  const int listener = listen_at(name);
  command.push_back(name);
  command.emplace_back(cpu_clock ? "cpu" : "wall");
  try {
    start(std::move(command), threads, ranks == 1);
    accept_ranks(listener, ranks);
  } catch (...) {
    ::close(listener);
    throw;
  }
  ::close(listener);
}

PeerProgram::PeerProgram(const std::string& name, int ranks) : program_(kPeerProgram) {
  const int listener = listen_at(name);
  try {
    accept_ranks(listener, ranks);
  } catch (...) {
    ::close(listener);
    throw;
  }
  ::close(listener);
}

PeerProgram::~PeerProgram() {
  for (const Rank& rank : ranks_) ::close(rank.socket);
  if (child_ == 0) return;
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void PeerProgram::start(std::vector<std::string> words, int threads, bool alone) {
  child_ = spawn(std::move(words), threads, alone);
}

void PeerProgram::accept_ranks(int listener, int ranks) {
  const Timer timer;
  while (std::ssize(ranks_) < ranks) {
    if (is_readable(listener, 100)) {
      Rank rank;
      rank.socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (rank.socket < 0) continue;
      if (!is_own(rank.socket)) {
        ::close(rank.socket);
        continue;
      }
      ranks_.push_back(std::move(rank));
      std::istringstream hello(line_of(ranks_.back()));
      std::string word;
      hello >> word >> ranks_.back().process;
    }
    if (child_ != 0 && ::waitpid(child_, nullptr, WNOHANG) == child_) {
      child_ = 0;
      fail(program_ + " has ended at its start; see above");
    }
    if (timer.seconds() > kStartSeconds) {
      if (child_ != 0) ::kill(child_, SIGTERM);
      fail(fmt::format("{} has not answered for {} s", program_, kStartSeconds));
    }
  }
}

std::string PeerProgram::line_of(Rank& rank) {
  for (;;) {
    const std::size_t end = rank.read.find('\n');
    if (end != std::string::npos) {
      std::string line = rank.read.substr(0, end);
      rank.read.erase(0, end + 1);
      return line;
    }
    char part[4096];
    const ssize_t bytes = ::recv(rank.socket, part, sizeof part, 0);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) fail(program_ + " has ended while it was needed; see above");
    rank.read.append(part, static_cast<std::size_t>(bytes));
  }
}

std::vector<std::string> PeerProgram::answers(const std::string& request) {
  const std::string line = request + "\n";
  for (const Rank& rank : ranks_)
    if (::send(rank.socket, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
      fail(program_ + " has ended while it was needed; see above");
  std::vector<std::string> result;
  for (Rank& rank : ranks_) result.push_back(line_of(rank));
  return result;
}

std::vector<std::string> PeerProgram::ask(const std::string& request) {
  std::vector<std::string> result = answers(request);
  for (std::string& answer : result) {
    if (!answer.starts_with("ok"))
      fail(fmt::format("{}: {}", request, answer.substr(std::min<std::size_t>(3, answer.size()))));
    answer.erase(0, std::min<std::size_t>(3, answer.size()));
  }
  return result;
}

std::vector<PeerName> PeerProgram::list() {
  std::vector<PeerName> result;
  for (int left = std::stoi(ask("list").front()); left > 0; --left) {
    std::istringstream line(line_of(ranks_.front()));
    PeerName peer;
    std::string storage;
    std::getline(line, peer.name, '\t');
    std::getline(line, peer.heading, '\t');
    std::getline(line, storage, '\t');
    std::getline(line, peer.parallel, '\t');
    std::getline(line, peer.preconditioner, '\t');
    if (peer.preconditioner == "product") peer.preconditioner.clear();
    peer.symmetric = storage == "symmetric";
    result.push_back(std::move(peer));
  }
  for (std::size_t r = 1; r < ranks_.size(); ++r)
    for (std::size_t i = 0; i < result.size(); ++i) line_of(ranks_[r]);  // they list the same
  return result;
}

void PeerProgram::open(const SharedOperands& operands) { ask("open " + operands.path()); }

PeerProgram::Prepared PeerProgram::prepare(const std::string& peer) {
  Prepared result;
  for (const std::string& answer : answers("prepare " + peer)) {
    const std::string text = answer.substr(std::min<std::size_t>(3, answer.size()));
    (answer.starts_with("ok") ? result.detail : result.refused) = text;
  }
  return result;
}

double PeerProgram::run(std::int64_t products) {
  double most = 0;
  for (const std::string& answer : ask(fmt::format("run {}", products))) most = std::max(most, std::stod(answer));
  return most;
}

PeerProgram::Timed PeerProgram::timed(const std::string& request, bool sums) {
  Timed result;
  for (const std::string& answer : answers(request)) {
    std::istringstream words(answer);
    std::string verdict;
    double seconds = 0;
    std::int64_t number = 0;
    if (words >> verdict >> seconds >> number && verdict == "ok") {
      result.seconds = std::max(result.seconds, seconds);
      result.number = sums ? result.number + number : std::max(result.number, number);
    } else {
      result.refused = answer.substr(std::min<std::size_t>(3, answer.size()));
    }
  }
  return result;
}

PeerProgram::Timed PeerProgram::set_up(const std::string& method, double rtol, std::int64_t most) {
  return timed(fmt::format("set_up {} {:.17g} {}", method, rtol, most), true);
}
PeerProgram::Timed PeerProgram::solve() { return timed("solve", false); }
std::vector<double> PeerProgram::history() {
  std::istringstream words(ask("history").front());  // all ranks have the same norms
  return {std::istream_iterator<double>(words), std::istream_iterator<double>()};
}
PeerProgram::Timed PeerProgram::refresh() { return timed("refresh", false); }

void PeerProgram::store_result() { ask("result"); }
void PeerProgram::drop() { ask("drop"); }

double PeerProgram::cpu_seconds() const {
  double sum = 0;
  for (const Rank& rank : ranks_) {
    clockid_t clock{};
    timespec time{};
    if (::clock_getcpuclockid(rank.process, &clock) == 0 && ::clock_gettime(clock, &time) == 0)
      sum += static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  return sum;
}

}  // namespace shardmat::tools
