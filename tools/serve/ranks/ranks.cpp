#include "tools/serve/ranks/ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

#include "kernels/base/error.h"

namespace shardmat::serve {

using service::Alive;
using service::Answer;
using service::Command;
using service::Hello;
using service::Ping;

namespace {

constexpr double kStartSeconds = 60;  ///< that starting may take beyond the timeout
constexpr double kKillSeconds = 2;    ///< from SIGTERM to SIGKILL
constexpr double kEndCheckSeconds = 0.01;
constexpr double kLeastExpected = 2, kSlower = 20;
/// How long the parent of a rank that has ended may take to notice it, and how often to look.
constexpr double kExplainSeconds = 0.25, kExplainCheckSeconds = 0.002;
constexpr double kWakeUpSeconds = 100e-6;  ///< that it may take to wake this process up

}  // namespace

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// One connection to the control socket.
struct Ranks::Rank {
  Rank(int fd, pid_t pid) : socket(fd), id(pid), process(pid) {}
  ~Rank() {
    watch.reset();
    close(socket);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  int socket;
  pid_t id;               ///< 0: of another host
  ProcessHandle process;  ///< empty: of another host
  service::FrameReader reader;
  std::unique_ptr<ReadWatch> watch;
  bool introduced = false;
  Hello hello;
  double answered = 0, alive = 0;  ///< when it last answered, and last gave any sign of life
};

Ranks::Ranks(EventLoop& loop, RankOptions options, const service::Arena& arena, Actions actions)
    : loop_(loop),
      options_(std::move(options)),
      arena_(arena),
      actions_(std::move(actions)),
      log_(loop, options_.log),
      checks_(loop),
      end_checks_(loop),
      explains_(loop) {}

Ranks::~Ranks() { close_sockets(); }

std::vector<Hello> Ranks::hellos() const {
  std::vector<Hello> hellos;
  for (const Rank* rank : ranks_) hellos.push_back(rank->hello);
  return hellos;
}

std::set<int> Ranks::processes() const {
  std::set<int> processes;
  for (const Rank* rank : ranks_)
    if (rank->id != 0) processes.insert(rank->id);
  return processes;
}

bool Ranks::load_in_background() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank* rank) { return rank->hello.loads_in_background; });
}

void Ranks::listen(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof address.sun_path)
    throw Error(ErrorKind::resources,
                fmt::format("{}: this is too long for the path of a socket; name a state directory with a shorter path",
                            path.string()),
                "state");
  std::memcpy(address.sun_path, path.c_str(), path.native().size());
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener_ < 0 || bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_, SOMAXCONN) != 0)
    throw Error(ErrorKind::resources, fmt::format("{}: {}", path.string(), std::strerror(errno)), "state");
  listener_watch_ = std::make_unique<ReadWatch>(loop_, listener_, [this] { accept(); });
}

void Ranks::start(const std::filesystem::path& run_directory) {
  const std::filesystem::path path = run_directory / "control";
  std::vector<std::string> command = options_.launcher;
  command.insert(command.end(), options_.worker.begin(), options_.worker.end());
  command.insert(command.end(), {"--control", path.string()});
  int output = -1;
  try {
    listen(path);
    output = log_.open_pipe();
    launcher_ = start_process(command, output);
  } catch (...) {
    if (output >= 0) close(output);
    close_sockets();
    throw;
  }
  close(output);
  log_.note(fmt::format("started as process {}: {}", launcher_, fmt::join(command, " ")));
  expected_ranks_ = 0, hard_ = false, started_ = now();
  launcher_handle_ = ProcessHandle(launcher_);
  launcher_watch_ = std::make_unique<ReadWatch>(loop_, launcher_handle_.descriptor(), [this] {
    launcher_watch_.reset();
    if (ended_ == nullptr && (state_ == State::starting || state_ == State::ready))
      lose({-1, fmt::format("{} ended{}", options_.launcher.front(), last_line())});
  });
  state_ = State::starting;
  check();
}

void Ranks::accept() {
  const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) return;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid()) {
    close(socket);
    return;
  }
  workers_.emplace_back(peer.pid);
  connect(socket, peer.pid);
}

void Ranks::connect(int socket, pid_t process) {
  connected_.push_back(std::make_unique<Rank>(socket, process));
  Rank* rank = connected_.back().get();
  rank->watch = std::make_unique<ReadWatch>(loop_, socket, [this, rank] { receive(*rank); });
}

