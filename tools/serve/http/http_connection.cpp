#include "tools/serve/http/http_connection.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "runtime/service/wire/frames.h"
#include "tools/serve/http/head_parser.h"
#include "tools/serve/http/header_scan.h"
#include "tools/serve/http/http_stream.h"
#include "tools/serve/http/large_steps.h"
#include "tools/serve/http/names.h"
#include "tools/serve/http/reply_header.h"
#include "tools/serve/http/time_limit.h"
#include "tools/serve/words/log.h"

namespace shardmat::serve {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t kReadBytes = 16 << 10;
/// Of a body that is not wanted; for a longer one the connection ends.
constexpr std::uint64_t kMostIgnoredBytes = 64 << 10;
constexpr double kIdleSeconds = 300, kLingerSeconds = 2;
constexpr double kHealthSeconds = 1;  ///< for the header on a connection that is kept free for health requests

}  // namespace

/// It keeps itself alive by the operations under way.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(HttpStream::Socket socket, Peer peer, std::shared_ptr<HttpShared> shared, const Tls* tls, bool health_only)
      : stream_(std::move(socket), tls),
        peer_(std::move(peer)),
        shared_(std::move(shared)),
        limit_(shared_->loop.io(), shared_->limits.body_seconds, [this] { cancel(); }),
        health_only_(health_only) {
    shared_->open.insert(this);
    if (health_only_) shared_->for_health.push_back(this);
    if (peer_.is_unix) state_ = std::make_shared<ConnectionState>();
  }
  ~HttpConnection() { shared_->remove(this, peer_, health_only_); }
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  void begin() {
    if (!stream_.has_tls()) return read_request();
    limit_.after(shared_->limits.header_seconds);
    stream_.socket().async_wait(HttpStream::Socket::wait_read, [me = shared_from_this()](error_code error) {
      if (error) return;
      if (me->stream_.speaks_plain_http()) return me->refuse_plain_http();
      me->stream_.async_handshake([me](error_code failed) {
        if (!failed) me->read_request();
      });
    });
  }

  /// Tokens have changed: a request that is not allowed any more ends here.
  void check_rights() {
    if (reply_.stream) {
      if (shared_->check_again(head_)) reply_.stream->close();
      return;
    }
    if (phase_ != Phase::body && phase_ != Phase::working) return;
    auto refusal = shared_->check_again(head_);
    if (!refusal && job_)
      if (auto problem = job_->check_rights()) refusal = problem_reply(std::move(*problem));
    if (!refusal) return;
    ++turn_;
    keep_alive_ = false;
    if (phase_ == Phase::working) {
      job_.reset();
      return send(std::move(*refusal));
    }
    refusal_ = std::move(refusal);  // the body is being read: this ends first
    cancel();
  }

  void close_if_idle() {
    if (reply_.stream) return reply_.stream->close();
    if (!idle_) return;
    error_code ignored;
    stream_.socket().shutdown(HttpStream::Socket::shutdown_both, ignored);
  }

  /// Another connection needs its place. False if it has sent its request: it is answered.
  bool send_away() {
    if (phase_ != Phase::header || !first_) return false;
    std::erase(shared_->for_health, this);
    limit_.end_now();
    return true;
  }

  /// The event loop has ended: nobody is answered any more.
  void drop_request() {
    job_.reset();
    reply_ = {};
    head_.connection.reset(), state_.reset();
    keeper_.reset();
  }

 private:
  InLargeSteps in_large_steps() { return {limit_.moved(), peer_.is_unix ? &shared_->loop : nullptr}; }

  void cancel() {
    error_code ignored;
    stream_.socket().cancel(ignored);
  }

  // --- a header ---

  void read_request() {
    phase_ = Phase::header;
    idle_ = buffer_.size() == 0;
    scanner_ = {};
    limit_.after(health_only_       ? std::min(kHealthSeconds, shared_->limits.header_seconds)
                 : idle_ && !first_ ? kIdleSeconds
                                    : shared_->limits.header_seconds);
    if (client_ended_) return header_ended();
    if (!reading_) scan();
  }

  void scan() {
    if (!scanner_.has_begun())
      buffer_.consume(empty_lines({static_cast<const char*>(buffer_.data().data()), buffer_.size()}));
    const auto arrived = std::string_view(static_cast<const char*>(buffer_.data().data()), buffer_.size());
    const HeaderScanner::Found found = scanner_.scan(arrived);
    if (!found.fault.empty()) return refuse_header(400, "malformed", "this is no HTTP/1.1 request: " + found.fault);
    if (std::max(found.bytes, found.bytes > 0 ? 0 : buffer_.size()) > kMostHeaderBytes)
      return refuse_header(431, "header_too_long", fmt::format("the header has more than {} bytes", kMostHeaderBytes));
    if (found.bytes > 0) return parse(found.bytes);
    read_some();
  }

  /// While a job works, this notices a client that leaves, or it reads the beginning of the next request.
  void read_some() {
    reading_ = true;
    stream_.async_read_some(buffer_.prepare(kReadBytes), [me = shared_from_this()](error_code error, std::size_t bytes) {
      me->reading_ = false;
      me->buffer_.commit(bytes);
      if (me->phase_ == Phase::working) return me->stirred(error);
      me->client_ended_ = static_cast<bool>(error);
      if (me->phase_ != Phase::header) return;
      if (error) return me->header_ended();
      if (std::exchange(me->idle_, false) && !me->first_) me->limit_.after(me->shared_->limits.header_seconds);
      me->scan();
    });
  }

  void header_ended() {
    if (health_only_ && first_ && limit_.late()) return refuse_header(too_many_connections());
    if (buffer_.size() == 0) return;  // between two requests, or before the first
    if (limit_.late()) return refuse_header(408, "slow", "the header did not come in time");
    refuse_header(400, "malformed", "this is no HTTP/1.1 request: the connection ended in the header");
  }

  /// What comes behind a wrong header is no request.
  void refuse_header(int status, const char* code, std::string text) {
    refuse_header(problem_reply(status, code, std::move(text)));
  }

  void refuse_header(Reply reply) {
    begin_request();
    head_.request_id = shared_->new_request_id();
    keep_alive_ = false;
    send(std::move(reply));
  }

  /// A client that does not know of TLS reads no TLS, either.
  void refuse_plain_http() {
    begin_request();
    stream_.send_plain(kTlsOnlyReply);
    reply_ = problem_reply(400, "plain_http", "");
    finish_record(400, 68);
    phase_ = Phase::ending;
    limit_.after(kLingerSeconds);
    ignored_.resize(kMostIgnoredBytes);
    linger();
  }

  void begin_request(RequestHead head = {}) {
    phase_ = Phase::body;
    first_ = idle_ = false;
    began_ = Clock::now();
    head_ = std::move(head);
    head_.peer = peer_;
    received_ = unread_ = 0;
    says_keep_alive_ = body_begun_ = false;
    refusal_.reset();
  }

  void parse(std::size_t bytes) {
    ParsedHead parsed = parse_head({static_cast<const char*>(buffer_.data().data()), bytes});
    buffer_.consume(bytes);
    begin_request(std::move(parsed.head));
    head_.connection = state_;
    if (head_.request_id.empty()) head_.request_id = shared_->new_request_id();
    keep_alive_ = parsed.keep_alive && !shared_->draining && !client_ended_ && !health_only_;
    says_keep_alive_ = parsed.is_1_0;
    if (parsed.problem) return send(problem_reply(std::move(*parsed.problem)));
    route();
  }

  // --- a request ---

  void route() {
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
      auto accepted = shared_->router(head_);
      if (health_only_ && head_.op != "health") return too_many_connections();
      return accepted;
    } catch (const std::exception& error) {
      return reply_of(error);
    }
  }

  /// A mistake in the code that one request meets ends no other one.
  Reply reply_of(const std::exception& error) const {
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
      return problem_reply(507, "no_memory", "the service is short of memory; try again later");
    log_line(fmt::format("request {} {}: internal error: {}", head_.method, head_.target.substr(0, 200), error.what()));
    return problem_reply(500, "internal", "internal error; the service's log says more");
  }

  /// A reply before the body is read. A short body is read behind it and ignored; for a longer one the connection ends.
  void refuse(Reply reply) {
    const bool waits = !head_.field("Expect").empty();
    if (waits || head_.content_length > kMostIgnoredBytes) keep_alive_ = head_.content_length == 0 && keep_alive_;
    else unread_ = head_.content_length;
    send(std::move(reply));
  }

  /// The client has its reply, so nothing is said any more if the body comes too slowly.
  void ignore_body() {
    const std::size_t had = std::min<std::size_t>(buffer_.size(), unread_);
    buffer_.consume(had);
    ignored_.resize(std::exchange(unread_, 0) - had);
    if (ignored_.empty()) return read_request();
    idle_ = true;
    limit_.when_slow();
    asio::async_read(stream_, asio::buffer(ignored_), in_large_steps(),
                     [me = shared_from_this()](error_code error, std::size_t) {
                       if (!error) me->read_request();
                     });
  }

  void say_continue() {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    limit_.after(shared_->limits.header_seconds);
    asio::async_write(stream_, asio::buffer(kContinue), [me = shared_from_this()](error_code error, std::size_t) {
      if (error) return me->body_failed();
      me->read_body();
    });
  }

  void read_body() {
    if (refusal_) return stop_body();
    if (job_->body().empty() && job_->rest() > 0 && buffer_.size() == 0) return await_body();
    receive(job_->body(), [this] {
      if (job_->rest() == 0) return run();
      limit_.never();
      job_->take_piece([me = shared_from_this(), since = Clock::now()](std::optional<Problem> problem) {
        me->pause_ += Clock::now() - since;
        if (!problem) return me->read_body();
        me->refusal_ = problem_reply(std::move(*problem));
        // The job may be the caller, so it goes only after this.
        me->shared_->loop.post([me] { me->stop_body(); });
      });
    });
  }

  void watch_rate() {
    if (std::exchange(body_begun_, true)) limit_.go_on(std::exchange(pause_, Clock::duration::zero()));
    else pause_ = Clock::duration::zero(), limit_.when_slow(job_->deadline());
  }

  /// No room is made for the body before its first byte is here.
  void await_body() {
    watch_rate();
    stream_.async_read_some(buffer_.prepare(kReadBytes), [me = shared_from_this()](error_code error, std::size_t bytes) {
      me->buffer_.commit(bytes);
      if (error) return me->body_failed();
      me->read_body();
    });
  }

  void body_failed() {
    if (refusal_) return stop_body();
    if (!limit_.late()) return client_left();
    refusal_ = limit_.past_deadline() ? problem_reply(504, "deadline", "the deadline passed before the body was complete")
                                      : problem_reply(408, "slow", "the body did not come in time");
    stop_body();
  }

  /// Answers before the body is complete.
  void stop_body() {
    job_.reset();
    keep_alive_ = false;
    send(std::move(*std::exchange(refusal_, std::nullopt)));
  }

  /// Fills `body` with what was read along with the header and what comes, then calls `then`.
  template <class Then>
  void receive(std::span<std::byte> body, Then then) {
    const std::size_t had = std::min(buffer_.size(), body.size());
    if (had > 0) std::memcpy(body.data(), buffer_.data().data(), had);
    buffer_.consume(had);
    received_ += body.size();
    auto rest = body.subspan(had);
    if (!rest.empty()) rest = rest.subspan(stream_.read_now(rest));
    if (rest.empty()) return then();
    watch_rate();
    asio::async_read(stream_, asio::buffer(rest.data(), rest.size()), in_large_steps(),
                     [me = shared_from_this(), then = std::move(then)](error_code error, std::size_t) {
                       if (error) return me->body_failed();
                       then();
                     });
  }

  void run() {
    limit_.never();
    ++turn_;
    phase_ = Phase::working;
    try {
      job_->start([this, weak = weak_from_this(), turn = turn_](Reply reply) {
        const auto me = weak.lock();
        if (!me || turn != turn_) return;
        phase_ = Phase::replying;
        reply_ = std::move(reply);
        // The job may be the caller, so it goes only after this.
        shared_->loop.post([me] { me->job_.reset(), me->send_reply(); });
      });
    } catch (const std::exception& error) {
      if (phase_ == Phase::replying) throw;
      ++turn_;  // what the job may still say is for nobody
      job_.reset();
      return send(reply_of(error));
    }
    if (phase_ == Phase::working) watch_client();
  }

  void watch_client() {
    if (buffer_.size() > 0) keeper_ = shared_from_this();  // a further request is there, and the client with it
    else read_some();
  }

  /// While the job works, the client has sent something, or has left: then the job is dropped. A client that only sends
  /// nothing more still gets its answer.
  void stirred(error_code error) {
    if (!error) return watch_client();
    if (error == asio::error::eof && !stream_.peer_is_gone()) return client_sends_no_more();
    ++turn_;
    job_.reset();
    client_left();
  }

  void client_sends_no_more() {
    client_ended_ = true, keep_alive_ = false;
    keeper_ = shared_from_this();
    stream_.socket().async_wait(HttpStream::Socket::wait_error, [weak = weak_from_this(), turn = turn_](error_code error) {
      const auto me = weak.lock();
      if (error || !me || turn != me->turn_ || !me->stream_.peer_is_gone()) return;
      me->keeper_.reset();
      if (me->reply_.stream) return me->reply_.stream->close();
      if (me->phase_ == Phase::working) me->stirred(asio::error::connection_reset);
    });
  }

  void client_left() {
    job_.reset();
    reply_ = {};
    finish_record(kClientLeft, 0);
    if (reading_) cancel();
  }

  // --- a reply ---

  void send(Reply reply) { reply_ = std::move(reply), send_reply(); }

  void send_reply() {
    phase_ = Phase::replying;
    keeper_.reset();
    finish_problem(reply_, head_.request_id);
    if (shared_->draining || reply_.stream) keep_alive_ = false;
    for (auto& field : head_.reply_fields) reply_.fields.push_back(std::move(field));
    header_ = header_of(reply_, reply_.text.size() + reply_.bytes.size(), head_.request_id,
                        !keep_alive_       ? "close"
                        : says_keep_alive_ ? "keep-alive"
                                           : "");
    if (head_.method == "HEAD") leave_body_out();
    limit_.when_slow();
    if (reply_.descriptor >= 0) return send_with_descriptor();
    write_reply();
  }

  void leave_body_out() {
    reply_.text.clear();
    reply_.bytes = {};
    if (reply_.stream) reply_.stream->close();
    reply_.stream.reset();
  }

  void send_with_descriptor() {
    const ssize_t sent = service::send_with_descriptor(stream_.socket().native_handle(), std::as_bytes(std::span(header_)),
                                                       reply_.descriptor);
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return client_left();
    if (sent > 0) {
      header_.erase(0, static_cast<std::size_t>(sent));
      return write_reply();
    }
    stream_.socket().async_wait(HttpStream::Socket::wait_write, [me = shared_from_this()](error_code error) {
      if (error) return me->client_left();
      me->send_with_descriptor();
    });
  }

  void write_reply() {
    const auto part = [](const auto& bytes) {
      return iovec{const_cast<void*>(static_cast<const void*>(bytes.data())), bytes.size()};
    };
    std::array<iovec, 3> parts{part(header_), part(reply_.text), part(reply_.bytes)};
    std::size_t sent = stream_.write_now(parts);
    std::array<asio::const_buffer, 3> rest;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      rest[i] = asio::const_buffer(parts[i].iov_base, parts[i].iov_len) + sent;  // which ends at the end of the buffer
      sent -= std::min(sent, parts[i].iov_len);
    }
    if (asio::buffer_size(rest) == 0) return reply_written({});
    asio::async_write(stream_, rest, in_large_steps(),
                      [me = shared_from_this()](error_code error, std::size_t) { me->reply_written(error); });
  }

  void reply_written(error_code error) {
    if (!error && reply_.stream) return begin_stream();
    finish_record(error ? kClientLeft : reply_.status, reply_.text.size() + reply_.bytes.size());
    if (error) return reading_ ? cancel() : void();
    if (!keep_alive_) return end();
    if (buffer_.size() == 0) return ignore_body();
    shared_->loop.post([me = shared_from_this()] { me->ignore_body(); });  // many requests may lie in the buffer
  }

  void finish_record(int status, std::uint64_t bytes_out) {
    const std::string code = reply_.problem ? reply_.problem->code : "";
    shared_->record({head_, status, code, received_, bytes_out, std::chrono::duration<double>(Clock::now() - began_).count(),
                     reply_.times, reply_.about_job});
    if (reply_.sent && status != kClientLeft) reply_.sent();
    reply_ = {};
  }

  void begin_stream() {
    streamed_ = 0;
    stream_.socket().async_wait(HttpStream::Socket::wait_read, [me = shared_from_this()](error_code error) {
      if (error || !me->reply_.stream) return;
      if (me->stream_.peer_sends_no_more() && !me->stream_.peer_is_gone()) return me->client_sends_no_more();
      me->reply_.stream->close();  // the client leaves, or says what it may not
    });
    pump_stream();
  }

  void pump_stream() {
    TextStream& stream = *reply_.stream;
    header_ = stream.take();
    if (!header_.empty()) return write_stream();
    if (!stream.is_open()) {
      finish_record(reply_.status, streamed_);
      return end();
    }
    keeper_ = shared_from_this();
    stream.on_more = [weak = weak_from_this()] {
      if (const auto me = weak.lock())
        me->shared_->loop.post([me] {
          me->keeper_.reset();
          if (me->reply_.stream) me->pump_stream();
        });
    };
    limit_.never();
  }

  void write_stream() {
    limit_.when_slow();
    asio::async_write(stream_, asio::buffer(header_), in_large_steps(),
                      [me = shared_from_this()](error_code error, std::size_t bytes) {
                        me->streamed_ += bytes;
                        if (!error) return me->pump_stream();
                        me->reply_.stream->close();
                        me->finish_record(me->reply_.status, me->streamed_);
                      });
  }

  /// Ends the connection in a way that leaves the reply to the client: what it still sends is read for a while.
  void end() {
    if (health_only_ && limit_.late()) return;  // it sent nothing that could be read
    phase_ = Phase::ending;
    limit_.after(kLingerSeconds);
    stream_.async_end_writing([me = shared_from_this()] {
      if (me->limit_.late()) return;
      me->ignored_.resize(kMostIgnoredBytes);
      me->linger();
    });
  }

  void linger() {
    stream_.socket().async_read_some(asio::buffer(ignored_), [me = shared_from_this()](error_code error, std::size_t) {
      if (!error) me->linger();
    });
  }

  HttpStream stream_;
  Peer peer_;
  std::shared_ptr<ConnectionState> state_;  ///< null except on a Unix socket
  std::shared_ptr<HttpShared> shared_;
  TimeLimit limit_;
  Clock::time_point began_ = Clock::now();
  Clock::duration pause_ = Clock::duration::zero();  ///< of a body, while the job took a piece
  beast::flat_buffer buffer_{2 * kMostHeaderBytes + kReadBytes};
  HeaderScanner scanner_;
  RequestHead head_;
  std::unique_ptr<Job> job_;
  std::vector<std::byte> ignored_;
  std::string header_;
  Reply reply_;
  std::optional<Reply> refusal_;  ///< in place of the answer, once the body is not read any more
  std::shared_ptr<HttpConnection> keeper_;
  std::uint64_t turn_ = 0;  ///< counts requests, so that what is late for one does nothing to the next
  std::uint64_t received_ = 0, streamed_ = 0;
  std::size_t unread_ = 0;  ///< bytes of a short body behind an early reply
  enum class Phase { header, body, working, replying, ending } phase_ = Phase::header;
  bool reading_ = false, client_ended_ = false;
  bool keep_alive_ = true, idle_ = true, first_ = true;
  bool says_keep_alive_ = false;  ///< clients of HTTP/1.0 want to be told
  bool body_begun_ = false;
  const bool health_only_;
};

