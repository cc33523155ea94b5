#include "partition/readers/npy_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>

#include "kernels/base/error.h"
#include "kernels/base/half.h"
#include "kernels/base/shortened.h"
#include "partition/files/exact_integers.h"
#include "partition/readers/complex_values.h"

namespace shardmat {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are copied without swapping bytes");

constexpr std::string_view kMagic{"\x93NUMPY", 6};
constexpr std::uint32_t kLongestHeader = 1 << 16;

[[noreturn]] void fail(const std::string& source, const std::string& what) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", source, what));
}

/// What follows 'key': in the dictionary {'descr': '<f8', 'fortran_order': False, 'shape': (3, 1), }.
std::string_view value_of(const std::string& source, std::string_view dictionary, std::string_view key) {
  std::size_t at = dictionary.find(fmt::format("'{}'", key));
  if (at != std::string_view::npos) at = dictionary.find(':', at);
  if (at != std::string_view::npos) at = dictionary.find_first_not_of(' ', at + 1);
  if (at == std::string_view::npos)
    fail(source, fmt::format("its .npy header has no '{}'; it is damaged, write it again with numpy.save", key));
  return dictionary.substr(at);
}

void parse_type(const std::string& source, std::string_view text, NpyHeader& header) {
  const std::size_t end = text.find('\'', 1);
  if (text[0] != '\'' || end == std::string_view::npos)
    fail(source, "its elements are records; write a plain array of numbers with numpy.save");
  const std::string_view type = text.substr(1, end - 1);
  std::int64_t size = 0;
  const char* const last = type.data() + type.size();
  if (type.size() < 3 || std::from_chars(type.data() + 2, last, size).ptr != last || size < 1 || size > 1 << 20)
    fail(source, fmt::format("its elements have the type {}, which are no plain numbers; write them with .astype('<f8')",
                             shortened(type)));
  header.big_endian = type[0] == '>' && size > 1;
  header.kind = type[1];
  header.item_bytes = type[1] == 'U' ? 4 * size : size;
}

void parse_shape(const std::string& source, std::string_view text, NpyHeader& header) {
  const std::size_t close = text.find(')');
  bool good = text[0] == '(' && close != std::string_view::npos;
  for (std::size_t i = 1; good && i < close;) {
    if (text[i] == ' ' || text[i] == ',') {
      ++i;
      continue;
    }
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + close, extent);
    good = error == std::errc{} && extent >= 0 && !__builtin_mul_overflow(header.count, extent, &header.count);
    header.shape.push_back(extent);
    i = static_cast<std::size_t>(end - text.data());
  }
  std::int64_t bytes = 0;
  if (!good || __builtin_mul_overflow(header.count, header.item_bytes, &bytes))
    fail(source, "the shape in its .npy header is damaged; write it again with numpy.save");
}

/// An integer that f64 would round.
struct NotExact {
  std::string number;
};

template <class To, class From>
void convert(const char* bytes, std::size_t count, To* out) {
  if constexpr (std::is_same_v<To, From>) {
    if (count > 0) std::memcpy(out, bytes, count * sizeof(To));  // both may be null without elements
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      From element;
      std::memcpy(&element, bytes + i * sizeof(From), sizeof(From));
      out[i] = static_cast<To>(element);
      if constexpr (std::is_same_v<To, double> && std::is_integral_v<From>) {
        if (!is_exact_in_f64(element)) throw NotExact{fmt::to_string(element)};
      }
    }
  }
}

/// One of the two numbers of each element.
template <class From>
void convert_part(const char* bytes, std::size_t count, std::size_t place, double* out) {
  for (std::size_t i = 0; i < count; ++i) {
    From number;
    std::memcpy(&number, bytes + (2 * i + place) * sizeof number, sizeof number);
    out[i] = static_cast<double>(number);
  }
}

/// Converts integers and booleans; false if the type is another.
template <class To>
bool convert_integers(const NpyHeader& header, const char* bytes, std::size_t count, To* out) {
  const std::int64_t size = header.item_bytes;
  const bool is_signed = header.kind == 'i';
  if (!is_signed && header.kind != 'u' && !(header.kind == 'b' && size == 1)) return false;
  if (size == 1) is_signed ? convert<To, std::int8_t>(bytes, count, out) : convert<To, std::uint8_t>(bytes, count, out);
  else if (size == 2)
    is_signed ? convert<To, std::int16_t>(bytes, count, out) : convert<To, std::uint16_t>(bytes, count, out);
  else if (size == 4)
    is_signed ? convert<To, std::int32_t>(bytes, count, out) : convert<To, std::uint32_t>(bytes, count, out);
  else if (size == 8)
    is_signed ? convert<To, std::int64_t>(bytes, count, out) : convert<To, std::uint64_t>(bytes, count, out);
  else return false;
  return true;
}

