#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <utility>

#include "kernels/base/error.h"
#include "tools/client/client_channel.h"

namespace shardmat::tools {
namespace {

class TlsChannel final : public ClientChannel {
 public:
  TlsChannel(std::unique_ptr<ClientChannel> below, int socket, const std::string& host, const std::string& authorities,
             const Patience& patience)
      : below_(std::move(below)),
        socket_(socket),
        patience_(patience),
        context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    if (authorities.empty()) SSL_CTX_set_default_verify_paths(context_.get());
    else if (SSL_CTX_load_verify_file(context_.get(), authorities.c_str()) != 1)
      throw Error(ErrorKind::input, fmt::format("{}: this is no PEM file with certificates", authorities), "ca");
    ssl_ = {SSL_new(context_.get()), SSL_free};
    SSL_set_fd(ssl_.get(), socket);
    SSL_set_mode(ssl_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE);
    expect(host);
    if (repeat([this] { return SSL_connect(ssl_.get()); }, patience_.end_of_step()) == 1) return;
    const unsigned long error = ERR_peek_error();
    if (ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == SSL_R_WRONG_VERSION_NUMBER)
      throw Error(
          ErrorKind::resources,
          fmt::format("{} does not answer in TLS; if its service listens on http, write http:// in place of https://", host),
          "url");
    const long verified = SSL_get_verify_result(ssl_.get());
    const char* why = verified != X509_V_OK ? X509_verify_cert_error_string(verified) : ERR_reason_error_string(error);
    throw Error(ErrorKind::resources,
                fmt::format("{} does not prove who it is: {}; name a file with its certificate", host,
                            why != nullptr ? why : "it ended the connection"),
                "ca");
  }

  bool write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const int most = static_cast<int>(std::min<std::size_t>(bytes.size(), INT_MAX));
      const int sent = repeat([&] { return SSL_write(ssl_.get(), bytes.data(), most); }, patience_.end_of_step());
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  std::size_t read(char* to, std::size_t most) override {
    const int at_once = static_cast<int>(std::min<std::size_t>(most, INT_MAX));
    const int got = repeat([&] { return SSL_read(ssl_.get(), to, at_once); }, patience_.end_of_step());
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }

  bool has_ended() override {  // what came may be no more than tickets of TLS
    ERR_clear_error();
    char byte;
    const int got = SSL_peek(ssl_.get(), &byte, 1);
    const int why = got > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), got);
    return why != SSL_ERROR_NONE && why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE;
  }

  void wait_at_least(double seconds) override { patience_.wait_at_least(seconds); }

 private:
  /// The result of a call of OpenSSL once it no longer waits for the socket. Throws Error(rank_lost) at `end`.
  template <class Call>
  int repeat(const Call& call, Patience::Clock::time_point end) {
    while (true) {
      ERR_clear_error();
      const int result = call();
      const int why = result > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), result);
      if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return result;
      patience_.wait(socket_, why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, end);
    }
  }

  /// The certificate must be of this name or address.
  void expect(const std::string& host) {
    unsigned char address[sizeof(in6_addr)];
    const bool is_address =
        inet_pton(AF_INET, host.c_str(), address) == 1 || inet_pton(AF_INET6, host.c_str(), address) == 1;
    if (is_address) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str());
    } else {
      SSL_set1_host(ssl_.get(), host.c_str());
      SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(host.c_str()));
    }
  }

  std::unique_ptr<ClientChannel> below_;  ///< owns the socket
  int socket_;
  Patience patience_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{nullptr, SSL_free};
};

}  // namespace

std::unique_ptr<ClientChannel> add_tls(std::unique_ptr<ClientChannel> channel, int socket, const std::string& host,
                                       const std::string& authorities, const Patience& patience) {
  return std::make_unique<TlsChannel>(std::move(channel), socket, host, authorities, patience);
}

}  // namespace shardmat::tools
