// The life of the service: starts the ranks, loads what was loaded before, starts them again when one is lost, and ends.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "runtime/service/wire/arena.h"
#include "tools/serve/http/background.h"
#include "tools/serve/ranks/dispatcher.h"
#include "tools/serve/ranks/matrix.h"
#include "tools/serve/ranks/ranks.h"
#include "tools/serve/ranks/restart_policy.h"
#include "tools/serve/ranks/shared_cores.h"
#include "tools/serve/state/client_memories.h"
#include "tools/serve/state/numbers.h"
#include "tools/serve/state/saved_matrices.h"
#include "tools/serve/state/state_directory.h"
#include "tools/serve/state/token_memory.h"
#include "tools/serve/state/vectors.h"
#include "tools/serve/words/log.h"

namespace shardmat::serve {

struct ServiceOptions {
  std::vector<std::string> launcher, worker;  ///< as RankOptions
  double timeout = 5;
  int restarts = 5;
  double restart_delay = 0.5;
  double max_queue_seconds = 2;
  Merging merging = Merging::on;
};

/// Something that happened: "rank_lost", "ready" (all ranks and matrices are there), "matrix" or "job" with its new state.
struct ServiceEvent {
  std::string type;
  std::string matrix, state, reason;
  int rank = -1;
  std::optional<ProcessEnd> end = {};  ///< of the rank's process, if it is known
  /// Of "job": its id, kind and owner, and how far it came.
  std::string job = {}, kind = {}, owner = {};
  std::int64_t iteration = 0;
  double residual = 0;
  double seconds = 0;  ///< since the job arrived
};

class Service {
 public:
  Service(EventLoop& loop, const ServiceOptions& options, StateDirectory& state, const service::Arena& arena);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Throws Error if the ranks cannot be started or the state file cannot be read.
  void start();
  /// Says that it is not ready any more, and still takes new work: those who ask go elsewhere before drain().
  void leave() { leaving_ = true; }
  /// Refuses everything new. Requests that wait are served.
  void drain() { leaving_ = draining_ = true; }
  /// Ends the ranks; then the event loop stops.
  void finish();
  /// What the process should return once the event loop has stopped.
  int exit_code() const { return exit_code_; }

  /// Why the ranks cannot begin work now; nothing while they can.
  std::optional<Problem> why_not_running() const;
  /// The same of work that may have begun: code `rank_lost` in place of `restarting`.
  std::optional<Problem> why_cut_off() const;
  /// As why_not_running(), and also after drain(): the service takes no new work then, but finishes what it has.
  std::optional<Problem> why_no_new_work() const;
  /// As why_cut_off(), and also after leave(): clients should send new work to another service then.
  std::optional<Problem> why_not_ready() const;
  /// As why_not_running(), and also after leave(): the service may end before work that no request waits for.
  std::optional<Problem> why_no_new_jobs() const;

  using Loaded = std::function<void(const std::optional<Problem>&)>;
  /// Begins to load a matrix, and returns a problem if it cannot begin. `loaded` is called when it is ready or has failed. A
  /// matrix that is loaded already keeps its name until the new one takes its place. Where memory is missing, matrices that
  /// are idle and not pinned are unloaded.
  std::optional<Problem> load(const WantedMatrix& wanted, Loaded loaded);
  /// The name is free at once; `unloaded` is called when the ranks have freed the memory.
  std::optional<Problem> unload(const std::string& name, Loaded unloaded);

  /// Where the ranks lacked memory for work on the matrix of this name (empty: on none): frees the solvers that no job uses,
  /// unless they were freed for it before; then unloads matrices that are idle and not pinned. True: the work may be tried
  /// again. `unloads`: false: matrices stay.
  bool free_memory(const std::string& needed, const Problem& problem, bool& freed_solvers, bool unloads = true);
  /// Puts a task in line that takes memory of the ranks for this matrix (empty: for none). It is tried again as long as
  /// free_memory() says so. `freed_solvers`: as there.
  void add_with_memory(const std::string& matrix, Dispatcher::Task task, bool freed_solvers = false);

  /// `done` is called once the state file has it, or could not be written. Returns 404 if there is no such matrix.
  std::optional<Problem> pin(const std::string& name, bool pinned, const Loaded& done);

  /// New values of a matrix are about to be stored: from now on it has lost its values after a restart of the ranks. Returns
  /// a problem if this cannot be written down.
  std::optional<Problem> begin_new_values(Matrix& matrix);
  /// The ranks have answered. `generation` is that of the new values, `had_new_values` what the matrix had before.
  void end_new_values(Matrix& matrix, std::uint64_t generation, bool had_new_values, const std::optional<Problem>& problem);

  /// Makes memory for a client, which the ranks map, and calls `shared` with it or with why there is none.
  using Shared = std::function<void(std::variant<Problem, std::shared_ptr<ClientMemory>>)>;
  void share_memory(std::uint64_t bytes, const Shared& shared);
  const ClientMemories& memories() const { return memories_; }

  /// True if the state file has the matrix as it is now, or does not have it if there is none that stays.
  bool is_saved(const std::string& name) const;
  /// Why the state file could not be written when that was last tried; empty if it could.
  const std::string& why_unsaved() const { return saved_.why_unsaved(); }
  /// Failed attempts to write the state file.
  std::uint64_t failed_saves() const { return saved_.failed_attempts(); }

