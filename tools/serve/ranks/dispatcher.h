// Decides what the ranks do next: loads and unloads first, then the product that schedule.h names, or a task that came
// before it. Work on the same vector, and new values and products of the same matrix, begin in the order in which they came.
// One command is under way at a time, and beside it one load, if the ranks load in the background. A request whose deadline
// passes while it waits is answered then.
//
// Threads: the thread of the event loop.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

#include "tools/serve/http/http_message.h"
#include "tools/serve/ranks/backlog.h"
#include "tools/serve/ranks/batch_pace.h"
#include "tools/serve/ranks/claims.h"
#include "tools/serve/ranks/fair_schedule.h"
#include "tools/serve/ranks/matrix.h"
#include "tools/serve/ranks/ranks.h"
#include "tools/serve/state/arena_space.h"
#include "tools/serve/state/client_memories.h"

namespace shardmat::serve {

/// What became of a request for a product.
struct MultiplyResult {
  std::optional<Problem> problem;
  std::uint64_t generation = 0;               ///< of the values that were multiplied
  std::int64_t batch_columns = 0, width = 0;  ///< of the product that it was part of
  std::int64_t requests = 0;                  ///< of this product
  double queue_seconds = 0;
  service::Multiplied seconds;  ///< of the slowest rank in each part
};

/// A product that the ranks have carried out, or a slice of long work.
struct FinishedProduct {
  std::string matrix;
  std::int64_t columns = 0;  ///< of requests; 0: a slice, or batches
  std::int64_t batches = 0;  ///< requests, of a product of batches
  std::int64_t width = 0;    ///< of the product; more columns than this took several
  std::uint64_t x_bytes = 0, y_bytes = 0;
  service::Multiplied seconds;                   ///< of the slowest rank in each part
  std::map<std::string, double> client_seconds;  ///< in which the ranks were busy, by the client's share of the columns
};

/// For statistics of a request of so many columns.
ProductTimes times_of(const MultiplyResult& result, std::int64_t columns);

/// Work that takes many commands. They are slices: each is in the queue of its matrix as a product of its own, so that the
/// products of others come in between.
class LongWork {
 public:
  virtual ~LongWork() = default;
  /// Called when the slice's turn has come: why it cannot go on, if so. Then the slice ends with this problem.
  virtual std::optional<Problem> check() const = 0;
  /// Called after check().
  virtual decltype(service::Command::what) next_command() = 0;
  /// Seconds of this command.
  virtual double expected_seconds() const = 0;
  /// The ranks have answered; or the slice ends with a problem, with answers or without.
  virtual void take(const std::vector<service::Answer>& answers, const std::optional<Problem>& problem) = 0;
};

struct MultiplyRequest {
  std::uint64_t matrix = 0;
  std::int64_t columns = 1;
  double alpha = 1, beta = 0;
  std::uint64_t x_bytes = 0, y_bytes = 0;  ///< of one column
  /// Numbers of the vectors in place of x and y in the arena; 0: none.
  std::uint64_t x_vector = 0, y_vector = 0;
  /// Or where x and y are in the memory that the client shares.
  std::optional<std::uint64_t> x_at, y_at;
  std::shared_ptr<ClientMemory> memory;  ///< kept as long as the ranks may use it
  Client client;
  Priority priority = Priority::normal;
  bool block = false;                            ///< one of them has several columns: a product of its own
  bool transpose = false;                        ///< with the transpose: a product of its own
  std::optional<service::BatchPart> batch = {};  ///< in place of a matrix: x is the body, y the result
  std::int64_t units = 0;                        ///< of a batch: its work (batch_pace.h)
  std::optional<std::uint64_t> generation = {};  ///< that the values must have
  /// All columns, one after another. The y that beta is for follows x, and becomes the result; then `y` is null.
  std::unique_ptr<ArenaSpace::Lease> x, y;
  double deadline = std::numeric_limits<double>::infinity();
  std::shared_ptr<LongWork> work;                   ///< in place of a product: its next slice
  double arrived = 0;                               ///< set by add()
  std::unique_ptr<Backlog::Entry> waits;            ///< set by admit(), until the product begins
  std::function<void(const MultiplyResult&)> done;  ///< empty once the client has left

