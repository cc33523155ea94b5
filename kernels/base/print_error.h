// Messages on standard error, which may be closed or on a full disk: then they are lost, and nothing else.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace shardmat {

/// As fmt::print(stderr, …), which throws if it cannot write: in a handler of errors that would end the program by SIGABRT.
template <class... T>
void print_error(fmt::format_string<T...> format, T&&... arguments) {
  const std::string text = fmt::format(format, std::forward<T>(arguments)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace shardmat
