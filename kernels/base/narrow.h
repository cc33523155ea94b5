// Checked integer narrowing: the only way from a 64-bit size to a smaller one.
#pragma once

#include <string>
#include <type_traits>

#include "kernels/base/error.h"

namespace shardmat {

/// Converts between integer types; throws Error(internal) naming `what` if the value does not fit.
template <class To, class From>
constexpr To narrow(From value, const char* what) {
  static_assert(std::is_integral_v<To> && std::is_integral_v<From>);
  const To result = static_cast<To>(value);
  if (static_cast<From>(result) != value || ((result < To{}) != (value < From{})))
    throw Error(ErrorKind::internal, std::string(what) + " = " + std::to_string(value) + " does not fit its type");
  return result;
}

}  // namespace shardmat
