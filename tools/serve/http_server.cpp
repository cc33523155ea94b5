#include "tools/serve/http_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <chrono>
#include <cstring>
#include <optional>
#include <random>
#include <set>
#include <unordered_set>

#include "kernels/base/error.h"
#include "tools/serve/names.h"

namespace shardmat::serve {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using Protocol = asio::local::stream_protocol;

namespace {

constexpr std::uint32_t kMostHeaderBytes = 16 << 10;
constexpr std::size_t kMostFields = 100;
constexpr std::uint64_t kMostIgnoredBytes = 64
                                            << 10;  ///< of a body that is not wanted; for a longer one the connection ends
constexpr std::size_t kStepBytes = std::size_t{4} << 20;
constexpr int kMostConnections = 1024;
constexpr std::chrono::seconds kHeaderTime{10}, kIdleTime{300}, kBodyTime{10}, kLingerTime{2};
constexpr std::uint64_t kLeastBytesPerSecond = 64 << 10;
/// How long a connection without a request stays open while the server drains: a request may be on its way.
constexpr std::chrono::milliseconds kDrainTime{100};
constexpr std::chrono::milliseconds kAcceptRetry{50};

/// Time for a body.
std::chrono::seconds time_for(std::uint64_t bytes) { return kBodyTime + std::chrono::seconds(bytes / kLeastBytesPerSecond); }

/// Asio moves 64 KiB at a time unless this completion condition asks for more.
struct InLargeSteps {
  std::size_t operator()(const error_code& error, std::size_t) const { return error ? 0 : kStepBytes; }
};

std::string header_of(const Reply& reply, std::size_t bytes, const std::string& request_id, bool keep_alive) {
  const auto reason = http::obsolete_reason(static_cast<http::status>(reply.status));
  std::string text = fmt::format("HTTP/1.1 {} {}\r\nX-Request-Id: {}\r\n", reply.status,
                                 std::string_view(reason.data(), reason.size()), request_id);
  if (reply.status != 204) text += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", reply.content_type, bytes);
  for (const auto& [name, value] : reply.fields) text += fmt::format("{}: {}\r\n", name, value);
  text += keep_alive ? "\r\n" : "Connection: close\r\n\r\n";
  return text;
}

}  // namespace

struct HttpServer::Impl : std::enable_shared_from_this<HttpServer::Impl> {
  class Connection;

  Impl(EventLoop& event_loop, Router route)
      : loop(event_loop), router(std::move(route)), acceptor(loop.io()), drain_timer(loop.io()), accept_timer(loop.io()) {}

  void accept();
  void close_idle();
  void connection_ended(Connection* connection);

  std::string new_request_id() { return fmt::format("{:08x}-{:x}", id_prefix, ++requests); }

