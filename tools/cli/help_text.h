// How --help is set: wrapped at the terminal's width, with the choices and the default of every option.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/types.h"

namespace shardmat::tools {

/// Columns of the terminal: the variable COLUMNS, else what the terminal of standard output says, else 80. At least 40.
std::size_t help_width();

/// Breaks lines of more than `width` characters between words. Later lines of a table row ("  name   text") begin under its
/// text, those of other lines under their first word. A command (shardmat …, mpirun …) is continued with a backslash, and
/// its comment stands above it.
std::string wrapped(std::string_view text, std::size_t width);

/// "\nTITLE: a, b, c", to be added to an option's description: a line of its own.
std::string choices(std::string_view title, const std::vector<std::string>& names);

/// The names in a list of entries that have one, those in `before` first.
template <class List>
std::vector<std::string> names_of(const List& list, std::vector<std::string> before = {}) {
  for (const auto& entry : list) before.emplace_back(entry.name);
  return before;
}

/// A line of choices for each backend that has a kernel in the list; `when` is put behind "Choices", as " with --rhs".
template <class List>
std::string kernel_choices(const List& list, const std::string& when = "") {
  std::string lines;
  for (const Backend backend : {Backend::cuda, Backend::host}) {
    std::vector<std::string> here{"auto"};
    for (const auto& kernel : list)
      if (kernel.backend == backend) here.emplace_back(kernel.name);
    if (here.size() > 1)
      lines += choices(fmt::format("Choices on {}{}", backend == Backend::cuda ? "GPUs" : "the host", when), here);
  }
  return lines;
}

}  // namespace shardmat::tools
