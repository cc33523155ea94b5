// Integers of files become f64, which holds all of them up to 2^53 and rounds most larger ones. A rounded value is refused.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace shardmat {

/// True if f64 holds the number without rounding.
template <class Number>
constexpr bool is_exact_in_f64(Number number) {
  if constexpr (std::is_integral_v<Number> && sizeof(Number) == 8) {
    const auto bits = static_cast<std::uint64_t>(number);
    const std::uint64_t size = number < 0 ? 0 - bits : bits;
    return std::bit_width(size) - (size == 0 ? 0 : std::countr_zero(size)) <= 53;
  } else {
    return true;
  }
}

/// For messages, behind the number.
constexpr const char* kNotExact = "is an integer beyond 2^53 that a 64-bit floating point number cannot hold exactly";

}  // namespace shardmat
