// Requests and replies as the rest of the front end sees them. http_connection.h brings them from and to sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tools/serve/http/listener.h"
#include "tools/serve/words/problem.h"
#include "tools/serve/words/rights.h"

namespace shardmat::serve {

class ClientMemory;
struct Session;

/// What a connection of the Unix socket keeps from one request to the next.
struct ConnectionState {
  std::shared_ptr<ClientMemory> memory;  ///< that the client shares with the ranks; null if it has none
};

/// A request of which only the header has arrived.
struct RequestHead {
  Peer peer;
  std::string method, target;
  std::string request_id;                                   ///< of the client if it gave a good one, else made here
  std::uint64_t content_length = 0;                         ///< bytes of the body
  std::string trace_id;                                     ///< of the client's traceparent; empty if it gave none
  std::vector<std::pair<std::string, std::string>> fields;  ///< in the order in which they came

  std::shared_ptr<ConnectionState> connection;  ///< null except on a Unix socket
  std::shared_ptr<const Rights> rights;         ///< set by the router once it knows the client
  std::shared_ptr<const Session> session;       ///< by whose cookie it knows the client; null if it was otherwise
  std::string op, matrix;                       ///< set by the router once it knows the path; for statistics
  Scope scope = Scope::none;                    ///< that the path needs; set by the router

  std::vector<std::pair<std::string, std::string>> reply_fields;  ///< set by the router: fields of whatever is answered

  /// Value of a header field; names differ by more than upper and lower case. Empty if it is not there.
  const std::string& field(std::string_view name) const;
};

/// Seconds of the parts of a request for a product, and the product that it was part of.
struct ProductTimes {
  double queue = 0, copy_in = 0, product = 0, copy_out = 0;
  std::int64_t own_columns = 0;         ///< of the request
  std::int64_t columns = 0, width = 0;  ///< of the product
};

/// Text that goes to one client bit by bit, for as long as both sides want.
class TextStream {
 public:
  /// Adds text. A client that is too slow to take it is cut off.
  void push(std::string_view text);
  void close();
  bool is_open() const { return open_; }

  /// For the connection: everything that was added since the last call.
  std::string take() { return std::exchange(text_, {}); }
  /// For the connection: called once when there is something to take, or the stream was closed.
  std::function<void()> on_more;

 private:
  void wake();

  std::string text_;
  bool open_ = true;
};

struct Reply {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> fields;  ///< further header fields
  std::string text;
  std::span<const std::byte> bytes;    ///< sent behind `text`
  int descriptor = -1;                 ///< goes with the first byte, if it is not negative; on a Unix socket
  std::shared_ptr<const void> owner;   ///< keeps `bytes` and `descriptor` alive
  std::shared_ptr<TextStream> stream;  ///< sent in place of `text`; then the connection ends
  std::optional<Problem> problem;      ///< becomes the text when the reply is sent
  std::optional<ProductTimes> times;   ///< for statistics
  bool about_job = false;              ///< statistics count the job when it ends
  std::function<void()> sent;          ///< called once the last byte is written, if it is set
};

Reply problem_reply(Problem problem);
Reply problem_reply(int status, std::string code, std::string text);
/// Writes the text and the header fields of a reply with a problem.
void finish_problem(Reply& reply, const std::string& request_id);

/// An accepted request. It is destroyed when its reply is there, or early if the client leaves.
class Job {
 public:
  virtual ~Job() = default;
  /// Where the body goes, or its next piece: valid until take_piece(), or as long as the job. Empty at first if room is made
  /// only once a byte of the body has come.
  virtual std::span<std::byte> body() = 0;
  /// Bytes of the body that come after those of body().
  virtual std::uint64_t rest() const { return 0; }
  /// The piece in body() is complete, rest() is not 0, and a byte of the next piece has come if body() is empty. Calls
  /// `next` once, now or later, when body() is where the next piece goes, or with why the request ends here; never after
  /// the job is destroyed.
  using Next = std::function<void(std::optional<Problem>)>;
  virtual void take_piece(Next next) { next(std::nullopt); }
  /// Seconds of the steady clock after which nobody wants the answer, if the body is not complete by then.
  virtual double deadline() const { return std::numeric_limits<double>::infinity(); }
  /// Called once the body is complete. Calls `done` once, now or later, but never after the job is destroyed.
  virtual void start(std::function<void(Reply)> done) = 0;
  /// Tokens have changed: why the client may not have this any more, apart from the scope and the matrix of the path.
  virtual std::optional<Problem> check_rights() const { return std::nullopt; }
};

/// Decides by the header alone: an early reply, for which the body is not read, or a job.
using Router = std::function<std::variant<Reply, std::unique_ptr<Job>>(RequestHead&)>;

/// Tokens have changed: why the client of a request that is under way may not go on.
using CheckAgain = std::function<std::optional<Reply>(const RequestHead&)>;

constexpr int kClientLeft = 499;  ///< in place of a status: the client left before its reply

/// What became of a request.
struct RequestRecord {
  const RequestHead& head;
  int status;                         ///< or kClientLeft
  const std::string& code;            ///< of the problem; empty if there was none
  std::uint64_t bytes_in, bytes_out;  ///< of the bodies
  double seconds;                     ///< from the header's arrival to the end of the reply
  const std::optional<ProductTimes>& times;
  bool about_job;
};
using Recorder = std::function<void(const RequestRecord&)>;

}  // namespace shardmat::serve