  EventLoop& loop;
  Router router;
  Protocol::acceptor acceptor;
  std::string path;
  asio::steady_timer drain_timer, accept_timer;
  bool draining = false;
  std::function<void()> empty;
  std::unordered_set<Connection*> connections;
  const std::uint32_t id_prefix = std::random_device{}();
  std::uint64_t requests = 0;
};

/// One client's connection; it keeps itself alive by the operations under way.
class HttpServer::Impl::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Protocol::socket socket, std::shared_ptr<Impl> server)
      : stream_(std::move(socket)), server_(std::move(server)) {
    server_->connections.insert(this);
  }
  ~Connection() { server_->connection_ended(this); }

  void read_request() {
    idle_ = buffer_.size() == 0;
    parser_.emplace();
    parser_->header_limit(kMostHeaderBytes);
    parser_->body_limit(std::numeric_limits<std::uint64_t>::max());  // boost::none would refuse every body
    stream_.expires_after(idle_ && !first_ ? kIdleTime : kHeaderTime);
    http::async_read_header(stream_, buffer_, *parser_, [me = shared_from_this()](error_code error, std::size_t) {
      me->idle_ = false;
      if (error) return me->refuse_header(error);
      me->route();
    });
  }

  void close_if_idle() {
    if (!idle_) return;
    error_code ignored;
    stream_.socket().shutdown(Protocol::socket::shutdown_both, ignored);
  }

 private:
  void refuse_header(error_code error) {
    if (error == http::error::end_of_stream || error == beast::error::timeout ||
        error.category() != http::make_error_code(http::error::bad_line_ending).category())
      return;
    head_ = {};
    head_.request_id = server_->new_request_id();
    keep_alive_ = false;
    const bool long_header = error == http::error::header_limit || error == http::error::buffer_overflow;
    send(problem_reply(long_header ? 431 : 400, long_header ? "header_too_long" : "malformed",
                       long_header ? fmt::format("the header has more than {} bytes", kMostHeaderBytes)
                                   : "this is no HTTP/1.1 request: " + error.message()));
  }

  void route() {
    first_ = false;
    const auto& message = parser_->get();
    keep_alive_ = message.keep_alive() && !server_->draining;
    head_ = {};
    head_.method = std::string(message.method_string());
    head_.target = std::string(message.target());
    head_.content_length = parser_->content_length().value_or(0);
    for (const auto& field : message)
      head_.fields.emplace_back(std::string(field.name_string()), std::string(field.value()));
    const std::string& id = head_.field("X-Request-Id");
    head_.request_id = is_request_id(id) ? id : server_->new_request_id();
    if (head_.fields.size() > kMostFields)
      return refuse(problem_reply(431, "header_too_long", fmt::format("there are more than {} header fields", kMostFields)));
    if (message.count(http::field::transfer_encoding) > 0)
      return refuse(problem_reply(411, "length_required", "send the body with Content-Length, not with Transfer-Encoding"));
    auto accepted = guarded_route();
    if (Reply* reply = std::get_if<Reply>(&accepted)) return refuse(std::move(*reply));
    job_ = std::move(std::get<std::unique_ptr<Job>>(accepted));
    if (job_->body().size() + job_->rest() != head_.content_length)
      keep_alive_ = false;  // what nobody reads is no next request
    if (beast::iequals(head_.field("Expect"), "100-continue") && buffer_.size() == 0) return say_continue();
    read_body();
  }

  std::variant<Reply, std::unique_ptr<Job>> guarded_route() {
    try {
      return server_->router(head_);
    } catch (const std::bad_alloc&) {
      return problem_reply(507, "no_memory", "the service is short of memory; try again later");
    }
  }

  /// A reply before the body is read. What comes of a short body is read and ignored.
  void refuse(Reply reply) {
    const bool waits = !head_.field("Expect").empty();
    if (head_.content_length == 0) return send(std::move(reply));
    if (waits || head_.content_length > kMostIgnoredBytes) {
      keep_alive_ = false;
      return send(std::move(reply));
    }
    ignored_.resize(head_.content_length);
    receive(ignored_, [this, reply = std::move(reply)] { send(reply); });
  }

  void say_continue() {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    stream_.expires_after(kHeaderTime);
    asio::async_write(stream_, asio::buffer(kContinue), [me = shared_from_this()](error_code error, std::size_t) {
      if (!error) me->read_body();
    });
  }

  void read_body() {
    receive(job_->body(), [this] {
      if (job_->rest() == 0) return run();
      stream_.expires_never();
      job_->take_piece([me = shared_from_this()] { me->read_body(); });
    });
  }

  /// Fills `body` with what was read along with the header and what comes, then calls `then`.
  template <class Then>
  void receive(std::span<std::byte> body, Then then) {
    const std::size_t had = std::min(buffer_.size(), body.size());
    if (had > 0) std::memcpy(body.data(), buffer_.data().data(), had);
    buffer_.consume(had);
    const auto rest = body.subspan(had);
    if (rest.empty()) return then();
    stream_.expires_after(time_for(rest.size()));
    asio::async_read(stream_, asio::buffer(rest.data(), rest.size()), InLargeSteps{},
                     [me = shared_from_this(), then = std::move(then)](error_code error, std::size_t) {
                       if (!error) then();
                     });
  }

  void run() {
    stream_.expires_never();
    ++turn_;
    replied_ = false;
    job_->start([this, weak = weak_from_this(), turn = turn_](Reply reply) {
      const auto me = weak.lock();
      if (!me || turn != turn_) return;
      replied_ = true;
      error_code ignored;
      stream_.socket().cancel(ignored);
      reply_ = std::move(reply);
      // The job may be the caller, so it goes only after this.
      server_->loop.post([me] { me->job_.reset(), me->send(std::move(me->reply_)); });
    });
    if (!replied_) watch_client();
  }

  /// Notices a client that leaves before its reply is there: the job is then dropped.
  void watch_client() {
    stream_.socket().async_wait(Protocol::socket::wait_read, [me = shared_from_this(), turn = turn_](error_code error) {
      if (error || turn != me->turn_ || me->replied_) return;
      char byte = 0;
      if (recv(me->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
        ++me->turn_;
        me->job_.reset();
      } else {
        me->keeper_ = me;  // a further request is there, and the client with it
      }
    });
  }

  void send(Reply reply) {
    keeper_.reset();
    reply_ = std::move(reply);
    finish_problem(reply_, head_.request_id);
    if (server_->draining) keep_alive_ = false;
    const bool own = reply_.owner == nullptr;
    const std::size_t bytes = own ? reply_.text.size() : reply_.bytes.size();
    header_ = header_of(reply_, bytes, head_.request_id, keep_alive_);
    const std::array<asio::const_buffer, 2> parts{asio::buffer(header_), own ? asio::const_buffer(asio::buffer(reply_.text))
                                                                             : asio::buffer(reply_.bytes.data(), bytes)};
    stream_.expires_after(time_for(bytes));
    asio::async_write(stream_, parts, InLargeSteps{}, [me = shared_from_this()](error_code error, std::size_t) {
      me->reply_ = {};
      if (error) return;
      if (me->keep_alive_) return me->read_request();
      error_code ignored;
      me->stream_.socket().shutdown(Protocol::socket::shutdown_send, ignored);
      me->ignored_.resize(kMostIgnoredBytes);
      me->stream_.expires_after(kLingerTime);
      me->linger();
    });
  }

  /// Reads what the client still sends: closing at once would take the reply from it.
  void linger() {
    stream_.async_read_some(asio::buffer(ignored_), [me = shared_from_this()](error_code error, std::size_t) {
      if (!error) me->linger();
    });
  }

  beast::basic_stream<Protocol> stream_;
  std::shared_ptr<Impl> server_;
  beast::flat_buffer buffer_{kMostHeaderBytes + (64 << 10)};
  std::optional<http::request_parser<http::empty_body>> parser_;
  RequestHead head_;
  std::unique_ptr<Job> job_;
  std::vector<std::byte> ignored_;
  std::string header_;
  Reply reply_;
  std::shared_ptr<Connection> keeper_;
  std::uint64_t turn_ = 0;  ///< counts requests, so that what is late for one does nothing to the next
  bool keep_alive_ = true, idle_ = true, first_ = true, replied_ = false;
};

