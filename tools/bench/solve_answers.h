// Who answers in `bench solve`: our solvers, those of other libraries, a loop of library calls on a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/context/context.h"
#include "tools/bench/peer_program.h"
#include "tools/bench/solve_system.h"

namespace shardmat::tools {

/// How a system is solved.
struct SolveRequest {
  std::string solver = "cg";
  double rtol = 1e-8;
  std::int64_t most = 10'000;  ///< iterations
  bool cpu_clock = false;      ///< CPU time of a single thread, not wall time
};

/// One answer to A·x = 1, from nothing. Times in seconds.
struct TimedAnswer {
  double set_up = 0, solve = 0;
  double refresh = 0;  ///< set up again for new values of the same pattern
  std::int64_t iterations = 0;
  std::int64_t bytes = 0;  ///< memory that the solver keeps beside A, of all ranks; 0: not known
  double residual = 0;     ///< ‖b − A·x‖ / ‖b‖ of the x that it gave; the worst one if there are two
  bool claims = true;      ///< it says that it converged

  double whole() const { return set_up + solve; }
};

class Solving {
 public:
  virtual ~Solving() = default;
  /// Answers once. `again`: also solves after the refresh, which is not timed. Nothing: it does not take this system, and
  /// refused() says why. Collective.
  virtual std::optional<TimedAnswer> answer(bool again) = 0;

  const std::string& name() const { return name_; }
  const std::string& refused() const { return refused_; }
  /// Which preconditioner of ours it has, or is compared with.
  const std::string& preconditioner() const { return preconditioner_; }
  bool own() const { return own_; }
  /// How it is set: levels, thresholds. Known after an answer.
  const std::string& detail() const { return detail_; }
  /// On rank 0: ‖b − A·x‖ / ‖b‖ as the method updates it, at the start and after each iteration of the first solve of the
  /// last answer; empty if it is not known.
  const std::vector<double>& history() const { return history_; }

 protected:
  Solving(std::string name, std::string preconditioner, bool own)
      : name_(std::move(name)), preconditioner_(std::move(preconditioner)), own_(own) {}

  std::string refused_, detail_;
  std::vector<double> history_;

 private:
  std::string name_, preconditioner_;
  bool own_;
};

/// The system and the request live as long as what these return.
std::unique_ptr<Solving> make_own_solving(SolveSystem& system, const SolveRequest& request,
                                          const std::string& preconditioner);
/// `process`: on rank 0; other ranks pass null. REQUIRES: the system is shared, and open in the process.
std::unique_ptr<Solving> make_peer_solving(SolveSystem& system, const SolveRequest& request, const PeerName& peer,
                                           PeerProgram* process);
/// Null if this program was built without cuBLAS, or on the host. Its set-up is not timed, and it has no refresh.
std::unique_ptr<Solving> make_textbook_solving(SolveSystem& system, const SolveRequest& request, const std::string& matrix,
                                               const std::string& preconditioner);

}  // namespace shardmat::tools
