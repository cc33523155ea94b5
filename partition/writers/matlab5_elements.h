// The elements of a .mat file of version 5, of which readers/matlab5.h tells. Internal to the writers of matrices and
// vectors.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>

#include "partition/files/output_file.h"

namespace shardmat::matlab5 {

constexpr std::uint32_t kInt8 = 1, kInt32 = 5, kUint32 = 6, kDouble = 9, kMatrix = 14;
constexpr std::uint32_t kSparseClass = 5, kDoubleClass = 6;
/// Octave and older versions of MATLAB take sizes for numbers of 31 bits.
constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

inline std::int64_t padded(std::int64_t bytes) { return (bytes + 7) / 8 * 8; }
/// Bytes of an element of a variable, with its tag.
inline std::int64_t element_bytes(std::int64_t bytes) { return 8 + padded(bytes); }

inline void append_words(OutputFile& out, std::initializer_list<std::int64_t> numbers) {
  for (const std::int64_t number : numbers) {
    const auto word = static_cast<std::uint32_t>(number);
    out.append({reinterpret_cast<const char*>(&word), sizeof word});
  }
}

/// An element that holds these bytes.
inline void append_element(OutputFile& out, std::uint32_t type, std::string_view bytes) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  append_words(out, {type, size});
  out.append(bytes);
  out.append(std::string(static_cast<std::size_t>(padded(size) - size), '\0'));
}

/// Bytes of what begins a variable.
inline std::int64_t head_bytes(std::string_view name) {
  return 2 * element_bytes(8) + element_bytes(static_cast<std::int64_t>(name.size()));
}

/// Begins the file and its only variable, of `bytes` bytes with its head.
inline void begin_file(OutputFile& out, std::int64_t bytes, std::uint32_t array_class, std::int64_t nnz, std::int64_t rows,
                       std::int64_t cols, std::string_view name) {
  std::string header = "MATLAB 5.0 MAT-file, written by Shardmat";
  header.resize(116, ' ');
  header.resize(124, '\0');
  out.append(header.append("\x00\x01IM", 4));
  append_words(out, {kMatrix, bytes});
  append_words(out, {kUint32, 8, array_class, nnz});
  append_words(out, {kInt32, 8, rows, cols});
  append_element(out, kInt8, name);
}

}  // namespace shardmat::matlab5
