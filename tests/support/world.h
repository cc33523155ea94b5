// The ranks that a test program with MPI runs on.
#pragma once

#include <string>

#include "comm/communicator.h"
#include "tests/support/setting_of.h"

namespace shardmat {

/// All ranks; tests that break a communicator duplicate it first.
Communicator& world();

/// Why not every rank can have a GPU of its own, on however many hosts they are; empty if they can. Collective. Throws where
/// hosts are pretended, as that is done for the sake of GPUs.
std::string why_no_gpus();

/// The message of the Error of this kind that f() throws; says so if there is none or another.
template <class F>
std::string error_of(ErrorKind kind, F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind() == kind ? std::string(e.what()) : "another kind of error: " + std::string(e.what());
  }
  return "no error";
}

}  // namespace shardmat
