#include "runtime/service/wire/frames.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "kernels/base/error.h"
#include "runtime/service/wire/arena.h"

namespace shardmat::service {
namespace {

struct Pair {
  Pair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0); }
  ~Pair() {
    for (const int end : ends) close(end);
  }
  std::array<int, 2> ends{};
};

std::vector<std::byte> message_of(std::size_t bytes) {
  std::vector<std::byte> message(bytes);
  for (std::size_t i = 0; i < bytes; ++i) message[i] = static_cast<std::byte>(i * 7);
  return message;
}

TEST(Frames, MessagesOfEverySizeArriveInOrder) {
  Pair pair;
  const std::vector<std::size_t> sizes{0, 1, 5, 100'000, 16 << 10, kMostFrameBytes, 3};
  std::thread sender([&] {
    for (const std::size_t size : sizes) EXPECT_TRUE(send_frame(pair.ends[0], message_of(size)));
  });
  FrameReader reader;
  for (const std::size_t size : sizes) {
    auto message = reader.next();
    while (!message && reader.receive(pair.ends[1])) message = reader.next();
    ASSERT_TRUE(message);
    EXPECT_EQ(std::vector(message->begin(), message->end()), message_of(size));
  }
  sender.join();
}

TEST(Frames, TheEndOfTheStreamAndTooLongMessagesAreNoticed) {
  Pair pair;
  FrameReader reader;
  const std::uint32_t length = kMostFrameBytes + 1;
  ASSERT_EQ(write(pair.ends[0], &length, sizeof length), 4);
  EXPECT_FALSE(reader.receive(pair.ends[1]));
  shutdown(pair.ends[0], SHUT_RDWR);
  EXPECT_FALSE(FrameReader().receive(pair.ends[1]));
  EXPECT_FALSE(send_frame(pair.ends[0], message_of(8)));
}

TEST(Frames, DescriptorsComeWithTheirMessagesInOrder) {
  Pair pair;
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe2(pipe_ends.data(), O_CLOEXEC), 0);
  const std::vector<std::size_t> sizes{5, 40'000, 3, 7};
  std::thread sender([&] {
    for (std::size_t i = 0; i < sizes.size(); ++i)
      EXPECT_TRUE(send_frame(pair.ends[0], message_of(sizes[i]), i == 0 ? -1 : i == 2 ? pipe_ends[1] : pipe_ends[0]));
  });
  FrameReader reader;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto message = reader.next();
    while (!message && reader.receive(pair.ends[1])) message = reader.next();
    ASSERT_TRUE(message);
    EXPECT_EQ(std::vector(message->begin(), message->end()), message_of(sizes[i]));
    if (i == 0 || i == 3) continue;  // the last one is left to the reader
    const int descriptor = reader.take_descriptor();
    ASSERT_GE(descriptor, 0);
    EXPECT_EQ(fcntl(descriptor, F_GETFL) & O_ACCMODE, i == 2 ? O_WRONLY : O_RDONLY);
    EXPECT_EQ(fcntl(descriptor, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(descriptor);
  }
  sender.join();
  for (const int end : pipe_ends) close(end);
}

TEST(Arena, IsSharedByItsDescriptorAndCannotBeResized) {
  Pair pair;
  const Arena arena = Arena::create(1 << 16);
  ASSERT_TRUE(send_descriptor(pair.ends[0], arena.descriptor()));
  const Arena other = Arena::map(receive_descriptor(pair.ends[1]));
  EXPECT_EQ(other.bytes(), arena.bytes());
  arena.at(100, 1)[0] = std::byte{42};
  EXPECT_EQ(other.at(100, 1)[0], std::byte{42});
  EXPECT_NE(ftruncate(other.descriptor(), 0), 0);
  EXPECT_NE(ftruncate(other.descriptor(), 1 << 20), 0);
}

TEST(Arena, NothingOutsideIsGiven) {
  const Arena arena = Arena::create(1 << 16);
  EXPECT_EQ(arena.at(1 << 16, 0).size(), 0u);
  EXPECT_THROW(arena.at(1 << 16, 1), Error);
  EXPECT_THROW(arena.at(1, 1 << 16), Error);
  EXPECT_THROW(arena.at(~std::uint64_t{0}, 2), Error);
  EXPECT_THROW(arena.at(2, ~std::uint64_t{0}), Error);
}

TEST(Arena, AFileThatCouldShrinkIsRefused) { EXPECT_THROW(Arena::map(memfd_create("unsealed", MFD_CLOEXEC)), Error); }

}  // namespace
}  // namespace shardmat::service
