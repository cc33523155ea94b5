// A matrix of the service, as the front end knows it: its state, and the requests that wait for its products.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/service/wire/command.h"
#include "tools/serve/ranks/batching.h"
#include "tools/serve/ranks/held_solvers.h"
#include "tools/serve/ranks/request_queue.h"
#include "tools/serve/state/state_directory.h"

namespace shardmat::serve {

enum class MatrixState {
  loading,
  ready,
  failed,
  unloaded,     ///< it was evicted: the ranks needed its memory for another matrix
  values_lost,  ///< it has the values of its file, but was given others before the ranks were started again
};

constexpr const char* state_name(MatrixState state) {
  constexpr const char* kNames[] = {"loading", "ready", "failed", "unloaded", "values_lost"};
  return kNames[static_cast<int>(state)];
}

struct Matrix {
  std::uint64_t id = 0;  ///< never used again for another matrix
  WantedMatrix wanted;
  MatrixState state = MatrixState::loading;
  std::string reason;                  ///< why it cannot be multiplied
  std::vector<service::Loaded> ranks;  ///< by rank, while it is ready
  bool kept = false;                   ///< in the state file: it was loaded once
  std::uint64_t generation = 0;        ///< of its values: another one for each load and for all new values
  std::uint64_t upload = 0;            ///< number of the request whose new values are coming; 0: none
  double last_used = 0;                ///< when it was loaded or last multiplied
  double failed_at = 0;                ///< when its load failed
  int losses = 0;                      ///< of ranks while it was being loaded, since it was loaded last
  int jobs = 0;                        ///< that the ranks have begun, or are about to
  HeldSolvers solvers;
  std::shared_ptr<const service::Density> density;  ///< of all ranks; null: nobody has asked for it
  WidthTable widths;
  RequestQueue queue;
  std::unique_ptr<Matrix> next;  ///< is being loaded to take its place, or could not be

  bool is_loaded() const { return state == MatrixState::ready || state == MatrixState::values_lost; }

  const service::Loaded& shape() const { return ranks.front(); }
};

using Matrices = std::map<std::string, std::unique_ptr<Matrix>>;  ///< by name

}  // namespace shardmat::serve
