// What every function of the C interfaces does with errors: no exception leaves it, a status and a message of the thread do.
//
// Threads: any thread, several at a time; the message belongs to the calling thread.
#pragma once

#include <exception>

#include "kernels/base/types.h"

namespace shardmat {

/// Keeps the message of the error for shardmat_last_error() and returns its status: the number of its ErrorKind.
int keep_error(const std::exception_ptr& error) noexcept;

/// The type of values that SHARDMAT_F32 … name. Throws Error(usage) for another number; `of`: "the batch".
ValueType value_type_of_c(int type, const char* of);

/// Keeps another message for shardmat_last_error(); returns `status`.
int keep_message(int status, const char* message) noexcept;

/// Runs `work`; 0, or what keep_error() returns.
template <class F>
int c_status(F&& work) noexcept {
  try {
    work();
    return 0;
  } catch (...) {
    return keep_error(std::current_exception());
  }
}

/// The last message of this thread; "" if there was no error. Valid until the next error of this thread.
const char* kept_error() noexcept;

}  // namespace shardmat
