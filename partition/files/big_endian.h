// Numbers as PETSc stores them, highest byte first. The loops are left to the compiler to vectorise: with AVX2 where the CPU
// has it.
//
// Threads: any thread may call these functions.
#pragma once

#include <cstdint>

namespace shardmat {

/// Reverses the bytes of each of `count` numbers in place.
void reverse_bytes(std::uint32_t* numbers, std::int64_t count);
void reverse_bytes(std::uint64_t* numbers, std::int64_t count);

/// `count` signed numbers of 4 or 8 bytes, highest byte first, as int64. `from` and `to` may begin at the same address.
void from_big_endian(const void* from, int bytes_each, std::int64_t count, std::int64_t* to);
/// The reverse. REQUIRES: the numbers fit into `bytes_each`.
void to_big_endian(const std::int64_t* from, int bytes_each, std::int64_t count, void* to);

}  // namespace shardmat
