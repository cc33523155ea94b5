// Messages over the control socket between the front end and one rank: a length of four bytes, then the message.
//
// Threads: one thread at a time uses a FrameReader. send_frame() calls of several threads need a lock.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace shardmat::service {

/// The longest message.
constexpr std::size_t kMostFrameBytes = std::size_t{4} << 20;

/// Sends one message, with a descriptor unless it is negative. Returns false if the other side is gone or, on a socket that
/// does not block, if the message does not fit into the socket's buffer; then the socket is of no more use.
bool send_frame(int socket, std::span<const std::byte> message, int descriptor = -1);

/// Puts the bytes of a socket together to messages.
class FrameReader {
 public:
  FrameReader() = default;
  ~FrameReader();
  FrameReader(const FrameReader&) = delete;
  FrameReader& operator=(const FrameReader&) = delete;

  enum class Wait { no, yes };
  /// Reads what there is. On a blocking socket it waits for the first byte, unless told not to. Returns false at the end of
  /// the stream, after an error, or for a message longer than kMostFrameBytes.
  bool receive(int socket, Wait wait = Wait::yes);
  /// Whether something has come that next() has not given.
  bool has_more() const { return begin_ < end_; }
  /// The next complete message, valid until the next receive().
  std::optional<std::span<const std::byte>> next();
  /// The first descriptor that came and was not taken, which the caller then owns; -1 if there is none. It is there once the
  /// message with which it was sent is complete.
  int take_descriptor();

 private:
  std::deque<int> descriptors_;
  std::vector<std::byte> bytes_;  ///< room for reads; what has come lies from begin_ to end_
  std::size_t begin_ = 0, end_ = 0;
};

/// Sends some of the bytes, the first one with the descriptor, as send() with MSG_DONTWAIT does.
ssize_t send_with_descriptor(int socket, std::span<const std::byte> bytes, int descriptor);

/// Sends a descriptor with one byte, and receives it. Both return false (-1) if the other side is gone.
bool send_descriptor(int socket, int descriptor);
int receive_descriptor(int socket);

}  // namespace shardmat::service