void Ranks::receive(Rank& rank) {
  const bool open = rank.reader.receive(rank.socket);
  try {
    while (const auto message = rank.reader.next()) {
      const Answer answer = service::decode_answer(*message);
      if (!rank.introduced && rank.id == 0 && !is_ours(answer)) return rank.watch.reset();
      take(rank, answer);
      if (state_ == State::lost) return;
    }
  } catch (const Error& error) {
    if (!rank.introduced && rank.id == 0) return rank.watch.reset();  // some other program
    return lose({rank.introduced ? rank.hello.rank : -1, error.what()});
  }
  if (open) return;
  if (!rank.introduced) return rank.watch.reset();  // the launcher ends if this was a rank
  if (ended_ == nullptr && (state_ == State::starting || state_ == State::ready)) explain_end(rank, now() + kExplainSeconds);
  rank.watch.reset();
}

/// The rank is lost as soon as it is known how its process ended, or cannot be known.
void Ranks::explain_end(Rank& rank, double until) {
  ended_ = &rank;
  const ProcessHandle::Told told = rank.process.how_it_ended();
  if (told.later && now() < until)
    return explains_.start(kExplainCheckSeconds, [this, &rank, until] { explain_end(rank, until); });
  ended_ = nullptr;
  RankLoss loss{rank.hello.rank, fmt::format("rank {} ended", rank.hello.rank), rank.hello.host, told.end};
  if (told.end && told.end->signal != 0) loss.why += " by " + told.end->text();
  else if (told.end) loss.why += " with " + told.end->text();
  loss.why += last_line();
  lose(std::move(loss));
}

/// What comes from the network is a rank's Hello with the secret, or from somebody else.
bool Ranks::is_ours(const Answer& answer) const {
  const auto* hello = std::get_if<Hello>(&answer.what);
  return hello != nullptr && door_ != nullptr && door_->knows(hello->secret);
}

void Ranks::introduce(Rank& rank, const Hello& hello) {
  if (hello.version != service::kProtocolVersion)
    return lose({hello.rank, "the worker program is from another build; install one build"});
  rank.hello = hello, rank.introduced = true;
  rank.answered = rank.alive = now();
  const bool here = rank.id != 0;
  bool hears = !here || service::send_descriptor(rank.socket, arena_.descriptor());
  if (here && hears && hello.asks_for_invite) {
    door_ = std::make_unique<NetworkDoor>(loop_, [this](int socket) { connect(socket, 0); });
    hears = service::send_frame(rank.socket, service::encode(Command{0, door_->invite(arena_.bytes())}));
  }
  if (!hears) return lose({hello.rank, fmt::format("rank {} ended", hello.rank)});
  expected_ranks_ = static_cast<std::size_t>(std::max(1, hello.ranks));
  const auto introduced =
      std::count_if(connected_.begin(), connected_.end(), [](const auto& one) { return one->introduced; });
  if (static_cast<std::size_t>(introduced) < expected_ranks_) return;
  ranks_.clear();
  for (const auto& one : connected_)
    if (one->introduced) ranks_.push_back(one.get());
  std::sort(ranks_.begin(), ranks_.end(), [](const Rank* a, const Rank* b) { return a->hello.rank < b->hello.rank; });
  state_ = State::ready;
  listener_watch_.reset(), door_.reset();
  close(std::exchange(listener_, -1));
  loop_.post([this] {
    if (state_ == State::ready) actions_.ready();
  });
}

void Ranks::take(Rank& rank, const Answer& answer) {
  if (const Hello* hello = std::get_if<Hello>(&answer.what)) return introduce(rank, *hello);
  rank.alive = now();
  if (std::holds_alternative<Alive>(answer.what)) return;
  rank.answered = rank.alive;
  const auto command = std::find_if(outstanding_.begin(), outstanding_.end(),
                                    [&](const Outstanding& one) { return one.number == answer.number; });
  if (command == outstanding_.end()) return;
  command->answers[static_cast<std::size_t>(rank.hello.rank)] = answer;
  if (++command->answered < ranks_.size()) return;
  const Outstanding done = std::move(*command);
  outstanding_.erase(command);
  loop_.stay_awake(0);
  if (done.done) done.done(done.answers);
}

void Ranks::await_without_sleep(double expected_seconds) {
  if (expected_seconds > 0 && expected_seconds < kWakeUpSeconds && std::ssize(ranks_) < cores_)
    loop_.stay_awake(expected_seconds + kWakeUpSeconds);
}