  bool x_in_arena() const { return x_vector == 0 && !x_at; }
  bool y_in_arena() const { return y_vector == 0 && !y_at; }
  /// Where the result begins. REQUIRES: y_in_arena().
  std::uint64_t y_offset() const {
    if (y) return y->offset();
    return x->offset() + (x_in_arena() ? x_bytes * static_cast<std::uint64_t>(columns) : 0);
  }
};

class Dispatcher {
 public:
  Dispatcher(EventLoop& loop, Ranks& ranks, Matrices& matrices, double max_queue_seconds)
      : ranks_(ranks), matrices_(matrices), max_queue_seconds_(max_queue_seconds), deadlines_(loop) {}

  /// Called when the command is done, or with why it was not.
  using Finished = std::function<void(const std::vector<service::Answer>&, const std::optional<Problem>&)>;
  /// Puts a load, an unload, or the memory of a client in line. A descriptor that is not negative goes along; `finished`
  /// keeps it open.
  void command(decltype(service::Command::what) what, Finished finished, int descriptor = -1);

  /// Work that is ordered among products.
  struct Task {
    decltype(service::Command::what) what;
    std::vector<Claim> claims;
    std::function<std::optional<Problem>()> check;  ///< called when the task's turn has come; a problem is then its answer
    Finished finished;                              ///< keeps what the ranks need until it has been called
  };
  void add(Task task);

  /// Lets a request in before its body comes: from now on its columns count as waiting. Or says why not: it would wait too
  /// long (429), or its deadline has passed (504). May be called again when the body has told more.
  std::optional<Problem> admit(const Matrix& matrix, MultiplyRequest& request);
  /// Puts a request in line whose body is complete and returns its number; or the problem, if its deadline has passed. The
  /// request is then not kept. REQUIRES: it was let in.
  std::variant<std::uint64_t, Problem> add(Matrix& matrix, std::shared_ptr<MultiplyRequest> request);
  /// In place of a matrix: what batches of this type and number of columns wait for.
  Matrix& batches(ValueType type, std::int64_t columns, bool merges);
  /// Puts the next slice of long work in line.
  void add_slice(Matrix& matrix, const std::shared_ptr<LongWork>& work, const Client& client, Priority priority);
  /// The client has left. The arena keeps the vectors of a product that is under way.
  void cancel(std::uint64_t request);

  /// Takes over a matrix whose place another one has taken: what was asked for before is multiplied, then it is unloaded.
  void retire(std::unique_ptr<Matrix> matrix);
  /// The one with this number, also if another has taken its name; null if it is gone.
  Matrix* matrix(std::uint64_t number) const { return find(number); }
  /// True if nobody waits for the matrix, and the ranks do not multiply it.
  bool is_idle(const Matrix& matrix) const;

  /// Answers everyone who waits for the matrix.
  void fail(Matrix& matrix, const Problem& problem);
  /// The ranks are lost: answers everyone who waits for anything. Commands whose answer no longer comes are forgotten.
  void fail_all(const Problem& problem);

  /// Requests that wait for their product, by the number of the matrix, without slices of jobs.
  struct Waiting {
    std::map<std::uint64_t, std::size_t> products;
    std::size_t batches = 0;
  };
  Waiting waiting() const;
  /// Adds the requests that wait, also for batches and for matrices whose place another one has taken, by name of their
  /// client.
  void count_waiting(std::map<std::string, std::size_t>& by_client) const;

  /// Number of the matrix that the ranks load now; 0: none.
  std::uint64_t loading() const { return loading_; }

