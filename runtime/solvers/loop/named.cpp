#include "runtime/solvers/loop/named.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/base/error.h"
#include "kernels/base/text.h"

namespace shardmat {

void refuse_name(std::string_view what, std::string_view given, const std::vector<std::string>& names,
                 const std::string& setting) {
  const std::string near = nearest(given, names);
  throw Error(ErrorKind::usage,
              fmt::format("there is no {} \"{}\"{}; choose among {}", what, given,
                          near.empty() ? "" : fmt::format(" (did you mean {}?)", near), fmt::join(names, ", ")),
              setting);
}

}  // namespace shardmat
