// A service for tests of the front end, whose one rank the test plays: it hears every command, and answers as the test says.
//
// Threads: one. The rank's end of the control socket is watched by the event loop of the service.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/serve/ranks/jobs.h"
#include "tools/serve/ranks/service.h"

namespace shardmat::serve {

using RankAnswer = decltype(service::Answer::what);

/// A matrix of 4 × 4 entries that takes so many bytes of the rank.
inline service::Loaded loaded_matrix(std::int64_t bytes = 100) {
  service::Loaded loaded;
  loaded.rows = loaded.cols = loaded.nnz = 4, loaded.bytes = bytes;
  loaded.widths = {{1, 1e-6, 1}};
  return loaded;
}

/// Progress of a job that is set up and goes on, or has ended with one column.
inline service::Progress progress(bool ended, std::int64_t solver_bytes = 0) {
  service::Progress made;
  made.pauses = 1, made.seconds = 1e-3, made.is_set_up = true, made.ended = ended;
  made.solvers = {{"", 1, "cg", "multigrid", "", solver_bytes}};
  if (ended) made.columns = {{true, 1, 0, "{}", ""}};
  return made;
}

inline service::Failed no_memory(std::int64_t missing) { return {ErrorKind::resources, "no memory", missing}; }

class PlayedRank : public testing::Test {
 protected:
  PlayedRank() : directory_(std::filesystem::temp_directory_path() / ("shardmat_played_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(directory_);
    state_.emplace(directory_);
    ServiceOptions options;
    options.launcher = {"sh", "-c", "exec sleep 600"};
    options.timeout = 60, options.restart_delay = 0;
    service_.emplace(loop_, options, *state_, arena_);
    jobs_.emplace(loop_, *service_);
    service_->on_event = [this](const ServiceEvent& event) { jobs_->on_event(event); };
    service_->start();
    run_until([this] { return !service_->why_not_running(); });
  }
  ~PlayedRank() override {
    watch_.reset();
    leave();
    jobs_.reset(), service_.reset(), state_.reset();
    std::filesystem::remove_all(directory_);
  }

  /// Runs the service until `done`; the rank connects whenever the service waits for it.
  void run_until(const std::function<bool()>& done) {
    const double begun = now();
    Alarm alarm(loop_);
    std::function<void()> look = [&] {
      if (done()) return loop_.stop();
      if (now() - begun > 60) {
        ADD_FAILURE() << "what the test waits for has not come";
        return loop_.stop();
      }
      if (!watch_) connect();
      alarm.start(1e-3, look);
    };
    look();
    loop_.run();
    loop_.io().restart();
  }

  /// The rank is lost; another one comes.
  void lose_rank() {
    watch_.reset();
    leave();
    run_until([this] { return service_->why_not_running().has_value(); });
    run_until([this] { return !service_->why_not_running(); });
  }

  void load(const std::string& name) {
    WantedMatrix wanted;
    wanted.name = name, wanted.source = name + ".h5", wanted.type = ValueType::f64, wanted.solvable = true;
    bool over = false;
    const auto problem = service_->load(wanted, [&](const std::optional<Problem>& why) {
      load_problem_ = why;
      over = true;
    });
    ASSERT_FALSE(problem.has_value()) << problem->text;
    run_until([&] { return over; });
  }

  /// A job without b, in line.
  std::shared_ptr<RankJob> ask(const std::string& matrix, const std::string& kind = "eigen",
                               const std::function<void(RankJob&)>& change = nullptr) {
    const auto rights = std::make_shared<Rights>("a", std::vector<Scope>{}, std::vector<std::string>{});
    const auto job = std::get<1>(jobs_->make(rights));
    job->kind = kind, job->matrix = matrix, job->rows = 4, job->rights = rights;
    if (change) change(*job);
    jobs_->add(job, nullptr, nullptr);
    return job;
  }

  template <class What>
  std::vector<What> heard() const {
    std::vector<What> all;
    for (const auto& command : heard_)
      if (const auto* what = std::get_if<What>(&command)) all.push_back(*what);
    return all;
  }

  /// What the rank answers; nothing: what default_answer() says.
  std::function<std::optional<RankAnswer>(const decltype(service::Command::what)&)> answer_;
  /// The next answer waits until answer_late() as long as this is set.
  std::function<bool(const decltype(service::Command::what)&)> keeps_back_;

  /// Answers the commands that were kept back.
  void answer_late() {
    for (const service::Command& command : std::exchange(kept_back_, {})) answer(command);
  }
  bool has_kept_back() const { return !kept_back_.empty(); }

  static RankAnswer default_answer(const decltype(service::Command::what)& what) {
    if (std::holds_alternative<service::Load>(what)) return loaded_matrix();
    if (const auto* begin = std::get_if<service::Begin>(&what)) {
      service::Begun begun;
      for (const service::JobPart& part : begin->parts) begun.x.push_back({4, 32 * part.columns, 1, 100});
      return begun;
    }
    if (std::holds_alternative<service::Slice>(what)) return progress(true);
    if (const auto* make = std::get_if<service::MakeVector>(&what)) return service::VectorMade{4, 32 * make->columns, 1, 0};
    return service::Done{};
  }

  std::filesystem::path directory_;
  EventLoop loop_;
  service::Arena arena_ = service::Arena::create(1 << 16);
  std::optional<StateDirectory> state_;
  std::optional<Service> service_;
  std::optional<Jobs> jobs_;
  std::optional<Problem> load_problem_;                  ///< of the last load()
  std::vector<decltype(service::Command::what)> heard_;  ///< all commands but those that ask for a sign of life

 private:
  /// Its process, from which the socket comes, must be one of its own: the service ends it.
  void connect() {
    std::filesystem::path path;
    std::error_code none_yet;
    for (const auto& run : std::filesystem::directory_iterator(directory_ / "run", none_yet))
      if (std::filesystem::exists(run.path() / "control")) path = run.path() / "control";
    if (path.empty() || path == connected_to_) return;
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    process_ = fork();
    if (process_ == 0) stand_for_rank(path, ends[1]);
    close(ends[1]);
    socket_ = service::receive_descriptor(ends[0]);
    close(ends[0]);
    if (socket_ < 0) return leave();  // nobody listens yet
    connected_to_ = path, has_arena_ = false;
    reader_ = std::make_unique<service::FrameReader>();
    watch_ = std::make_unique<ReadWatch>(loop_, socket_, [this] { hear(); });
    service::Hello hello;
    hello.ranks = 1, hello.host = "here", hello.device = "CPU";
    say({0, hello});
  }

  [[noreturn]] static void stand_for_rank(const std::filesystem::path& path, int parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int own = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.native().size());
    if (::connect(own, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) _exit(1);
    service::send_descriptor(parent, own);
    close(own), close(parent);
    while (true) pause();
  }

  /// The rank's process ends, and its socket with it.
  void leave() {
    kept_back_.clear();
    if (socket_ >= 0) close(std::exchange(socket_, -1));
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    waitpid(std::exchange(process_, 0), nullptr, 0);
  }

  void say(const service::Answer& answer) const { service::send_frame(socket_, service::encode(answer)); }

  void hear() {
    if (!has_arena_) {  // its descriptor comes before all commands
      if (const int arena = service::receive_descriptor(socket_); arena >= 0) has_arena_ = true, close(arena);
      else watch_.reset(), leave();
      return;
    }
    const bool open = reader_->receive(socket_);
    for (int memory = reader_->take_descriptor(); memory >= 0; memory = reader_->take_descriptor()) close(memory);
    while (const auto message = reader_->next()) {
      const service::Command command = service::decode_command(*message);
      if (!std::holds_alternative<service::Ping>(command.what)) heard_.push_back(command.what);
      if (keeps_back_ && keeps_back_(command.what)) kept_back_.push_back(command);
      else answer(command);
    }
    if (!open) watch_.reset(), leave();
  }

  void answer(const service::Command& command) {
    const auto special = answer_ ? answer_(command.what) : std::nullopt;
    say({command.number, special.value_or(default_answer(command.what))});
  }

  std::filesystem::path connected_to_;
  pid_t process_ = 0;
  int socket_ = -1;
  bool has_arena_ = false;
  std::unique_ptr<service::FrameReader> reader_;
  std::unique_ptr<ReadWatch> watch_;
  std::vector<service::Command> kept_back_;
};

}  // namespace shardmat::serve
