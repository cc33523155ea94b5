// What the service keeps on disk: which matrices to load again after a restart, its sockets, and what its workers print. One
// server at a time uses a state directory.
//
// Threads: one at a time.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernels/base/types.h"

namespace shardmat::serve {

/// $XDG_STATE_HOME/shardmat, else ~/.local/state/shardmat; empty if neither is known.
std::filesystem::path default_state_directory();

/// A matrix that is loaded again.
struct WantedMatrix {
  std::string name, source;
  ValueType type = ValueType::f64;
  std::string exchange = "auto";  ///< as chosen when it was first loaded: the bits of sums may depend on it
  std::string kernel = "auto";    ///< as asked for
  std::string sort = "auto";      ///< of the rows of a part: "auto" as the file says, "none" or "local"
  bool updatable = false;         ///< keeps memory for new values
  bool solvable = false;          ///< keeps what solvers need
  bool has_new_values = false;    ///< its values are no longer those of the file
  bool pinned = false;            ///< not unloaded to make room for others
  bool of_arrays = false;         ///< its file has the arrays of a client, and goes with the matrix
  std::string coordinates = {};   ///< file of the library with the coordinates of its nodes; empty: none
  bool operator==(const WantedMatrix&) const = default;
};

class StateDirectory {
 public:
  /// Makes the directory (0700) and locks it. Throws Error(resources) if another server has it, naming its process, or if
  /// it cannot be written.
  explicit StateDirectory(const std::filesystem::path& path);
  ~StateDirectory();
  StateDirectory(const StateDirectory&) = delete;
  StateDirectory& operator=(const StateDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// 16 hexadecimal digits that no other state directory has. Made with the first call. Throws Error(resources).
  std::string id() const;
  /// Takes what the workers print. It begins anew with each server, and when it is large; see keep_old_logs().
  std::filesystem::path worker_log() const { return path_ / "workers.log"; }
  /// An empty directory for one start of the workers. Those of earlier starts are removed.
  std::filesystem::path new_run_directory();

  /// Throws Error(input) for a file that write_matrices() did not write.
  std::vector<WantedMatrix> read_matrices() const;
  /// Throws Error(resources) if the disk is full.
  void write_matrices(const std::vector<WantedMatrix>& matrices) const;

 private:
  std::filesystem::path path_;
  int lock_ = -1;
  int runs_ = 0;
};

}  // namespace shardmat::serve
