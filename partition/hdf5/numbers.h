// Converts stored numbers of any type to numbers of this machine.
#pragma once

#include <cstdint>
#include <string>

#include "partition/hdf5/description.h"

namespace shardmat {

/// True if the stored type `number` has the same representation as T in memory.
template <class T>
bool stored_as(const Hdf5Number& number);

/// Converts `count` stored numbers. T is int32_t, int64_t, uint64_t, float or double. Throws Error(input) if an integer does
/// not fit the integer type T, naming `place` and the entry, counted from `first`; also if real numbers would have to become
/// integers.
template <class T>
void convert_numbers(const Hdf5Number& number, const unsigned char* stored, std::int64_t count, T* out,
                     const std::string& place, std::int64_t first);

}  // namespace shardmat
