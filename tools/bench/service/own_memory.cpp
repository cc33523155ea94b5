#include "tools/bench/service/own_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "kernels/base/error.h"

namespace shardmat::tools::service_bench {
namespace {

[[noreturn]] void fail(const std::string& why) {
  throw Error(ErrorKind::resources, fmt::format("the service shares no memory: {}", why));
}

/// The descriptor that came with the first byte of a reply with status 201. All of the short reply is read.
int receive_descriptor(int socket) {
  std::array<char, 4096> text{};
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> ancillary{};
  msghdr header{};
  header.msg_iov = &part, header.msg_iovlen = 1;
  header.msg_control = ancillary.data(), header.msg_controllen = ancillary.size();
  ssize_t got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  const cmsghdr* control = got > 0 ? CMSG_FIRSTHDR(&header) : nullptr;
  int descriptor = -1;
  if (control != nullptr && control->cmsg_type == SCM_RIGHTS) std::memcpy(&descriptor, CMSG_DATA(control), sizeof(int));
  std::string reply(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  while (got > 0 && reply.find("}\n") == std::string::npos) {  // the end of its JSON
    got = recv(socket, text.data(), text.size(), 0);
    reply.append(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  if (descriptor < 0) fail(reply.substr(0, reply.find('\r')));
  return descriptor;
}

}  // namespace

OwnMemory::OwnMemory(Connection& connection, std::size_t bytes) {
  const Request request = make_request("POST", fmt::format("/v1/memory?bytes={}", bytes));
  connection.begin(request);
  while (connection.sending()) connection.send_some();
  const int descriptor = receive_descriptor(connection.descriptor());
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  const int error = errno;
  close(descriptor);
  if (data == MAP_FAILED) fail(std::strerror(error));
  bytes_ = {static_cast<std::byte*>(data), bytes};
}

OwnMemory::~OwnMemory() { munmap(bytes_.data(), bytes_.size()); }

Request own_memory_request(std::string_view matrix, std::size_t x_at, std::size_t y_at) {
  return numbers_request("POST", fmt::format("/v1/matrices/{}/multiply?x_at={}&y_at={}", matrix, x_at, y_at), {});
}

}  // namespace shardmat::tools::service_bench
