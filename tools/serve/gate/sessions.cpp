#include "tools/serve/gate/sessions.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/base/error.h"

namespace shardmat::serve {
namespace {

template <std::size_t bytes>
std::string random_digits() {
  std::array<unsigned char, bytes> random;
  if (getrandom(random.data(), bytes, 0) != static_cast<ssize_t>(bytes))
    throw Error(ErrorKind::resources, "there are no random numbers for the sessions of the page");
  std::string digits;
  for (const unsigned char byte : random) digits += fmt::format("{:02x}", byte);
  return digits;
}

}  // namespace

Sessions::Sessions() : cookie_name_("shardmat-" + random_digits<4>()) {}

std::string Sessions::open(std::shared_ptr<const Rights> rights, double now, double seconds) {
  std::erase_if(sessions_, [&](const auto& one) { return one.second->is_over(now); });
  if (sessions_.size() >= kMost) {
    const auto ends_first = std::min_element(sessions_.begin(), sessions_.end(),
                                             [](const auto& a, const auto& b) { return a.second->ends < b.second->ends; });
    ends_first->second->closed = true;
    sessions_.erase(ends_first);
  }
  std::string number = random_digits<32>();
  sessions_[sha256(number)] =
      std::make_shared<Session>(Session{std::move(rights), now + std::min(seconds, double{kSeconds})});
  return number;
}

Sessions::ById::iterator Sessions::find(std::string_view cookies) {
  const std::string_view number = cookie_of(cookies, cookie_name_);
  return number.empty() ? sessions_.end() : sessions_.find(sha256(number));
}

std::shared_ptr<const Session> Sessions::find(std::string_view cookies, double now) {
  const auto found = find(cookies);
  return found == sessions_.end() || found->second->is_over(now) ? nullptr : found->second;
}

void Sessions::close(std::string_view cookies) {
  const auto found = find(cookies);
  if (found == sessions_.end()) return;
  found->second->closed = true;
  sessions_.erase(found);
}

std::string_view cookie_of(std::string_view field, std::string_view name) {
  while (!field.empty()) {
    const std::size_t end = std::min(field.find(';'), field.size());
    std::string_view one = field.substr(0, end);
    field.remove_prefix(std::min(end + 1, field.size()));
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    if (one.size() > name.size() && one.substr(0, name.size()) == name && one[name.size()] == '=')
      return one.substr(name.size() + 1);
  }
  return {};
}

}  // namespace shardmat::serve
