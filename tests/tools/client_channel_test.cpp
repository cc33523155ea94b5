#include "tools/client/client_channel.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <list>
#include <utility>

#include "kernels/base/error.h"

namespace {

/// What the name of a host stands for in these tests.
std::list<sockaddr_in> known_addresses;

}  // namespace

/// In place of that of the system.
extern "C" int getaddrinfo(const char*, const char*, const addrinfo*, addrinfo** found) {
  *found = nullptr;
  for (auto one = known_addresses.rbegin(); one != known_addresses.rend(); ++one)
    *found = new addrinfo{
        0, AF_INET, SOCK_STREAM, IPPROTO_TCP, sizeof(sockaddr_in), reinterpret_cast<sockaddr*>(&*one), nullptr, *found};
  return 0;
}
extern "C" void freeaddrinfo(addrinfo* found) noexcept {
  while (found != nullptr) delete std::exchange(found, found->ai_next);
}

namespace shardmat::tools {
namespace {

class Socket {
 public:
  explicit Socket(int number) : number_(number) {}
  ~Socket() { close(number_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

/// A port that takes connections, as long as its queue has room: for one.
class Port {
 public:
  Port() : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    EXPECT_EQ(bind(listener_.number(), reinterpret_cast<sockaddr*>(&address_), sizeof address_), 0);
    EXPECT_EQ(getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&address_), &size), 0);
    EXPECT_EQ(listen(listener_.number(), 0), 0);
  }
  /// From now on it neither takes nor refuses any.
  void fill() {
    for (int i = 0; i < 4; ++i) {
      waiting_.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      (void)connect(waiting_.back().number(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_);
    }
  }
  Socket accepted() { return Socket(accept(listener_.number(), nullptr, nullptr)); }
  const sockaddr_in& address() const { return address_; }

 private:
  Socket listener_;
  sockaddr_in address_{};
  std::list<Socket> waiting_;
};

const ServerUrl kUrl = parse_server_url("http://lab:1");

TEST(ClientChannel, TriesEachAddressOfAName) {
  Port silent, other, good;
  silent.fill(), other.fill();
  known_addresses = {silent.address(), other.address(), good.address()};
  const auto channel = connect_url(kUrl, "", Patience(3));
  const Socket server = good.accepted();
  ASSERT_TRUE(channel->write("x"));
  char byte = 0;
  EXPECT_EQ(recv(server.number(), &byte, 1, 0), 1);
  EXPECT_EQ(byte, 'x');
}

TEST(ClientChannel, SaysThatNoAddressHasAnsweredInTime) {
  Port silent, other;
  silent.fill(), other.fill();
  known_addresses = {silent.address(), other.address()};
  try {
    connect_url(kUrl, "", Patience(0.2));
    ADD_FAILURE() << "it is connected";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::rank_lost);
  }
}

TEST(ClientChannel, KnowsThatTheServerHasEnded) {
  Port port;
  known_addresses = {port.address()};
  const auto channel = connect_url(kUrl, "", Patience(60));
  {
    const Socket server = port.accepted();
    EXPECT_FALSE(channel->has_ended());
    ASSERT_EQ(send(server.number(), "x", 1, 0), 1);
  }
  char byte = 0;
  EXPECT_EQ(channel->read(&byte, 1), 1U);
  EXPECT_EQ(channel->read(&byte, 1), 0U);
  EXPECT_TRUE(channel->has_ended());
}

}  // namespace
}  // namespace shardmat::tools
