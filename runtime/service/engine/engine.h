// A rank of the service: carries out the front end's commands one after another until it is told to end. On the host a
// matrix is loaded on a second thread meanwhile (background_load.h).
//
// An idle engine waits for its socket and makes no MPI call.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/context/context.h"

namespace shardmat::service {

struct EngineOptions {
  std::string control;            ///< the front end's socket. Its directory also takes links to files that are being read
  std::filesystem::path library;  ///< see Library
};

/// Collective: all ranks get the same commands. Returns when the front end says so. If the front end vanishes, the process
/// ends. Commands that fail alike on all ranks are answered as failed; an error of one rank alone is thrown.
void run_engine(Context& context, const EngineOptions& options);

}  // namespace shardmat::service
