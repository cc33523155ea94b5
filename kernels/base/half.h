// 16-bit floating-point values, for storage only. Products read them and compute in f32.
// Ownership: values. Nothing is collective.
// Threads: values; any thread.
#pragma once

#include <bit>
#include <cstdint>

namespace shardmat {

namespace half {

/// Rounds to the nearest value with these numbers of exponent and fraction bits, ties to even, in IEEE 754 encoding. Values
/// beyond the largest become infinite; NaN stays NaN.
template <int kExponentBits, int kFractionBits>
constexpr std::uint16_t encode(double value) {
  constexpr int kBias = (1 << (kExponentBits - 1)) - 1, kDropped = 52 - kFractionBits;
  constexpr std::uint64_t kInfinity = ((std::uint64_t{1} << kExponentBits) - 1) << kFractionBits;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t sign = bits >> 63 << (kExponentBits + kFractionBits);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  if (exponent == 0x7ff)
    return static_cast<std::uint16_t>(sign | kInfinity | (fraction != 0 ? std::uint64_t{1} << (kFractionBits - 1) : 0));
  const int wanted = exponent - 1023 + kBias;
  if (wanted > 2 * kBias) return static_cast<std::uint16_t>(sign | kInfinity);
  // The exponent stands above the fraction, so that a carry out of the fraction increments it. Below the least exponent
  // (subnormal values) the fraction is shifted right, with its leading 1 written out.
  const int below = wanted >= 1 ? 0 : 1 - wanted;
  if (below > kFractionBits + 1) return static_cast<std::uint16_t>(sign);
  const std::uint64_t all =
      below == 0 ? static_cast<std::uint64_t>(wanted) << 52 | fraction : fraction | std::uint64_t{1} << 52;
  const int drop = kDropped + below;
  const std::uint64_t kept = all >> drop, rest = all & ((std::uint64_t{1} << drop) - 1),
                      tie = std::uint64_t{1} << (drop - 1);
  const std::uint64_t rounded = kept + (rest > tie || (rest == tie && (kept & 1) != 0) ? 1 : 0);
  return static_cast<std::uint16_t>(sign | rounded);
}

/// The exact value of an encoding.
template <int kExponentBits, int kFractionBits>
constexpr double decode(std::uint16_t bits) {
  constexpr int kBias = (1 << (kExponentBits - 1)) - 1, kLast = (1 << kExponentBits) - 1;
  const std::uint64_t sign = static_cast<std::uint64_t>(bits >> (kExponentBits + kFractionBits)) << 63;
  const int exponent = bits >> kFractionBits & kLast;
  const std::uint64_t fraction = bits & ((1u << kFractionBits) - 1);
  if (exponent == 0) {
    constexpr double kLeast = std::bit_cast<double>(static_cast<std::uint64_t>(1023 + 1 - kBias - kFractionBits) << 52);
    const double value = kLeast * static_cast<double>(fraction);
    return sign != 0 ? -value : value;
  }
  const std::uint64_t wide = exponent == kLast ? 0x7ff : static_cast<std::uint64_t>(exponent - kBias + 1023);
  return std::bit_cast<double>(sign | wide << 52 | fraction << (52 - kFractionBits));
}

/// A 16-bit value. Conversions round to nearest, ties to even.
template <int kExponentBits, int kFractionBits>
struct Value {
  std::uint16_t bits;

  Value() = default;
  explicit constexpr Value(double value) : bits(encode<kExponentBits, kFractionBits>(value)) {}
  explicit constexpr operator double() const { return decode<kExponentBits, kFractionBits>(bits); }
  explicit constexpr operator float() const { return static_cast<float>(static_cast<double>(*this)); }  // exact
  constexpr bool operator==(const Value&) const = default;
};

}  // namespace half

using F16 = half::Value<5, 10>;  ///< IEEE binary16: 11 bits of precision, up to 65504
using Bf16 = half::Value<8, 7>;  ///< the upper half of f32: 8 bits of precision, its range

}  // namespace shardmat
