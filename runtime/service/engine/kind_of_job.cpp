#include "runtime/service/engine/kind_of_job.h"

#include <fmt/format.h>

#include <sstream>

#include "kernels/base/error.h"

namespace shardmat::service {

std::vector<KindOfJob> kinds_of_jobs() { return {solve_kind(), eigen_kind(), pagerank_kind()}; }

void for_settings(const std::string& settings,
                  const std::function<void(const std::string& name, const std::string& value)>& take) {
  std::istringstream words(settings);
  for (std::string word; words >> word;) {
    const std::size_t sign = word.find('=');
    if (sign == std::string::npos) throw Error(ErrorKind::usage, fmt::format("\"{}\" is not of the form name=value", word));
    take(word.substr(0, sign), word.substr(sign + 1));
  }
}

bool flag_setting(const std::string& name, const std::string& text) {
  if (text != "0" && text != "1") throw Error(ErrorKind::usage, fmt::format("{} must be 0 or 1", name), name);
  return text == "1";
}

}  // namespace shardmat::service
