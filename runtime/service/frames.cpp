#include "runtime/service/frames.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace shardmat::service {
namespace {

constexpr std::size_t kReadBytes = std::size_t{16} << 10;

/// Calls a system call again as long as a signal interrupts it.
template <class F>
ssize_t retried(F&& call) {
  ssize_t result = 0;
  do result = call();
  while (result < 0 && errno == EINTR);
  return result;
}

/// The control data of a message that carries one descriptor.
struct Ancillary {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> bytes{};
};

}  // namespace

bool send_frame(int socket, std::span<const std::byte> message) {
  auto length = static_cast<std::uint32_t>(message.size());
  std::array<iovec, 2> parts{iovec{&length, sizeof length}, iovec{const_cast<std::byte*>(message.data()), message.size()}};
  msghdr header{};
  header.msg_iov = parts.data(), header.msg_iovlen = parts.size();
  std::size_t left = sizeof length + message.size();
  while (left > 0) {
    const ssize_t sent = retried([&] { return sendmsg(socket, &header, MSG_NOSIGNAL); });
    if (sent < 0) return false;
    left -= static_cast<std::size_t>(sent);
    for (std::size_t skip = static_cast<std::size_t>(sent); iovec & part : parts) {
      const std::size_t here = std::min(skip, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + here, part.iov_len -= here;
      skip -= here;
    }
  }
  return true;
}

bool FrameReader::receive(int socket) {
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin_));
  begin_ = 0;
  const std::size_t had = bytes_.size();
  bytes_.resize(had + kReadBytes);
  const ssize_t got = retried([&] { return recv(socket, bytes_.data() + had, kReadBytes, 0); });
  bytes_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
  std::uint32_t length = 0;
  if (bytes_.size() >= sizeof length) std::memcpy(&length, bytes_.data(), sizeof length);
  return got > 0 && length <= kMostFrameBytes;
}

std::optional<std::span<const std::byte>> FrameReader::next() {
  const auto rest = std::span<const std::byte>(bytes_).subspan(begin_);
  std::uint32_t length = 0;
  if (rest.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, rest.data(), sizeof length);
  if (rest.size() - sizeof length < length) return std::nullopt;
  begin_ += sizeof length + length;
  return rest.subspan(sizeof length, length);
}

bool send_descriptor(int socket, int descriptor) {
  char one = 0;
  iovec part{&one, 1};
  Ancillary ancillary;
  msghdr header{};
  header.msg_iov = &part, header.msg_iovlen = 1;
  header.msg_control = ancillary.bytes.data(), header.msg_controllen = ancillary.bytes.size();
  cmsghdr* control = CMSG_FIRSTHDR(&header);
  control->cmsg_level = SOL_SOCKET, control->cmsg_type = SCM_RIGHTS, control->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(control), &descriptor, sizeof(int));
  return retried([&] { return sendmsg(socket, &header, MSG_NOSIGNAL); }) == 1;
}

int receive_descriptor(int socket) {
  char one = 0;
  iovec part{&one, 1};
  Ancillary ancillary;
  msghdr header{};
  header.msg_iov = &part, header.msg_iovlen = 1;
  header.msg_control = ancillary.bytes.data(), header.msg_controllen = ancillary.bytes.size();
  if (retried([&] { return recvmsg(socket, &header, MSG_CMSG_CLOEXEC); }) != 1) return -1;
  const cmsghdr* control = CMSG_FIRSTHDR(&header);
  if (control == nullptr || control->cmsg_type != SCM_RIGHTS) return -1;
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(control), sizeof(int));
  return descriptor;
}

}  // namespace shardmat::service
