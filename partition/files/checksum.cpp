#include "partition/files/checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <initializer_list>

namespace shardmat {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F, kPrime3 = 0x165667B19E3779F9,
                        kPrime4 = 0x85EBCA77C2B2AE63, kPrime5 = 0x27D4EB2F165667C5;

template <class T>
std::uint64_t load(const unsigned char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

std::uint64_t round(std::uint64_t lane, std::uint64_t input) { return std::rotl(lane + input * kPrime2, 31) * kPrime1; }

}  // namespace

Xxh64::Xxh64(std::uint64_t seed)
    : seed_(seed), lanes_{seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1}, rest_{} {}

void Xxh64::add(const void* data, std::size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  const auto* const end = p + bytes;
  std::size_t held = bytes_ % sizeof rest_;
  bytes_ += bytes;
  if (held > 0) {
    const std::size_t more = std::min(bytes, sizeof rest_ - held);
    std::memcpy(rest_ + held, p, more);
    p += more, held += more;
    if (held < sizeof rest_) return;
    add_stripe(rest_);
  }
  std::uint64_t a = lanes_[0], b = lanes_[1], c = lanes_[2], d = lanes_[3];
  for (; end - p >= 32; p += 32) {
    a = round(a, load<std::uint64_t>(p));
    b = round(b, load<std::uint64_t>(p + 8));
    c = round(c, load<std::uint64_t>(p + 16));
    d = round(d, load<std::uint64_t>(p + 24));
  }
  lanes_[0] = a, lanes_[1] = b, lanes_[2] = c, lanes_[3] = d;
  if (p != end) std::memcpy(rest_, p, static_cast<std::size_t>(end - p));
}

void Xxh64::add_stripe(const unsigned char* stripe) {
  for (std::size_t lane = 0; lane < 4; ++lane) lanes_[lane] = round(lanes_[lane], load<std::uint64_t>(stripe + 8 * lane));
}

void Xxh64::add_widened(std::span<const std::int32_t> numbers) {
  constexpr std::size_t kPiece = 512;
  std::int64_t wide[kPiece];
  for (std::size_t begin = 0; begin < numbers.size(); begin += kPiece) {
    const auto piece = numbers.subspan(begin, std::min(kPiece, numbers.size() - begin));
    std::copy(piece.begin(), piece.end(), wide);
    add(wide, piece.size() * sizeof wide[0]);
  }
}

std::uint64_t Xxh64::digest() const {
  std::uint64_t hash = seed_ + kPrime5;
  if (bytes_ >= 32) {
    const auto [a, b, c, d] = lanes_;
    hash = std::rotl(a, 1) + std::rotl(b, 7) + std::rotl(c, 12) + std::rotl(d, 18);
    for (const std::uint64_t lane : {a, b, c, d}) hash = (hash ^ round(0, lane)) * kPrime1 + kPrime4;
  }
  hash += bytes_;
  const unsigned char *p = rest_, *const end = rest_ + bytes_ % sizeof rest_;
  for (; end - p >= 8; p += 8) hash = std::rotl(hash ^ round(0, load<std::uint64_t>(p)), 27) * kPrime1 + kPrime4;
  for (; end - p >= 4; p += 4) hash = std::rotl(hash ^ load<std::uint32_t>(p) * kPrime1, 23) * kPrime2 + kPrime3;
  for (; p < end; ++p) hash = std::rotl(hash ^ *p * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

std::uint64_t xxh64(const void* data, std::size_t bytes, std::uint64_t seed) {
  Xxh64 hash(seed);
  hash.add(data, bytes);
  return hash.digest();
}

}  // namespace shardmat