  /// Time in which the ranks have carried out commands.
  double busy_seconds() const { return busy_seconds_ + (busy_ ? now() - busy_since_ : 0); }
  std::function<void(const FinishedProduct&)> on_product;  ///< called after each, if it is set
  /// A product on the matrix of this name (empty: on none) lacked memory: Service::free_memory(). True: it is tried again.
  std::function<bool(const std::string& needed, const Problem& problem, bool& freed_solvers)> free_memory;

  /// Starts what can start.
  void pump();

 private:
  struct Line {
    decltype(service::Command::what) what;
    Finished finished;
    int descriptor = -1;
  };
  struct UnderWay {
    std::vector<std::shared_ptr<MultiplyRequest>> requests;
    std::vector<FairSchedule::Charge> charges;  ///< of each request
    std::int64_t columns = 0, width = 0;
    double started = 0, expected = 0;
    std::uint64_t generation = 0;
    bool freed_solvers = false;  ///< it lacked memory before, and idle solvers were freed
  };
  void set_busy(bool busy);
  void tell(const MultiplyResult& result, const UnderWay& done, double seconds) const;
  void start_load();
  void finish_load(const std::vector<service::Answer>& answers, const std::optional<Problem>& problem);
  void send_command();
  bool send_next();
  void send_task(Task task);
  void send(decltype(service::Command::what) what, Finished finished, int descriptor = -1);
  void send_product(Matrix& matrix);
  void send_product(Matrix& matrix, UnderWay product);
  void send_again();
  bool tries_again(const std::optional<Problem>& problem);
  bool multiplies(std::uint64_t matrix) const;
  void send_batches(Matrix& batches, UnderWay product);
  void send_slice(UnderWay slice);
  void finish_slice(const std::vector<service::Answer>& answers);
  UnderWay next_requests(Matrix& matrix, double time);
  void finish_product(const std::vector<service::Answer>& answers);
  double waiting_seconds(const Backlog::Work& work) const;
  double seconds_left() const;
  double seconds_of(const decltype(service::Command::what)& what) const;
  void watch_deadline(double deadline);
  void answer_late();
  /// Those of all names, and the retired ones.
  std::vector<Matrix*> all_matrices() const;
  Matrix* find(std::uint64_t matrix) const;
  void unload_retired();
  std::shared_ptr<MultiplyRequest> take(std::uint64_t request);
  static void reply(MultiplyRequest& request, const MultiplyResult& result);
  static MultiplyResult failed(const Problem& problem);

  Ranks& ranks_;
  Matrices& matrices_;
  std::vector<std::unique_ptr<Matrix>> retired_;
  std::map<std::uint64_t, std::unique_ptr<Matrix>> batches_;  ///< batches(), by id
  double max_queue_seconds_;
  BatchPace batch_pace_;
  Backlog backlog_;  ///< before the requests, which have its entries
  std::deque<Line> commands_;
  std::deque<Line> loads_;                  ///< that the ranks will carry out in the background
  std::optional<Finished> load_under_way_;  ///< of the load that they carry out so
  std::unordered_map<std::uint64_t, std::shared_ptr<MultiplyRequest>> requests_;  ///< all that wait
  std::deque<std::pair<std::uint64_t, Task>> tasks_;                              ///< by number
  FairSchedule schedule_;
  Claims claims_;                   ///< of all requests and tasks that wait
  std::uint64_t last_request_ = 0;  ///< numbers of requests and tasks rise in the order of arrival
  std::uint64_t loading_ = 0;
  bool busy_ = false;
  double busy_since_ = 0, busy_seconds_ = 0;
  std::optional<Finished> command_under_way_;
  double command_expected_ = 0;  ///< seconds of the command under way that is no product
  /// What commands of each kind take, as observed.
  std::array<double, std::variant_size_v<decltype(service::Command::what)>> command_seconds_{};
  UnderWay product_;   ///< that the ranks are at; no requests if there is none
  UnderWay again_;     ///< waits until memory is freed for it, before all others
  bool lone_ = false;  ///< the last product was for one request
  double next_deadline_ = std::numeric_limits<double>::infinity();  ///< at which the timer fires
  Alarm deadlines_;
};

}  // namespace shardmat::serve
