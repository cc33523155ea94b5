#include "kernels/batched/c_status.h"

#include <new>
#include <string>

#include "kernels/base/error.h"
#include "kernels/batched/shardmat_batched.h"

namespace shardmat {
namespace {

thread_local std::string last_error;
thread_local const char* no_room = nullptr;  // where the message itself found no memory

int keep(ErrorKind kind, const char* message) noexcept { return keep_message(static_cast<int>(kind), message); }

}  // namespace

ValueType value_type_of_c(int type, const char* of) {
  switch (type) {
    case SHARDMAT_F32:
      return ValueType::f32;
    case SHARDMAT_F64:
      return ValueType::f64;
    case SHARDMAT_F16:
      return ValueType::f16;
    case SHARDMAT_BF16:
      return ValueType::bf16;
    default:
      throw Error(ErrorKind::usage, std::string("the type of ") + of + " is " + std::to_string(type) +
                                        "; it must be one of SHARDMAT_F32, F64, F16 and BF16");
  }
}

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
