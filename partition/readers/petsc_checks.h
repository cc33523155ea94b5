// Checks of whole pieces of columns and values, which the compiler vectorises. Internal to readers/.
//
// Threads: any thread may call these functions.
#pragma once

#include <cstdint>

namespace shardmat::petsc {

/// How often a number is not larger than the one before it, the first of `count` excepted.
std::int64_t descents(const std::int32_t* numbers, std::int64_t count);
std::int64_t descents(const std::int64_t* numbers, std::int64_t count);
/// True if all numbers are in [0, end).
bool all_within(const std::int32_t* numbers, std::int64_t count, std::int64_t end);
bool all_within(const std::int64_t* numbers, std::int64_t count, std::int64_t end);
/// True if no number is infinite or NaN.
bool all_finite(const double* numbers, std::int64_t count);

}  // namespace shardmat::petsc