  /// When ranks were lost the last time.
  struct PastLoss {
    double time = 0;  ///< seconds since 1970
    RankLoss loss;
  };
  const std::optional<PastLoss>& last_loss() const { return last_loss_; }

  /// A number for a request that brings new values.
  std::uint64_t new_upload() { return ++last_upload_; }
  Numbers& numbers() { return numbers_; }
  TokenMemory& token_memory() { return token_memory_; }
  const TokenMemory& token_memory() const { return token_memory_; }
  Background& background() { return background_; }
  Vectors& vectors() { return vectors_; }
  const Vectors& vectors() const { return vectors_; }
  /// The ranks drop the vector once earlier work is done that uses it; then `dropped` is called. Its id is gone at once.
  void drop_vector(std::uint64_t number, std::function<void()> dropped);
  /// Drops the vectors of owners that are no longer.
  void drop_unowned_vectors(const std::function<bool(const std::string& owner)>& exists);
  std::function<void(const ServiceEvent&)> on_event;                ///< called after each, if it is set
  std::function<void(const std::string& source)> on_unused_arrays;  ///< a file of arrays whose matrix is gone
  /// True for a matrix that must not be evicted, because a job waits for it.
  std::function<bool(const std::string& matrix)> is_wanted;
  /// Adds the jobs that have not begun, by name of their client.
  std::function<void(std::map<std::string, std::size_t>& by_client)> count_queued_jobs;
  /// Gives new ranks, which have loaded the matrices, what is kept of vectors of ranks that were lost; then calls `done`.
  std::function<void(const std::function<void()>& done)> restore_vectors;
  bool merges() const { return merging_ == Merging::on; }

  Dispatcher& dispatcher() { return dispatcher_; }
  const Dispatcher& dispatcher() const { return dispatcher_; }
  const Matrices& matrices() const { return matrices_; }
  /// Those from which a matrix has been loaded, is being loaded, or is loaded again after a restart.
  std::set<std::string> sources() const;
  /// Null if there is no such matrix.
  Matrix* find(const std::string& name) const;
  ArenaSpace& space() { return space_; }
  const ArenaSpace& space() const { return space_; }
  const service::Arena& arena() const { return arena_; }
  const Ranks& ranks() const { return ranks_; }
  /// Cores that the ranks share with those of other services, as they were seconds ago.
  const SharedCores& cores_in_use() const;
  int restarts() const { return all_restarts_; }

 private:
  void start_ranks();
  void on_ready();
  void on_lost(const RankLoss& loss);
  void on_gone();
  void reload();
  void become_ready();
  void attach(const std::shared_ptr<ClientMemory>& memory, Loaded attached);
  void send_load(Matrix& matrix, Loaded loaded, bool freed_solvers = false);
  /// The matrix with this number that has the name, or is to have it.
  Matrix* find(const std::string& name, std::uint64_t id) const;
  bool is_next(const Matrix& matrix) const;
  std::vector<Matrix*> evictable(const std::string& needed) const;
  bool make_room(const std::string& needed, const std::vector<std::int64_t>& missing);
  bool drop_solvers();
  Problem no_room(Problem problem, const Matrix& incoming) const;
  void replace(std::unique_ptr<Matrix>& place);
  void take_loaded(Matrix& matrix, const std::vector<service::Answer>& answers, const Loaded& loaded);
  void finish_load(Matrix& matrix, const std::vector<service::Answer>& answers);
  void refuse_load(Matrix& matrix, const Problem& problem);
  void fail(Matrix& matrix, const std::string& reason);
  void drop_failed();
  void lose_load(Matrix& matrix, const RankLoss& loss);
  void drop_arrays(const WantedMatrix& gone);
  void explain_last_loss();
  std::vector<WantedMatrix> kept_matrices() const;
  void tell(const ServiceEvent& event) const;
  void tell(const Matrix& matrix) const;
  void end(int exit_code);

  EventLoop& loop_;
  StateDirectory& state_;
  const service::Arena& arena_;
  TokenMemory token_memory_;  ///< before what is charged
  ArenaSpace space_;
  ClientMemories memories_;  ///< before the dispatcher, whose requests keep some
  Numbers numbers_;
  Vectors vectors_;
  Matrices matrices_;
  Ranks ranks_;
  mutable SharedCores shared_cores_;
  mutable double looked_at_cores_ = -1e9;
  Dispatcher dispatcher_;
  Merging merging_;
  RestartPolicy policy_;
  Alarm restart_;
  Background background_;  ///< after what its work keeps
  Alarm drop_later_;
  SavedMatrices saved_;           ///< after the matrices, which it asks for
  std::optional<RankLoss> loss_;  ///< why the ranks are being started again
  std::uint64_t last_matrix_ = 0, last_upload_ = 0;
  double started_ = 0, start_seconds_ = 2;  ///< of the last start with its loads; a guess before the first
  std::size_t reloads_ = 0;                 ///< matrices still to be loaded before the service is ready
  bool ready_ = false, was_ready_ = false, leaving_ = false, draining_ = false, finishing_ = false;
  std::optional<PastLoss> last_loss_;
  std::uint64_t losses_ = 0;  ///< of ranks
  int all_restarts_ = 0, exit_code_ = 0;
};

}  // namespace shardmat::serve
