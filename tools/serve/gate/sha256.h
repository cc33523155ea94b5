// SHA-256 (FIPS 180-4), by which tokens are known. OpenSSL, which has it, too, is optional.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shardmat::serve {

using Sha256 = std::array<std::uint8_t, 32>;

Sha256 sha256(std::string_view bytes);
/// 64 hexadecimal digits; nothing for anything else.
std::optional<Sha256> parse_sha256(std::string_view text);
/// Takes the same time wherever they differ.
bool equal_in_constant_time(const Sha256& a, const Sha256& b);

}  // namespace shardmat::serve
