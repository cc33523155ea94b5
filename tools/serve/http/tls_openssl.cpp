#include <fmt/format.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <boost/asio/ssl/context.hpp>
#include <ctime>
#include <utility>

#include "kernels/base/error.h"
#include "tools/serve/http/tls.h"

namespace shardmat::serve {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

namespace {

std::shared_ptr<ssl::context> read(const std::string& certificate, const std::string& key) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Of TLS 1.2 only suites with forward secrecy and authenticated encryption; those of 1.3 are all of this kind.
  SSL_CTX_set_cipher_list(native, "ECDHE+AESGCM:ECDHE+CHACHA20");
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  const auto check = [](const error_code& error, const std::string& file, const char* option) {
    if (error) throw Error(ErrorKind::input, fmt::format("{}: {}", file, error.message()), option);
  };
  context->set_password_callback([](std::size_t, auto) { return std::string(); });  // never asks at the terminal
  error_code error;
  context->use_certificate_chain_file(certificate, error);
  check(error, certificate, "tls-certificate");
  context->use_private_key_file(key, ssl::context::pem, error);
  check(error, key, "tls-key");
  return context;
}

double end_of(const X509* certificate) {
  std::tm time{};
  ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time);
  return static_cast<double>(timegm(&time));
}

/// When the first certificate of the chain ends.
double end_of_chain(ssl::context& context) {
  SSL_CTX* native = context.native_handle();
  double end = end_of(SSL_CTX_get0_certificate(native));
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(native, &chain);
  for (int i = 0; i < sk_X509_num(chain); ++i) end = std::min(end, end_of(sk_X509_value(chain, i)));
  return end;
}

}  // namespace

Tls::Tls(std::string certificate, std::string key) : certificate_(std::move(certificate)), key_(std::move(key)) { reload(); }
Tls::~Tls() = default;
void Tls::reload() {
  context_ = read(certificate_, key_);
  expires_ = end_of_chain(*context_);
}

}  // namespace shardmat::serve
