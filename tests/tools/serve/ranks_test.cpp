// The front end's side of its ranks. A process of this test plays all ranks; their launcher is a program that waits.
#include "tools/serve/ranks/ranks.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace shardmat::serve {
namespace {

using service::Answer;
using service::Command;
using service::Hello;
using service::Invite;

/// A connection that closes itself.
struct Connection {
  explicit Connection(const std::filesystem::path& path) : socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.native().size());
    EXPECT_EQ(connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  explicit Connection(const Invite& invite) : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET, address.sin_port = htons(invite.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    std::string greeting(invite.greeting.size(), ' ');
    EXPECT_EQ(recv(socket, greeting.data(), greeting.size(), MSG_WAITALL), std::ssize(greeting));
    EXPECT_EQ(greeting, invite.greeting);
  }
  ~Connection() { close(socket); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void say(const Hello& hello) const { EXPECT_TRUE(service::send_frame(socket, service::encode(Answer{0, hello}))); }
  Command hear() {
    while (true) {
      if (const auto message = reader.next()) return service::decode_command(*message);
      if (!reader.receive(socket)) throw std::runtime_error("the front end has closed the connection");
    }
  }

  int socket;
  service::FrameReader reader;
};

Hello hello_of(int rank) {
  Hello hello;
  hello.rank = rank, hello.ranks = 2, hello.host = rank == 0 ? "home" : "other", hello.device = "CPU";
  return hello;
}

class RanksTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / ("shardmat_ranks_" + std::to_string(getpid()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  /// Starts the ranks, all of which `act` plays in a process of its own, until the front end has them or has lost one.
  void run(const std::function<void()>& act) {
    ranks_.emplace(loop_, RankOptions{{"sh", "-c", "exec sleep 60"}, {}, 5, directory_ / "log"}, arena_, actions());
    ranks_->start(directory_);
    player_ = fork();
    if (player_ == 0) {
      act();
      _exit(HasFailure() ? 1 : 0);
    }
    loop_.run();
    int status = 0;
    ASSERT_EQ(waitpid(player_, &status, 0), player_);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  Ranks::Actions actions() {
    return {[this] {
              hellos_ = ranks_->hellos();
              processes_ = ranks_->processes();
              ranks_->kill();
            },
            [this](const RankLoss& loss) {
              loss_ = loss;
              ranks_->kill();
            },
            [this] { loop_.stop(); }};
  }
  std::filesystem::path control() const { return directory_ / "control"; }

  std::filesystem::path directory_;
  EventLoop loop_;
  service::Arena arena_ = service::Arena::create(1 << 16);
  std::optional<Ranks> ranks_;
  std::vector<Hello> hellos_;
  std::set<int> processes_;
  std::optional<RankLoss> loss_;
  pid_t player_ = 0;
};

TEST_F(RanksTest, RanksOfOtherHostsComeInWithTheSecretAlone) {
  run([this] {
    Connection home(control());
    Hello first = hello_of(0);
    first.asks_for_invite = true;
    home.say(first);
    const int arena = service::receive_descriptor(home.socket);
    EXPECT_GE(arena, 0);
    close(arena);
    const Command command = home.hear();
    const Invite& invite = std::get<Invite>(command.what);
    EXPECT_EQ(invite.arena_bytes, arena_.bytes());
    EXPECT_FALSE(invite.addresses.empty());
    Hello second = hello_of(1);
    second.elsewhere = true;
    {
      Connection silent(invite), without_secret(invite), wrong(invite), other(invite);
      without_secret.say(second);
      Hello guess = second;
      guess.secret = std::string(invite.secret.size(), '0');
      wrong.say(guess);
      EXPECT_EQ(send(other.socket, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
    }
    Connection away(invite);
    second.secret = invite.secret;
    away.say(second);
    EXPECT_THROW(away.hear(), std::runtime_error);  // once the front end has all ranks, this test ends them
  });
  EXPECT_FALSE(loss_.has_value()) << loss_->why;
  ASSERT_EQ(hellos_.size(), 2U);
  EXPECT_EQ(hellos_[1].host, "other");
  EXPECT_EQ(processes_, std::set<int>{player_});  // no process of another host
}

TEST_F(RanksTest, ARankOfAnotherBuildIsLost) {
  run([this] {
    Connection home(control());
    Hello hello = hello_of(0);
    ++hello.version;
    home.say(hello);
    EXPECT_THROW(home.hear(), std::runtime_error);
  });
  ASSERT_TRUE(loss_.has_value());
  EXPECT_NE(loss_->why.find("from another build"), std::string::npos) << loss_->why;
}

}  // namespace
}  // namespace shardmat::serve
