// Requests and replies as the rest of the front end sees them. http_server.h brings them from and to sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardmat::serve {

/// A request of which only the header has arrived.
struct RequestHead {
  std::string method, target;
  std::string request_id;                                   ///< of the client if it gave a good one, else made here
  std::uint64_t content_length = 0;                         ///< bytes of the body
  std::vector<std::pair<std::string, std::string>> fields;  ///< in the order in which they came

  /// Value of a header field; names differ by more than upper and lower case. Empty if it is not there.
  const std::string& field(const std::string& name) const;
};

/// Why a request failed, for people and for programs.
struct Problem {
  int status = 500;
  std::string code;  ///< one word
  std::string text;
  double retry_after_seconds = 0;  ///< 0: trying again does not help
  int rank = -1;                   ///< the rank that was lost, if any and known
};

struct Reply {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> fields;  ///< further header fields
  std::string text;
  std::span<const std::byte> bytes;   ///< sent in place of `text` if `owner` is set
  std::shared_ptr<const void> owner;  ///< keeps `bytes` alive
  std::optional<Problem> problem;     ///< becomes the text when the reply is sent
};

Reply problem_reply(Problem problem);
Reply problem_reply(int status, std::string code, std::string text);
/// Writes the text and the header fields of a reply with a problem.
void finish_problem(Reply& reply, const std::string& request_id);

/// An accepted request. It is destroyed when its reply is there, or early if the client leaves.
class Job {
 public:
  virtual ~Job() = default;
  /// Where the body goes, or its next piece: valid until take_piece(), or as long as the job.
  virtual std::span<std::byte> body() = 0;
  /// Bytes of the body that come after those of body().
  virtual std::uint64_t rest() const { return 0; }
  /// The piece in body() is complete, and rest() is not 0. Calls `next` once, now or later, when body() is where the next
  /// piece goes; never after the job is destroyed.
  virtual void take_piece(std::function<void()> next) { next(); }
  /// Called once the body is complete. Calls `done` once, now or later, but never after the job is destroyed.
  virtual void start(std::function<void(Reply)> done) = 0;
};

/// Decides by the header alone: an early reply, for which the body is not read, or a job.
using Router = std::function<std::variant<Reply, std::unique_ptr<Job>>(const RequestHead&)>;

}  // namespace shardmat::serve
