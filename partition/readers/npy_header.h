// The header of NumPy's .npy format, versions 1 to 3: type, order and shape of one array.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/host_vector.h"
#include "partition/readers/input_choices.h"

namespace shardmat {

struct NpyHeader {
  char kind = 'f';                       ///< 'f', 'i', 'u', 'b', 'S', 'U' …, as NumPy names them
  std::int64_t item_bytes = 8;           ///< bytes of an element
  ComplexPart part = ComplexPart::none;  ///< of complex elements: which number of the two is converted
  bool fortran_order = false;
  bool big_endian = false;
  std::vector<std::int64_t> shape;  ///< empty for a single value
  std::int64_t count = 1;           ///< elements
  std::int64_t data_offset = 0;     ///< bytes before the first element
};

/// Reads exactly `size` bytes or throws.
using ByteReader = std::function<void(void* to, std::size_t size)>;

/// Reads a header and leaves the reader at the first element. Throws Error(input), starting with `source`, for an invalid
/// header or a structured type.
NpyHeader read_npy_header(const std::string& source, const ByteReader& read);

/// The header of an array in C order, or of a single value if the shape is empty; `type` as NumPy writes it: "<f8", "<i4",
/// "|S3".
std::string make_npy_header(std::string_view type, const std::vector<std::int64_t>& shape);

/// Sets which part of complex elements is converted. Throws Error(input) if they are real.
void choose_part(const std::string& source, NpyHeader& header, ComplexPart part);

/// Converts `count` elements of a numeric header (f4 f8 i1 … u8 b1) to f64; throws Error(input) for other
/// types.
void npy_to_f64(const std::string& source, const NpyHeader& header, const char* bytes, std::size_t count, double* out);

/// Converts `count` elements of an integer header to int64; throws Error(input) for other types or numbers
/// over 2^63.
void npy_to_int64(const std::string& source, const NpyHeader& header, const char* bytes, std::size_t count,
                  std::int64_t* out);

}  // namespace shardmat
