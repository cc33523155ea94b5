#include "partition/files/big_endian.h"

#include <array>
#include <bit>
#include <cstring>

#include "kernels/base/isa.h"

#if defined(__x86_64__)
#define SHARDMAT_AVX2_LOOP [[gnu::target("avx2"), gnu::optimize("O3")]]
#endif

namespace shardmat {
namespace {

static_assert(std::endian::native == std::endian::little, "this file reverses the bytes of all numbers");

std::uint32_t reversed(std::uint32_t number) { return __builtin_bswap32(number); }
std::uint64_t reversed(std::uint64_t number) { return __builtin_bswap64(number); }

template <class T>
void reverse_by_loop(T* numbers, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) numbers[i] = reversed(numbers[i]);
}

#if defined(__x86_64__)
SHARDMAT_AVX2_LOOP void reverse_with_avx2(std::uint32_t* numbers, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) numbers[i] = __builtin_bswap32(numbers[i]);
}
SHARDMAT_AVX2_LOOP void reverse_with_avx2(std::uint64_t* numbers, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) numbers[i] = __builtin_bswap64(numbers[i]);
}
#else
template <class T>
void reverse_with_avx2(T* numbers, std::int64_t count) {
  reverse_by_loop(numbers, count);
}
#endif

template <class T>
void reverse(T* numbers, std::int64_t count) {
  if (best_isa() == Isa::baseline) reverse_by_loop(numbers, count);
  else reverse_with_avx2(numbers, count);
}

}  // namespace

void reverse_bytes(std::uint32_t* numbers, std::int64_t count) { reverse(numbers, count); }
void reverse_bytes(std::uint64_t* numbers, std::int64_t count) { reverse(numbers, count); }

void from_big_endian(const void* from, int bytes_each, std::int64_t count, std::int64_t* to) {
  if (bytes_each == 8) {
    if (from != to) std::memcpy(to, from, static_cast<std::size_t>(count) * 8);
    return reverse_bytes(reinterpret_cast<std::uint64_t*>(to), count);
  }
  // Block by block from the end: the result may grow over the stored numbers.
  constexpr std::int64_t kBlock = 1024;
  std::array<std::uint32_t, kBlock> block;
  for (std::int64_t end = count; end > 0;) {
    const std::int64_t begin = (end - 1) / kBlock * kBlock;
    std::memcpy(block.data(), static_cast<const unsigned char*>(from) + 4 * begin,
                static_cast<std::size_t>(end - begin) * 4);
    reverse_bytes(block.data(), end - begin);
    for (std::int64_t i = begin; i < end; ++i) to[i] = static_cast<std::int32_t>(block[static_cast<std::size_t>(i - begin)]);
    end = begin;
  }
}

void to_big_endian(const std::int64_t* from, int bytes_each, std::int64_t count, void* to) {
  auto* const bytes = static_cast<unsigned char*>(to);
  for (std::int64_t i = 0; i < count; ++i) {
    if (bytes_each == 8) {
      const std::uint64_t number = reversed(static_cast<std::uint64_t>(from[i]));
      std::memcpy(bytes + 8 * i, &number, sizeof number);
    } else {
      const std::uint32_t number = reversed(static_cast<std::uint32_t>(from[i]));
      std::memcpy(bytes + 4 * i, &number, sizeof number);
    }
  }
}

}  // namespace shardmat
