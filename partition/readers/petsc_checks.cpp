#include "partition/readers/petsc_checks.h"

#include <algorithm>
#include <type_traits>

#include "kernels/base/isa.h"

// The library is compiled for every CPU and without full vectorisation; these loops are compiled once more for AVX2.
#if defined(__x86_64__)
#define SHARDMAT_WITH_AVX2 [[gnu::target("avx2"), gnu::optimize("O3")]]
#else
#define SHARDMAT_WITH_AVX2
#endif

namespace shardmat::petsc {
namespace {

constexpr std::int64_t kBlock = 1 << 12;  ///< counted in 32 bits, which vectors hold more of

template <class T>
struct Plain {
  static std::int32_t descents(const T* numbers, std::int64_t count) {
    std::int32_t found = 0;
    for (std::int64_t i = 1; i < count; ++i) found += numbers[i] <= numbers[i - 1] ? 1 : 0;
    return found;
  }
  static T most(const T* numbers, std::int64_t count) {  // negative numbers count as large ones
    using Unsigned = std::make_unsigned_t<T>;
    Unsigned most = 0;
    for (std::int64_t i = 0; i < count; ++i) most = std::max(most, static_cast<Unsigned>(numbers[i]));
    return static_cast<T>(most);
  }
};

template <class T>
struct WithAvx2 {
  SHARDMAT_WITH_AVX2 static std::int32_t descents(const T* numbers, std::int64_t count) {
    std::int32_t found = 0;
    for (std::int64_t i = 1; i < count; ++i) found += numbers[i] <= numbers[i - 1] ? 1 : 0;
    return found;
  }
  SHARDMAT_WITH_AVX2 static T most(const T* numbers, std::int64_t count) {
    using Unsigned = std::make_unsigned_t<T>;
    Unsigned most = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto number = static_cast<Unsigned>(numbers[i]);
      most = number > most ? number : most;
    }
    return static_cast<T>(most);
  }
};

/// The exponents of infinity and NaN are all ones.
constexpr std::uint64_t kExponent = 0x7ff0'0000'0000'0000;

std::int64_t nonfinite_plain(const std::uint64_t* bits, std::int64_t count) {
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < count; ++i) found += (bits[i] & kExponent) == kExponent ? 1 : 0;
  return found;
}

SHARDMAT_WITH_AVX2 std::int64_t nonfinite_with_avx2(const std::uint64_t* bits, std::int64_t count) {
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < count; ++i) found += (bits[i] & kExponent) == kExponent ? 1 : 0;
  return found;
}

bool has_avx2() { return best_isa() != Isa::baseline; }

template <class T>
std::int64_t count_descents(const T* numbers, std::int64_t count) {
  std::int64_t found = 0;
  for (std::int64_t first = 0; first < count; first += kBlock) {
    // Blocks overlap by the number that the next one's first is compared with.
    const std::int64_t size = std::min(kBlock + 1, count - first);
    found += has_avx2() ? WithAvx2<T>::descents(numbers + first, size) : Plain<T>::descents(numbers + first, size);
  }
  return found;
}

template <class T>
bool are_within(const T* numbers, std::int64_t count, std::int64_t end) {
  if (count == 0) return true;
  const T most = has_avx2() ? WithAvx2<T>::most(numbers, count) : Plain<T>::most(numbers, count);
  return most >= 0 && most < end;
}

}  // namespace

std::int64_t descents(const std::int32_t* numbers, std::int64_t count) { return count_descents(numbers, count); }
std::int64_t descents(const std::int64_t* numbers, std::int64_t count) { return count_descents(numbers, count); }
bool all_within(const std::int32_t* numbers, std::int64_t count, std::int64_t end) {
  return are_within(numbers, count, end);
}
bool all_within(const std::int64_t* numbers, std::int64_t count, std::int64_t end) {
  return are_within(numbers, count, end);
}

bool all_finite(const double* numbers, std::int64_t count) {
  const auto* const bits = reinterpret_cast<const std::uint64_t*>(numbers);
  return (has_avx2() ? nonfinite_with_avx2(bits, count) : nonfinite_plain(bits, count)) == 0;
}

}  // namespace shardmat::petsc
