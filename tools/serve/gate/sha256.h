// SHA-256 (FIPS 180-4), by which tokens are known. OpenSSL, which has it, too, is optional.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardmat::serve {

using Sha256 = std::array<std::uint8_t, 32>;

/// Of bytes that come in pieces.
class Sha256Sum {
 public:
  void add(std::string_view bytes);
  /// Of all that was added. Call it once.
  Sha256 finish();

 private:
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string rest_;  ///< less than a block
  std::uint64_t bytes_ = 0;
};

Sha256 sha256(std::string_view bytes);
/// 64 hexadecimal digits.
std::string text_of(const Sha256& hash);
/// 64 hexadecimal digits; nothing for anything else.
std::optional<Sha256> parse_sha256(std::string_view text);
/// Takes the same time wherever they differ.
bool equal_in_constant_time(const Sha256& a, const Sha256& b);

}  // namespace shardmat::serve