void Ranks::send(decltype(Command::what) what, double expected_seconds, Answered answered, int descriptor) {
  Outstanding one;
  one.number = ++last_number_;
  one.sent = now(), one.expected = expected_seconds;
  one.is_ping = std::holds_alternative<Ping>(what);
  one.answers.resize(ranks_.size());
  one.done = std::move(answered);
  outstanding_.push_back(std::move(one));
  const auto message = service::encode(Command{last_number_, std::move(what)});
  for (const Rank* rank : ranks_)
    if (rank != ended_ && !service::send_frame(rank->socket, message, rank->id == 0 ? -1 : descriptor)) {
      if (ended_ != nullptr) return;
      loop_.post([this, number = rank->hello.rank, host = rank->hello.host] {
        if (ended_ == nullptr) lose({number, fmt::format("rank {} takes no commands", number), host});
      });
      return;
    }
}

void Ranks::lose(RankLoss loss) {
  if (state_ != State::starting && state_ != State::ready) return;
  state_ = State::lost;
  ended_ = nullptr;
  outstanding_.clear();
  checks_.cancel(), explains_.cancel();
  loop_.post([this, loss = std::move(loss)] {
    if (state_ == State::lost) actions_.lost(loss);
  });
}

/// Whether the rank has left a command without an answer for too long.
bool Ranks::is_late(const Rank& rank, const Outstanding& command, double time) {
  if (!std::holds_alternative<Hello>(command.answers[static_cast<std::size_t>(rank.hello.rank)].what)) return false;
  const bool works = !command.is_ping && command.expected > 0;
  const double allowed =
      works ? std::max(kLeastExpected, kSlower * command.expected) + options_.timeout - kLeastExpected : options_.timeout;
  const double since = time - std::max(command.sent, works ? rank.answered : rank.alive);
  if (since <= allowed) return false;
  lose({rank.hello.rank, fmt::format("rank {} gave no sign of life for {:.1f} s", rank.hello.rank, since), rank.hello.host});
  return true;
}

/// Looks for ranks that give no sign of life, and asks idle ones for one.
void Ranks::check() {
  const double time = now();
  if (state_ == State::starting && time - started_ > options_.timeout + kStartSeconds)
    return lose({-1, fmt::format("the ranks did not start within {:g} s{}", options_.timeout + kStartSeconds, last_line())});
  if (state_ == State::ready && ended_ == nullptr) {
    for (const Rank* rank : ranks_)
      for (const Outstanding& command : outstanding_)
        if (is_late(*rank, command, time)) return;
    if (outstanding_.empty()) send(Ping{}, 0, nullptr);
  }
  checks_.start(std::min(1.0, options_.timeout / 8), [this] { check(); });
}

void Ranks::close_sockets() {
  ended_ = nullptr;
  explains_.cancel();
  listener_watch_.reset(), door_.reset();
  if (listener_ >= 0) close(std::exchange(listener_, -1));
  ranks_.clear();
  connected_.clear();
}

void Ranks::kill() {
  outstanding_.clear();
  checks_.cancel();
  state_ = State::ending;
  launcher_handle_.signal(SIGTERM);
  ending_since_ = now();
  // Not here: the caller may have been called by one of them.
  loop_.post([this] { close_sockets(), check_ended(); });
}

void Ranks::quit() {
  send(service::Quit{}, 0, nullptr);
  checks_.cancel();
  state_ = State::ending;
  ending_since_ = now();
  check_ended();
}

void Ranks::check_ended() {
  const bool over =
      launcher_handle_.ended() && std::all_of(workers_.begin(), workers_.end(), [](const auto& one) { return one.ended(); });
  if (over) {
    launcher_watch_.reset();
    if (launcher_ > 0) reap(std::exchange(launcher_, 0));
    launcher_handle_ = {};
    workers_.clear();
    close_sockets();
    state_ = State::stopped;
    return actions_.gone();
  }
  if (!hard_ && now() - ending_since_ > kKillSeconds) {
    hard_ = true;
    for (const ProcessHandle& worker : workers_) worker.signal(SIGKILL);
    launcher_handle_.signal(SIGKILL);
  }
  end_checks_.start(kEndCheckSeconds, [this] { check_ended(); });
}

/// " (…)" with the last thing that the ranks printed, or nothing.
std::string Ranks::last_line() {
  log_.read();
  if (!log_.last_message().empty()) return fmt::format(" ({})", log_.last_message());
  return log_.is_empty() ? "" : fmt::format(" (see {})", log_.file().string());
}

}  // namespace shardmat::serve
