// Stored numbers of any kind to numbers of this machine.
#pragma once

#include <cstdint>
#include <string>

#include "partition/hdf5/description.h"

namespace shardmat {

/// True if `number` is stored just as T lies in memory.
template <class T>
bool stored_as(const Hdf5Number& number);

/// Converts `count` stored numbers. T is int32_t, int64_t, uint64_t, float or double. Throws Error(input) naming `place` and
/// the entry, counted from `first`, if one does not fit (integers to integers), or if real numbers are asked for as
/// integers.
template <class T>
void convert_numbers(const Hdf5Number& number, const unsigned char* stored, std::int64_t count, T* out,
                     const std::string& place, std::int64_t first);

}  // namespace shardmat
