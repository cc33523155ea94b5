// Which setting an error is about.
#pragma once

#include <string>

#include "kernels/base/error.h"

namespace shardmat {

/// The setting that the Error of f() names.
template <class F>
std::string setting_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.setting();
  }
  return "no error";
}

}  // namespace shardmat