void HttpServer::Impl::accept() {
  acceptor.async_accept([me = shared_from_this()](error_code error, Protocol::socket socket) {
    if (error == asio::error::operation_aborted || !me->acceptor.is_open()) return;
    if (!error && me->connections.size() < kMostConnections)
      std::make_shared<Connection>(std::move(socket), me)->read_request();
    if (!error) return me->accept();
    me->accept_timer.expires_after(kAcceptRetry);  // no descriptor is left, say
    me->accept_timer.async_wait([me](error_code cancelled) {
      if (!cancelled) me->accept();
    });
  });
}

void HttpServer::Impl::close_idle() {
  for (Connection* connection : connections) connection->close_if_idle();
}

void HttpServer::Impl::connection_ended(Connection* connection) {
  connections.erase(connection);
  if (draining && connections.empty() && empty) loop.post(std::exchange(empty, nullptr));
}

HttpServer::HttpServer(EventLoop& loop, Router router) : impl_(std::make_shared<Impl>(loop, std::move(router))) {}

HttpServer::~HttpServer() {
  error_code ignored;
  impl_->acceptor.close(ignored);
  impl_->empty = nullptr;
  if (!impl_->path.empty()) unlink(impl_->path.c_str());
}

void HttpServer::listen_unix(const std::string& path) {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorKind::resources, fmt::format("{}: {}", path, why), "unix");
  };
  if (path.size() >= sizeof(sockaddr_un::sun_path))
    fail("this is too long for the path of a socket; choose one of at most 107 bytes");
  error_code error;
  Protocol::socket other(impl_->loop.io());
  other.connect(Protocol::endpoint(path), error);
  if (!error) fail("another server listens there; choose another path");
  struct stat status {};
  if (lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) fail("there is a file of another kind; choose another path");
    unlink(path.c_str());
  }
  impl_->acceptor.open(Protocol(), error);
  const mode_t mask = umask(0177);  // the socket never exists with more rights
  if (!error) impl_->acceptor.bind(Protocol::endpoint(path), error);
  umask(mask);
  if (!error) impl_->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) fail(error.message());
  impl_->path = path;
  impl_->accept();
}

void HttpServer::drain(std::function<void()> empty) {
  impl_->draining = true;
  impl_->empty = std::move(empty);
  error_code ignored;
  impl_->acceptor.non_blocking(true, ignored);
  for (error_code error; !error;) {  // what connected before is served
    Protocol::socket socket(impl_->loop.io());
    impl_->acceptor.accept(socket, error);
    if (!error) std::make_shared<Impl::Connection>(std::move(socket), impl_)->read_request();
  }
  impl_->acceptor.close(ignored);
  unlink(impl_->path.c_str());
  impl_->path.clear();
  if (impl_->connections.empty()) return impl_->loop.post(std::exchange(impl_->empty, nullptr));
  impl_->drain_timer.expires_after(kDrainTime);
  impl_->drain_timer.async_wait([impl = impl_](error_code error) {
    if (!error) impl->close_idle();
  });
}

}  // namespace shardmat::serve
