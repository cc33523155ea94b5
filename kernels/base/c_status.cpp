#include "kernels/base/c_status.h"

#include <new>
#include <string>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

thread_local std::string last_error;
thread_local const char* no_room = nullptr;  // where the message itself found no memory

int keep(ErrorKind kind, const char* message) noexcept { return keep_message(static_cast<int>(kind), message); }

}  // namespace

int keep_message(int status, const char* message) noexcept {
  no_room = nullptr;
  try {
    last_error = message;
  } catch (...) {
    no_room = "out of host memory";
  }
  return status;
}

int keep_error(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return keep(e.kind(), e.what());
  } catch (const std::bad_alloc&) {
    return keep(ErrorKind::resources, "out of host memory");
  } catch (const std::exception& e) {
    return keep(ErrorKind::internal, e.what());
  } catch (...) {
    return keep(ErrorKind::internal, "unknown error");
  }
}

const char* kept_error() noexcept { return no_room != nullptr ? no_room : last_error.c_str(); }

}  // namespace shardmat
