// A connected socket, TCP or Unix, with TLS or without, as Asio's functions read from and write to it.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "tools/serve/http/tls.h"
#ifdef SHARDMAT_HAVE_OPENSSL
#include <boost/asio/ssl/stream.hpp>
#endif

namespace shardmat::serve {

class HttpStream {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using executor_type = Socket::executor_type;

  /// `tls` may be null.
  HttpStream(Socket socket, const Tls* tls) : socket_(std::move(socket)) {
#ifdef SHARDMAT_HAVE_OPENSSL
    if (tls != nullptr) tls_.emplace(socket_, tls->context());
#else
    static_cast<void>(tls);  // no object of this type exists
#endif
  }

  Socket& socket() { return socket_; }
  executor_type get_executor() { return socket_.get_executor(); }
  bool has_tls() const {
#ifdef SHARDMAT_HAVE_OPENSSL
    return tls_.has_value();
#else
    return false;
#endif
  }

  /// Bytes that could be read at once; 0 if there are none, at an error or the end, and with TLS: async_read_some() then
  /// tells them apart.
  std::size_t read_now(std::span<std::byte> to) {
    if (has_tls()) return 0;
    const ssize_t got = recv(socket_.native_handle(), to.data(), to.size(), MSG_DONTWAIT);
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }

  /// Bytes that could be sent at once; 0 as above.
  std::size_t write_now(std::span<iovec> parts) {
    if (has_tls()) return 0;
    msghdr message{};
    message.msg_iov = parts.data(), message.msg_iovlen = parts.size();
    const ssize_t sent = sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent > 0 ? static_cast<std::size_t>(sent) : 0;
  }

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
#ifdef SHARDMAT_HAVE_OPENSSL
    if (tls_) return tls_->async_read_some(buffers, std::forward<Handler>(handler));
#endif
    socket_.async_read_some(buffers, std::forward<Handler>(handler));
  }

  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
#ifdef SHARDMAT_HAVE_OPENSSL
    if (tls_) return tls_->async_write_some(buffers, std::forward<Handler>(handler));
#endif
    socket_.async_write_some(buffers, std::forward<Handler>(handler));
  }

  /// True if the other side has closed its socket, as far as this can be known: a peer of a TCP connection that has sent its
  /// last byte may still read.
  bool peer_is_gone() {
    pollfd state{socket_.native_handle(), 0, 0};
    return poll(&state, 1, 0) > 0 && (state.revents & (POLLHUP | POLLERR)) != 0;
  }
  /// True if the other side has sent its last byte, and all were read.
  bool peer_sends_no_more() {
    char byte = 0;
    return recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }
  /// True if what has come is no beginning of TLS. REQUIRES: a byte has come.
  bool speaks_plain_http() {
    constexpr char kHandshake = 0x16;
    char byte = kHandshake;
    return recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && byte != kHandshake;
  }
  /// Sends a short text without TLS, then nothing more.
  void send_plain(std::string_view text) {
    send(socket_.native_handle(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    boost::system::error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
  }

  /// Calls `handler(error_code)` once both sides may send.
  template <class Handler>
  void async_handshake(Handler&& handler) {
#ifdef SHARDMAT_HAVE_OPENSSL
    if (tls_) return tls_->async_handshake(boost::asio::ssl::stream_base::server, std::forward<Handler>(handler));
#endif
    handler(boost::system::error_code());
  }

  /// Says that nothing more is sent, then calls `handler`.
  template <class Handler>
  void async_end_writing(Handler&& handler) {
    boost::system::error_code ignored;
#ifdef SHARDMAT_HAVE_OPENSSL
    if (tls_) {
      // The answer to close_notify may never come; sending zero bytes after it only makes sure that it was sent.
      return tls_->async_shutdown(
          [handler = std::forward<Handler>(handler)](boost::system::error_code) mutable { handler(); });
    }
#endif
    socket_.shutdown(Socket::shutdown_send, ignored);
    handler();
  }

 private:
  Socket socket_;
#ifdef SHARDMAT_HAVE_OPENSSL
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
#endif
};

}  // namespace shardmat::serve
