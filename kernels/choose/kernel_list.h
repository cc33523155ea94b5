// Finds a kernel in a list by name, with a helpful error.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/base/types.h"

namespace shardmat {

/// `kind` says in messages what the list holds. For an unknown name throws Error(usage), which suggests the nearest name or
/// says that the kernel runs on another backend.
template <class Kernels>
const auto& find_in(const Kernels& kernels, std::string_view kind, std::string_view name, Backend backend) {
  std::vector<std::string> here, elsewhere;
  for (const auto& kernel : kernels) {
    if (kernel.name == name && kernel.backend == backend) return kernel;
    (kernel.backend == backend ? here : elsewhere).emplace_back(kernel.name);
  }
  const std::string_view place = shardmat::name(backend);
  if (std::find(elsewhere.begin(), elsewhere.end(), name) != elsewhere.end())
    throw Error(ErrorKind::usage,
                fmt::format("{} '{}' does not run on the {} backend; there are {}", kind, name, place, join_choices(here)));
  const std::string near = nearest(name, here);
  throw Error(ErrorKind::usage,
              fmt::format("there is no {} '{}' on the {} backend{}; there are {}", kind, name, place,
                          near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near), join_choices(here)));
}

}  // namespace shardmat
