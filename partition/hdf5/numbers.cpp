#include "partition/hdf5/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/base/error.h"
#include "kernels/base/half.h"
#include "partition/files/exact_integers.h"

namespace shardmat {
namespace {

using Kind = Hdf5Number::Kind;

template <class Stored>
Stored load(const unsigned char* at, bool swap) {
  unsigned char bytes[sizeof(Stored)];
  std::memcpy(bytes, at, sizeof bytes);
  if (swap) std::reverse(bytes, bytes + sizeof bytes);
  Stored value;
  std::memcpy(&value, bytes, sizeof bytes);
  return value;
}

template <class T, class Stored>
bool fits(Stored value) {
  if constexpr (std::is_integral_v<T>) {
    if (std::is_signed_v<Stored> && value < 0)
      return std::is_signed_v<T> &&
             static_cast<std::int64_t>(value) >= static_cast<std::int64_t>(std::numeric_limits<T>::min());
    return static_cast<std::uint64_t>(value) <= static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  }
  return !std::is_same_v<T, double> || is_exact_in_f64(value);
}

template <class Stored, class T>
void convert(const Hdf5Number& number, const unsigned char* stored, std::int64_t count, T* out, const std::string& place,
             std::int64_t first) {
  const auto at = [&](std::int64_t i) { return stored + i * static_cast<std::int64_t>(sizeof(Stored)); };
  bool all_fit = true;  // whether any does not shows after a loop without exits, which is faster
  const auto convert_all = [&](auto swap) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto value = load<Stored>(at(i), swap());
      all_fit &= fits<T>(value);
      out[i] = static_cast<T>(value);
    }
  };
  if (number.big_endian) convert_all(std::true_type{});
  else convert_all(std::false_type{});
  for (std::int64_t i = 0; !all_fit && i < count; ++i)
    if (const auto value = load<Stored>(at(i), number.big_endian); !fits<T>(value))
      throw Error(ErrorKind::input,
                  std::is_integral_v<T>
                      ? fmt::format("{}: entry {} is {}, which is out of range here", place, first + i, value)
                      : fmt::format("{}: entry {}: {} {}; write the dataset in f64 to have it rounded", place, first + i,
                                    value, kNotExact));
}

template <class T>
void convert_halves(const Hdf5Number& number, const unsigned char* stored, std::int64_t count, T* out) {
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = static_cast<T>(half::decode<5, 10>(load<std::uint16_t>(stored + 2 * i, number.big_endian)));
}

template <class T>
void convert_reals(const Hdf5Number& number, const unsigned char* stored, std::int64_t count, T* out,
                   const std::string& place, std::int64_t first) {
  if constexpr (std::is_integral_v<T>) {
    throw Error(ErrorKind::input, fmt::format("{} holds real numbers where whole ones are wanted", place));
  } else {
    if (number.bytes == 2) return convert_halves(number, stored, count, out);
    if (number.bytes == 4) return convert<float>(number, stored, count, out, place, first);
    return convert<double>(number, stored, count, out, place, first);
  }
}

template <class T>
void convert_integers(const Hdf5Number& number, const unsigned char* stored, std::int64_t count, T* out,
                      const std::string& place, std::int64_t first) {
  const bool sign = number.kind == Kind::signed_integer;
  switch (number.bytes) {
    case 1:
      return sign ? convert<std::int8_t>(number, stored, count, out, place, first)
                  : convert<std::uint8_t>(number, stored, count, out, place, first);
    case 2:
      return sign ? convert<std::int16_t>(number, stored, count, out, place, first)
                  : convert<std::uint16_t>(number, stored, count, out, place, first);
    case 4:
      return sign ? convert<std::int32_t>(number, stored, count, out, place, first)
                  : convert<std::uint32_t>(number, stored, count, out, place, first);
    default:
      return sign ? convert<std::int64_t>(number, stored, count, out, place, first)
                  : convert<std::uint64_t>(number, stored, count, out, place, first);
  }
}

}  // namespace

template <class T>
bool stored_as(const Hdf5Number& number) {
  constexpr Kind kKind = std::is_floating_point_v<T> ? Kind::floating_point
                         : std::is_signed_v<T>       ? Kind::signed_integer
                                                     : Kind::unsigned_integer;
  return number.kind == kKind && number.bytes == static_cast<int>(sizeof(T)) && !number.big_endian;
}

template <class T>
void convert_numbers(const Hdf5Number& number, const unsigned char* stored, std::int64_t count, T* out,
                     const std::string& place, std::int64_t first) {
  if (number.kind == Kind::floating_point) return convert_reals(number, stored, count, out, place, first);
  if (number.kind == Kind::other) throw Error(ErrorKind::input, fmt::format("{} holds {}, not numbers", place, number.name));
  convert_integers(number, stored, count, out, place, first);
}

#define SHARDMAT_INSTANTIATE_NUMBERS(T)                                                                           \
  template bool stored_as<T>(const Hdf5Number&);                                                                  \
  template void convert_numbers<T>(const Hdf5Number&, const unsigned char*, std::int64_t, T*, const std::string&, \
                                   std::int64_t);
SHARDMAT_INSTANTIATE_NUMBERS(std::int32_t)
SHARDMAT_INSTANTIATE_NUMBERS(std::int64_t)
SHARDMAT_INSTANTIATE_NUMBERS(std::uint64_t)
SHARDMAT_INSTANTIATE_NUMBERS(float)
SHARDMAT_INSTANTIATE_NUMBERS(double)
#undef SHARDMAT_INSTANTIATE_NUMBERS

}  // namespace shardmat
