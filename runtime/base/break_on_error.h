// Errors of one rank that the other ranks do not know.
#pragma once

#include <exception>
#include <utility>

#include "comm/communicator.h"

namespace shardmat {

/// Returns work(). If it throws an error that the ranks did not agree on, marks the communicator broken before the error
/// goes on: the other ranks do not know it, and nothing that is released collectively later may wait for them.
template <class F>
decltype(auto) break_on_error(Communicator& ranks, F&& work) {
  try {
    return std::forward<F>(work)();
  } catch (const AgreedError&) {
    throw;
  } catch (const std::exception& e) {
    ranks.mark_broken(e.what());
    throw;
  }
}

}  // namespace shardmat
