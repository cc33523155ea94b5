// The kinds of jobs that the ranks carry out. A new kind is a file in jobs/ and a line in kinds_of_jobs().
//
// Threads: a job's work runs on a thread of its own (running_job.h).
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/base/error.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/service/engine/resident_matrix.h"
#include "runtime/service/wire/command.h"

namespace shardmat::service {

class RunningJob;

struct JobInputs {
  std::string settings;  ///< "solver=cg rtol=1e-10"
  ResidentMatrix& matrix;
  ResidentMatrix* mass = nullptr;
  std::int64_t columns = 1;  ///< of X
  std::optional<DistributedVector> b, guess;
};

struct JobResult {
  std::vector<JobColumn> columns;  ///< of X
  std::string facts;               ///< Progress::facts
};

class JobWork {
 public:
  virtual ~JobWork() = default;
  /// All of it: sets up, calls RunningJob::set_up() once, iterates and pauses. Collective, and throws as collective calls
  /// do. No message between ranks is under way where it pauses.
  virtual JobResult run(RunningJob& job) = 0;
  /// As far as it came, complete once the stream has passed; null: there is nothing yet. Between turns.
  virtual const DistributedVector* x() const = 0;
  /// True if RunningJob::ends() ends it within an iteration, and more than X is worth keeping then: its solver, say.
  virtual bool ends_soon() const { return false; }
};

struct KindOfJob {
  std::string name;
  std::vector<std::string> settings;  ///< their names
  std::unique_ptr<JobWork> (*make)(JobInputs inputs);
};

KindOfJob solve_kind();
KindOfJob eigen_kind();
KindOfJob pagerank_kind();

std::vector<KindOfJob> kinds_of_jobs();

/// The entries of "count=6 shift=2"; calls take(name, value). Throws Error(usage) for an entry without '='.
void for_settings(const std::string& settings,
                  const std::function<void(const std::string& name, const std::string& value)>& take);

/// The value of a setting; throws Error(usage) for any other text.
template <class T>
T number_setting(const std::string& name, const std::string& text, T least) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least))
    throw Error(ErrorKind::usage,
                fmt::format("{} must be a {}number, not \"{}\"", name, std::is_integral_v<T> ? "whole " : "", text), name);
  return value;
}
bool flag_setting(const std::string& name, const std::string& text);

}  // namespace shardmat::service
