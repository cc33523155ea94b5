#include "tools/serve/state/numbers.h"

#include <fmt/format.h>

#include <fstream>
#include <string>

#include "kernels/base/error.h"
#include "tools/serve/state/replace_file.h"

namespace shardmat::serve {
namespace {

constexpr std::uint64_t kAtATime = 1000;

}  // namespace

Numbers::Numbers(const std::filesystem::path& file) : file_(file) {
  if (!std::filesystem::exists(file)) return;
  std::ifstream stream(file);
  if (!(stream >> first_) || first_ == 0)
    throw Error(ErrorKind::input,
                fmt::format("{}: this is not what the service wrote; write a number into it that is larger than every "
                            "generation and vector so far",
                            file.string()));
  next_ = reserved_ = first_;
}

std::uint64_t Numbers::next() {
  if (next_ == reserved_) reserve();
  return next_++;
}

void Numbers::reserve() {
  if (const auto error = replace_file(file_, std::to_string(reserved_ + kAtATime) + "\n"))
    throw Error(ErrorKind::resources,
                fmt::format("{}: {}{}", file_.string(), error.message(),
                            error == std::errc::no_space_on_device ? "; make room on the disk of the state directory" : ""),
                "state");
  reserved_ += kAtATime;
}

}  // namespace shardmat::serve
