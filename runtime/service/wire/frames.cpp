#include "runtime/service/wire/frames.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

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

  void attach_to(msghdr& header) { header.msg_control = bytes.data(), header.msg_controllen = bytes.size(); }
  void put(msghdr& header, int descriptor) {
    attach_to(header);
    cmsghdr* control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_SOCKET, control->cmsg_type = SCM_RIGHTS, control->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(control), &descriptor, sizeof(int));
  }
  /// -1 if no descriptor came with the message.
  static int descriptor_of(const msghdr& header) {
    const cmsghdr* control = CMSG_FIRSTHDR(&header);
    if (control == nullptr || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) return -1;
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(control), sizeof(int));
    return descriptor;
  }
};

ssize_t send_with(int socket, std::span<const std::byte> bytes, int descriptor, int flags) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  Ancillary ancillary;
  msghdr header{};
  header.msg_iov = &part, header.msg_iovlen = 1;
  ancillary.put(header, descriptor);
  return retried([&] { return sendmsg(socket, &header, flags); });
}

}  // namespace

bool send_frame(int socket, std::span<const std::byte> message, int descriptor) {
  auto length = static_cast<std::uint32_t>(message.size());
  std::array<iovec, 2> parts{iovec{&length, sizeof length}, iovec{const_cast<std::byte*>(message.data()), message.size()}};
  msghdr header{};
  header.msg_iov = parts.data(), header.msg_iovlen = parts.size();
  Ancillary ancillary;
  if (descriptor >= 0) ancillary.put(header, descriptor);
  std::size_t left = sizeof length + message.size();
  while (left > 0) {
    const ssize_t sent = retried([&] { return sendmsg(socket, &header, MSG_NOSIGNAL); });
    if (sent < 0) return false;
    left -= static_cast<std::size_t>(sent);
    header.msg_control = nullptr, header.msg_controllen = 0;  // it went with the first byte
    for (std::size_t skip = static_cast<std::size_t>(sent); iovec & part : parts) {
      const std::size_t here = std::min(skip, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + here, part.iov_len -= here;
      skip -= here;
    }
  }
  return true;
}

FrameReader::~FrameReader() {
  for (const int descriptor : descriptors_) close(descriptor);
}

int FrameReader::take_descriptor() {
  if (descriptors_.empty()) return -1;
  const int first = descriptors_.front();
  descriptors_.pop_front();
  return first;
}

bool FrameReader::receive(int socket, Wait wait) {
  if (begin_ > 0) std::copy(bytes_.data() + begin_, bytes_.data() + end_, bytes_.data());
  end_ -= std::exchange(begin_, 0);
  if (bytes_.size() - end_ < kReadBytes) bytes_.resize(end_ + kReadBytes);
  iovec part{bytes_.data() + end_, kReadBytes};
  msghdr header{};
  header.msg_iov = &part, header.msg_iovlen = 1;
  Ancillary ancillary;
  ancillary.attach_to(header);
  // The kernel ends a read behind the bytes that a descriptor came with, so there is at most one.
  const ssize_t got =
      retried([&] { return recvmsg(socket, &header, MSG_CMSG_CLOEXEC | (wait == Wait::no ? MSG_DONTWAIT : 0)); });
  if (got > 0)
    if (const int descriptor = Ancillary::descriptor_of(header); descriptor >= 0) descriptors_.push_back(descriptor);
  end_ += static_cast<std::size_t>(std::max<ssize_t>(0, got));
  if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
  std::uint32_t length = 0;
  if (end_ >= sizeof length) std::memcpy(&length, bytes_.data(), sizeof length);
  return got > 0 && length <= kMostFrameBytes;
}

std::optional<std::span<const std::byte>> FrameReader::next() {
  const auto rest = std::span<const std::byte>(bytes_).subspan(begin_, end_ - begin_);
  std::uint32_t length = 0;
  if (rest.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, rest.data(), sizeof length);
  if (rest.size() - sizeof length < length) return std::nullopt;
  begin_ += sizeof length + length;
  return rest.subspan(sizeof length, length);
}

ssize_t send_with_descriptor(int socket, std::span<const std::byte> bytes, int descriptor) {
  return send_with(socket, bytes, descriptor, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool send_descriptor(int socket, int descriptor) {
  const std::byte one{};
  return send_with(socket, {&one, 1}, descriptor, MSG_NOSIGNAL) == 1;
}

int receive_descriptor(int socket) {
  char one = 0;
  iovec part{&one, 1};
  Ancillary ancillary;
  msghdr header{};
  header.msg_iov = &part, header.msg_iovlen = 1;
  ancillary.attach_to(header);
  if (retried([&] { return recvmsg(socket, &header, MSG_CMSG_CLOEXEC); }) != 1) return -1;
  return Ancillary::descriptor_of(header);
}

}  // namespace shardmat::service
