#include "runtime/matrix/matrix_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/text.h"

namespace shardmat {

LocalSort parse_local_sort(std::string_view word) {
  if (word == "auto") return LocalSort::as_file;
  if (word == "none") return LocalSort::none;
  if (word == "local") return LocalSort::by_length;
  throw Error(ErrorKind::usage,
              fmt::format("there is no order \"{}\" of the rows of a part; choose auto, none or local", word), "sort");
}

void require_updatable(Values values) {
  if (values == Values::updatable) return;
  throw Error(ErrorKind::usage,
              "the matrix was made without room for new values; make it anew as an updatable one (Python: updatable=True; "
              "C, Fortran: updatable = 1 in the options; C++: Values::updatable)");
}

void require_same_columns(std::span<const std::int64_t> of_ranks) {
  if (of_ranks.empty()) return;
  const auto [least, most] = std::minmax_element(of_ranks.begin(), of_ranks.end());
  if (*least != *most)
    throw Error(ErrorKind::usage,
                fmt::format("one rank asks for a product of {} columns, another for {}; give one number", *least, *most),
                "columns");
}

void require_column_block(std::int64_t all, std::int64_t some) {
  if (some == 0) return;
  if (all == 1)
    throw Error(ErrorKind::usage, "blocks of columns are for several right-hand sides, and there is one",
                "right_hand_sides");
  if (some > 1 && all % some == 0) return;
  std::vector<std::string> choices;
  for (std::int64_t width = 2; width <= all; ++width)
    if (all % width == 0) choices.push_back(std::to_string(width));
  throw Error(ErrorKind::usage,
              fmt::format("blocks of {} columns do not divide the {} right-hand sides into blocks of two or more; choose {}",
                          some, all, join_choices(choices)),
              "column_block");
}

}  // namespace shardmat