void serve_connection(int socket, const Peer& peer, const std::shared_ptr<HttpShared>& shared, const Tls* tls,
                      bool health_only) {
  const int family = peer.is_unix ? AF_UNIX : peer.address.find(':') == std::string::npos ? AF_INET : AF_INET6;
  HttpStream::Socket connected(shared->loop.io());
  error_code error;
  connected.assign(asio::generic::stream_protocol(family, 0), socket, error);
  if (error) {
    close(socket);
    return health_only ? void() : shared->count.remove(peer);
  }
  std::make_shared<HttpConnection>(std::move(connected), peer, shared, tls, health_only)->begin();
}

void close_if_idle(HttpConnection& connection) { connection.close_if_idle(); }

void check_rights(const HttpShared& shared) {
  std::vector<std::shared_ptr<HttpConnection>> open;  // some end here
  for (HttpConnection* connection : shared.open)
    if (auto alive = connection->weak_from_this().lock()) open.push_back(std::move(alive));
  for (const auto& connection : open) connection->check_rights();
}

void send_away_oldest_for_health(const HttpShared& shared) {
  for (HttpConnection* connection : shared.for_health)
    if (const auto alive = connection->weak_from_this().lock(); alive && alive->send_away()) return;
}

void drop_requests(const HttpShared& shared) {
  std::vector<std::shared_ptr<HttpConnection>> open;  // some end here
  for (HttpConnection* connection : shared.open)
    if (auto alive = connection->weak_from_this().lock()) open.push_back(std::move(alive));
  for (const auto& connection : open) connection->drop_request();
}

}  // namespace shardmat::serve
