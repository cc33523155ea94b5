// Formats of Fortran for fixed fields of one kind, as Harwell-Boeing files name them: (16I5), (1P,4E20.12), (1X,8I9),
// (3(1PE25.16)), (4ES20.12).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace shardmat::harwell_boeing {

/// Where the fields of a line are. If a format has groups, the last one describes the lines behind the first.
struct Fields {
  std::vector<int> first, next;  ///< columns from 0 where the fields begin, of the first line and of the others
  int width = 0;                 ///< characters of a field
  int decimals = 0;              ///< digits behind the point where a number has no point
  int scale = 0;                 ///< Fortran's P: numbers without exponent are divided by 10 so many times
  bool whole = false;            ///< I
  bool gaps = false;             ///< X leaves out columns

  /// Lines that so many fields take.
  std::int64_t lines(std::int64_t fields) const;
  const std::vector<int>& of_line(std::int64_t line) const { return line == 0 ? first : next; }
};

/// Reads a format with the descriptors I, E, D, F, G, ES, EN, X and P. Nothing for others, for fields of several kinds, and
/// for formats of more than one line.
std::optional<Fields> parse_format(std::string_view text);

}  // namespace shardmat::harwell_boeing