[[noreturn]] void fail_type(const std::string& source, const NpyHeader& header, const char* wanted) {
  if (header.kind == 'c') fail(source, complex_vector_refused(source));
  const bool longer = header.kind == 'f' && header.item_bytes > 8;
  fail(source, fmt::format("its elements {}, which is not supported; write {}",
                           longer ? fmt::format("are long doubles of {} bytes", header.item_bytes)
                                  : fmt::format("have the type {}{}", shortened({&header.kind, 1}), header.item_bytes),
                           wanted));
}

}  // namespace

NpyHeader read_npy_header(const std::string& source, const ByteReader& read) {
  unsigned char start[8];
  read(start, sizeof start);
  if (std::memcmp(start, kMagic.data(), kMagic.size()) != 0) fail(source, "it is no .npy array; write it with numpy.save");
  const unsigned version = start[6];
  if (version < 1 || version > 3)
    fail(source, fmt::format("its .npy version {} is unknown; write it with numpy.save", version));
  unsigned char length_bytes[4] = {};
  read(length_bytes, version == 1 ? 2 : 4);
  std::uint32_t length = 0;
  std::memcpy(&length, length_bytes, sizeof length);
  if (length > kLongestHeader) fail(source, "its .npy header is too long; it is damaged, write it again with numpy.save");
  std::string dictionary(length, '\0');
  read(dictionary.data(), dictionary.size());

  NpyHeader header;
  header.data_offset = static_cast<std::int64_t>(sizeof start) + (version == 1 ? 2 : 4) + length;
  parse_type(source, value_of(source, dictionary, "descr"), header);
  header.fortran_order = value_of(source, dictionary, "fortran_order").substr(0, 4) == "True";
  parse_shape(source, value_of(source, dictionary, "shape"), header);
  return header;
}

std::string make_npy_header(std::string_view type, const std::vector<std::int64_t>& shape) {
  std::string dictionary = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", type,
                                       fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  const std::size_t unpadded = kMagic.size() + 4 + dictionary.size() + 1;
  dictionary.append((64 - unpadded % 64) % 64, ' ');
  dictionary += '\n';
  const std::size_t length = dictionary.size();
  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  return header + dictionary;
}

void choose_part(const std::string& source, NpyHeader& header, ComplexPart part) {
  if (part != ComplexPart::none && header.kind != 'c') fail(source, kNotComplex);
  header.part = part;
}

namespace {

/// The same elements with their lowest byte first; of complex ones each part.
std::string reversed(const NpyHeader& header, const char* bytes, std::size_t count) {
  const std::size_t parts = header.kind == 'c' ? 2 : 1, size = static_cast<std::size_t>(header.item_bytes) / parts;
  std::string elements(bytes, bytes == nullptr ? 0 : count * parts * size);
  for (auto at = elements.begin(); at != elements.end(); at += static_cast<std::ptrdiff_t>(size))
    std::reverse(at, at + static_cast<std::ptrdiff_t>(size));
  return elements;
}

NpyHeader little_endian(NpyHeader header) {
  header.big_endian = false;
  return header;
}

}  // namespace

void npy_to_f64(const std::string& source, const NpyHeader& header, const char* bytes, std::size_t count, double* out) {
  if (header.big_endian) return npy_to_f64(source, little_endian(header), reversed(header, bytes, count).data(), count, out);
  if (header.kind == 'f' && header.item_bytes == 8) return convert<double, double>(bytes, count, out);
  if (header.kind == 'f' && header.item_bytes == 4) return convert<double, float>(bytes, count, out);
  if (header.kind == 'f' && header.item_bytes == 2) return convert<double, F16>(bytes, count, out);
  if (header.kind == 'c' && header.part != ComplexPart::none) {
    const std::size_t place = header.part == ComplexPart::imaginary ? 1 : 0;
    if (header.item_bytes == 16) return convert_part<double>(bytes, count, place, out);
    if (header.item_bytes == 8) return convert_part<float>(bytes, count, place, out);
  }
  try {
    if (!convert_integers(header, bytes, count, out)) fail_type(source, header, "real numbers, .astype('<f8')");
  } catch (const NotExact& fault) {
    fail(source,
         fmt::format("its element {} {}; write the array with .astype('<f8') to have it rounded", fault.number, kNotExact));
  }
}

void npy_to_int64(const std::string& source, const NpyHeader& header, const char* bytes, std::size_t count,
                  std::int64_t* out) {
  if (header.big_endian)
    return npy_to_int64(source, little_endian(header), reversed(header, bytes, count).data(), count, out);
  if (header.kind == 'b' || !convert_integers(header, bytes, count, out))
    fail_type(source, header, "integers, .astype('<i8')");
  if (header.kind == 'u' && header.item_bytes == 8 && std::any_of(out, out + count, [](auto i) { return i < 0; }))
    fail(source, fmt::format("it holds a number over {}", std::numeric_limits<std::int64_t>::max()));
}

}  // namespace shardmat
