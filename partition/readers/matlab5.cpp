#include "partition/readers/matlab5.h"
#include "partition/readers/complex_values.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/shortened.h"
#include "kernels/base/text.h"
#include "partition/files/exact_integers.h"
#include "partition/files/first_bytes.h"
#include "partition/readers/text_source.h"

namespace shardmat::matlab5 {
namespace {

constexpr std::int64_t kHeader = 128, kTag = 8;
constexpr std::int64_t kBlock = 1 << 15;  ///< numbers converted at a time
constexpr std::size_t kMostVariables = 100'000;
constexpr std::uint32_t kMatrix = 14, kCompressed = 15;

[[noreturn]] void fail(const std::string& place, const std::string& what) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", place, what));
}
[[noreturn]] void fail_damaged(const std::string& place, const std::string& what) {
  fail(place, what + "; the file is truncated or damaged, copy or write it again");
}

/// The bytes of a variable one after another.
class Bytes {
 public:
  explicit Bytes(std::string place) : place_(std::move(place)) {}
  virtual ~Bytes() = default;
  virtual void read(void* to, std::int64_t size) = 0;
  virtual bool at_end() = 0;
  /// Reads what is left of compressed bytes, so that zlib compares their checksum.
  virtual void drain() {}

  void skip(std::int64_t size) {
    std::array<char, 4096> unused;
    for (std::int64_t done = 0; done < size; done += std::ssize(unused))
      read(unused.data(), std::min<std::int64_t>(std::ssize(unused), size - done));
  }
  const std::string& place() const { return place_; }

 protected:
  std::string place_;
};

class PlainBytes final : public Bytes {
 public:
  PlainBytes(const InputFile& file, std::int64_t begin, std::int64_t size, const std::string& place)
      : Bytes(place), file_(file), at_(begin), end_(begin + size) {}
  void read(void* to, std::int64_t size) override {
    if (size > end_ - at_) fail_damaged(place_, "it ends too early");
    file_.read(to, at_, size);
    at_ += size;
  }
  bool at_end() override { return at_ == end_; }

 private:
  const InputFile& file_;
  std::int64_t at_, end_;
};

class InflatedBytes final : public Bytes {
 public:
  InflatedBytes(const InputFile& file, std::int64_t begin, std::int64_t size, const std::string& place)
      : Bytes(place), file_(file), at_(begin), end_(begin + size) {
    if (inflateInit(&stream_) != Z_OK) throw Error(ErrorKind::resources, "zlib cannot start: out of memory");
  }
  ~InflatedBytes() override { inflateEnd(&stream_); }
  InflatedBytes(const InflatedBytes&) = delete;
  InflatedBytes& operator=(const InflatedBytes&) = delete;

  void read(void* to, std::int64_t size) override {
    if (inflated(to, size) != size) fail_damaged(place_, "its compressed data ends too early");
  }
  bool at_end() override {
    char unused = 0;
    return inflated(&unused, 1) == 0;
  }
  void drain() override {
    std::array<char, 4096> unused;
    while (inflated(unused.data(), std::ssize(unused)) == std::ssize(unused)) continue;
  }

 private:
  /// Inflates up to `size` bytes; fewer at the end.
  std::int64_t inflated(void* to, std::int64_t size) {
    auto* out = static_cast<Bytef*>(to);
    std::int64_t left = size;
    while (left > 0 && !ended_) {
      if (stream_.avail_in == 0) fetch();
      constexpr std::int64_t kMost = 1 << 30;
      const auto wanted = static_cast<uInt>(std::min(left, kMost));
      stream_.next_out = out, stream_.avail_out = wanted;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      out += wanted - stream_.avail_out;
      left -= wanted - stream_.avail_out;
      if (status == Z_STREAM_END) ended_ = true;
      else if (status == Z_MEM_ERROR) throw Error(ErrorKind::resources, place_ + ": no memory to decompress it");
      else if (status != Z_OK)
        fail_damaged(place_, fmt::format("its compressed data cannot be read ({})",
                                         stream_.msg != nullptr ? stream_.msg : "it ends too early"));
    }
    return size - left;
  }

  void fetch() {
    const std::int64_t size = std::min<std::int64_t>(std::ssize(compressed_), end_ - at_);
    if (size == 0) fail_damaged(place_, "its compressed data ends too early");
    file_.read(compressed_.data(), at_, size);
    at_ += size;
    stream_.next_in = compressed_.data(), stream_.avail_in = static_cast<uInt>(size);
  }

  const InputFile& file_;
  std::int64_t at_, end_;
  z_stream stream_{};
  std::array<Bytef, 1 << 14> compressed_;
  bool ended_ = false;
};

/// Type and size of an element; of a small one also its bytes.
struct Tag {
  std::uint32_t type = 0;
  std::int64_t bytes = 0;
  bool small = false;
  std::array<char, 4> data{};
};

std::uint32_t in_order(std::uint32_t number, bool swapped) { return swapped ? __builtin_bswap32(number) : number; }

Tag read_tag(Bytes& bytes, bool swapped) {
  std::array<std::uint32_t, 2> words;
  bytes.read(words.data(), kTag);
  Tag tag;
  tag.type = in_order(words[0], swapped);
  if (tag.type >> 16 == 0) {
    tag.bytes = in_order(words[1], swapped);
    return tag;
  }
  tag.small = true;
  tag.bytes = tag.type >> 16;
  tag.type &= 0xffff;
  std::memcpy(tag.data.data(), &words[1], 4);
  if (tag.bytes > 4) fail_damaged(bytes.place(), "an element has a wrong size");
  return tag;
}

/// Bytes of a number of this type; 0 for other types.
int width_of(std::uint32_t type) {
  switch (type) {
    case 1:
    case 2:
      return 1;
    case 3:
    case 4:
      return 2;
    case 5:
    case 6:
    case 7:
      return 4;
    case 9:
    case 12:
    case 13:
      return 8;
    default:
      return 0;
  }
}

template <class Stored, class T>
void convert_as(const char* from, std::int64_t count, bool swapped, T* to, const std::string& place) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::array<char, sizeof(Stored)> bytes;
    std::memcpy(bytes.data(), from + i * static_cast<std::int64_t>(sizeof(Stored)), sizeof(Stored));
    if (swapped) std::reverse(bytes.begin(), bytes.end());
    Stored number;
    std::memcpy(&number, bytes.data(), sizeof number);
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_floating_point_v<Stored>) fail_damaged(place, "its indices are no whole numbers");
      else if (!std::in_range<T>(number)) fail_damaged(place, "an index is out of range");
    }
    if constexpr (std::is_same_v<T, double>) {
      if (!is_exact_in_f64(number))
        throw Error(ErrorKind::input,
                    fmt::format("{}: {} {}; save it as double(…) to have it rounded", place, number, kNotExact));
    }
    to[i] = static_cast<T>(number);
  }
}

template <class T>
void convert(std::uint32_t type, const char* from, std::int64_t count, bool swapped, T* to, const std::string& place) {
  switch (type) {
    case 1:
      return convert_as<std::int8_t>(from, count, swapped, to, place);
    case 2:
      return convert_as<std::uint8_t>(from, count, swapped, to, place);
    case 3:
      return convert_as<std::int16_t>(from, count, swapped, to, place);
    case 4:
      return convert_as<std::uint16_t>(from, count, swapped, to, place);
    case 5:
      return convert_as<std::int32_t>(from, count, swapped, to, place);
    case 6:
      return convert_as<std::uint32_t>(from, count, swapped, to, place);
    case 7:
      return convert_as<float>(from, count, swapped, to, place);
    case 9:
      return convert_as<double>(from, count, swapped, to, place);
    case 12:
      return convert_as<std::int64_t>(from, count, swapped, to, place);
    default:
      return convert_as<std::uint64_t>(from, count, swapped, to, place);
  }
}

/// The elements of a variable one after another.
class Elements {
 public:
  Elements(std::unique_ptr<Bytes> bytes, bool swapped) : bytes_(std::move(bytes)), swapped_(swapped) {}

  const std::string& place() const { return bytes_->place(); }

  std::int64_t begin() { return begin_logical(-1); }

  std::int64_t begin_logical(std::int64_t places) {
    end_element();
    tag_ = read_tag(*bytes_, swapped_);
    constexpr std::uint32_t kBytes = 2, kDoubles = 9;
    if (tag_.type == kDoubles && places >= 0 && tag_.bytes < 8 * places) tag_.type = kBytes;
    width_ = width_of(tag_.type);
    if (width_ == 0 || tag_.bytes % width_ != 0) fail_damaged(place(), fmt::format("an element has the type {}", tag_.type));
    left_ = tag_.bytes;
    open_ = true;
    return tag_.bytes / width_;
  }

  template <class T>
  void next(T* to, std::int64_t count) {
    for (std::int64_t done = 0; done < count; done += kBlock) {
      const std::int64_t block = std::min(kBlock, count - done), size = block * width_;
      if (size > left_) fail_damaged(place(), "an element ends too early");
      buffer_.resize(static_cast<std::size_t>(size));
      if (tag_.small) std::memcpy(buffer_.data(), tag_.data.data() + (tag_.bytes - left_), static_cast<std::size_t>(size));
      else bytes_->read(buffer_.data(), size);
      left_ -= size;
      convert(tag_.type, buffer_.data(), block, swapped_, to + done, place());
    }
  }

  /// Nothing but finish() may follow.
  bool at_last() {
    end_element();
    return bytes_->at_end();
  }
  void finish() {
    end_element();
    bytes_->drain();
  }

 private:
  /// What is left of an element, and the bytes that fill it up to a multiple of 8.
  void end_element() {
    if (!std::exchange(open_, false) || tag_.small) return;
    bytes_->skip(left_ + (8 - tag_.bytes % 8) % 8);
  }

  std::unique_ptr<Bytes> bytes_;
  bool swapped_, open_ = false;
  Tag tag_;
  int width_ = 0;
  std::int64_t left_ = 0;
  HostVector<char> buffer_;
};

bool is_swapped(const InputFile& file) {
  std::array<char, kHeader> header{};
  file.read(header.data(), 0, std::min(kHeader, file.size()));
  const bool little = header[126] == 'I' && header[127] == 'M', big = header[126] == 'M' && header[127] == 'I';
  refuse_octave_format(file.path());
  if (!little && !big)
    fail(file.path().string(), "it is no .mat file of MATLAB 5 to 7.3; write it again with save, or with scipy.io.savemat");
  return big;
}

std::unique_ptr<Bytes> bytes_of(const InputFile& file, std::int64_t offset, std::int64_t size, bool compressed,
                                const std::string& place) {
  if (compressed) return std::make_unique<InflatedBytes>(file, offset, size, place);
  return std::make_unique<PlainBytes>(file, offset, size, place);
}

void read_name(Elements& elements, Variable& variable) {
  const std::int64_t length = elements.begin();
  constexpr std::int64_t kLongest = 4096;
  if (length > kLongest) fail_damaged(elements.place(), "its name has a wrong size");
  std::array<std::int64_t, kLongest> letters;
  elements.next(letters.data(), length);
  for (std::int64_t i = 0; i < length; ++i) variable.name += static_cast<char>(letters[static_cast<std::size_t>(i)]);
}

/// Where the next variable begins: zeros may lie before it. The first byte of a variable that is not 0 is the lowest one of
/// its type, a number of four bytes.
std::int64_t skip_zeros(const InputFile& file, std::int64_t at, bool swapped) {
  std::array<char, 4096> bytes;
  for (std::int64_t begin = at; begin < file.size(); begin += std::ssize(bytes)) {
    const std::int64_t size = std::min<std::int64_t>(std::ssize(bytes), file.size() - begin);
    file.read(bytes.data(), begin, size);
    const auto found = std::find_if(bytes.begin(), bytes.begin() + size, [](char byte) { return byte != 0; });
    if (found != bytes.begin() + size) return std::max(at, begin + (found - bytes.begin()) - (swapped ? 3 : 0));
  }
  return file.size();
}

/// Flags, sizes and name, which begin every variable.
void read_head(Elements& elements, Variable& variable) {
  const std::string place = elements.place();
  std::array<std::int64_t, 2> flags{};
  if (elements.begin() != 2) fail_damaged(place, "its flags have a wrong size");
  elements.next(flags.data(), 2);
  variable.kind = static_cast<int>(flags[0] & 0xff);
  variable.complex = (flags[0] >> 8 & 0x08) != 0;
  variable.logical = (flags[0] >> 8 & 0x02) != 0;
  if (variable.sparse()) variable.most_nonzeros = flags[1];
  if (variable.is_opaque()) return read_name(elements, variable);
  const std::int64_t dimensions = elements.begin();
  std::array<std::int64_t, 2> sizes{};
  if (dimensions < 2 || dimensions > 1000) fail_damaged(place, fmt::format("it has {} dimensions", dimensions));
  elements.next(sizes.data(), 2);
  variable.rows = sizes[0], variable.cols = sizes[1];
  if (variable.rows < 0 || variable.cols < 0)
    fail_damaged(place, fmt::format("it is {} × {}", variable.rows, variable.cols));
  if (dimensions > 2) variable.kind = 0;  // no matrix
  read_name(elements, variable);
}

std::string list_of(const std::vector<Variable>& variables) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, variables.size()); ++i)
    text += fmt::format("{}:{} is a {}", i == 0 ? "" : "; ", shortened(variables[i].name), describe(variables[i]));
  if (variables.size() > kShown) text += fmt::format("; and {} more", variables.size() - kShown);
  return text;
}

}  // namespace

bool is_matlab5_file(const std::filesystem::path& path) {
  const std::string text = first_bytes(path, kHeader);
  return text.size() == kHeader && text.starts_with("MATLAB 5") &&
         (text.ends_with(std::string_view("\x00\x01IM", 4)) || text.ends_with(std::string_view("\x01\x00MI", 4)));
}

void refuse_octave_format(const std::filesystem::path& path) {
  const std::string text = first_bytes(path, kHeader);
  if (text.starts_with("# Created by Octave") || text.starts_with("Octave-1-"))
    fail(path.string(), "it is a file in Octave's own format; write it in MATLAB's, in Octave with: save -v7 a.mat A");
}

std::vector<Variable> variables_of(const InputFile& file) {
  const bool swapped = is_swapped(file);
  std::vector<Variable> variables;
  for (std::int64_t at = kHeader; at < file.size() && variables.size() < kMostVariables;) {
    at = skip_zeros(file, at, swapped);
    if (at == file.size()) break;
    const std::string place = fmt::format("{}: variable {} at byte {}", file.path().string(), variables.size(), at);
    PlainBytes start(file, at, file.size() - at, place);
    const Tag tag = read_tag(start, swapped);
    if (tag.small || tag.bytes > file.size() - at - kTag)
      fail_damaged(place, fmt::format("it should have {} bytes, and {} are left", tag.bytes, file.size() - at - kTag));
    if (tag.type != kMatrix && tag.type != kCompressed) fail_damaged(place, fmt::format("it has the type {}", tag.type));
    Variable variable;
    variable.compressed = tag.type == kCompressed;
    variable.offset = at + kTag, variable.bytes = tag.bytes;
    at += kTag + tag.bytes;
    auto bytes = bytes_of(file, variable.offset, variable.bytes, variable.compressed, place);
    if (variable.compressed && read_tag(*bytes, swapped).type != kMatrix) continue;
    if (tag.bytes == 0) continue;
    Elements elements(std::move(bytes), swapped);
    read_head(elements, variable);
    if (!variable.name.empty()) variables.push_back(std::move(variable));  // without one: what MATLAB keeps of objects
  }
  return variables;
}

std::string describe(const Variable& variable) {
  const std::string sizes = fmt::format("{} × {}", human_count(variable.rows), human_count(variable.cols));
  const char* const what = variable.complex ? ", complex" : variable.logical ? ", logical" : "";
  if (variable.sparse()) return fmt::format("sparse matrix, {}{}", sizes, what);
  if (variable.dense()) return fmt::format("dense matrix, {}{}", sizes, what);
  if (variable.is_struct())  // as in the files of SuiteSparse
    return fmt::format("struct; if its field A is the matrix, write that alone: A = {}.A; save('a.mat', 'A')",
                       shortened(variable.name));
  if (variable.is_opaque()) return "string, table or other object of MATLAB";
  return "variable of another kind";
}

Variable find_sparse(const InputFile& file, const std::string& name, ComplexPart part) {
  const std::vector<Variable> variables = variables_of(file);
  const std::string path = file.path().string();
  const Variable* found = nullptr;
  for (const Variable& variable : variables) {
    if (name.empty() ? !variable.sparse() : variable.name != name) continue;
    if (found != nullptr && name.empty())
      fail(path, fmt::format("it has several sparse matrices; name one, as {}:{}: {}", path, shortened(found->name),
                             list_of(variables)));
    found = &variable;
  }
  if (found == nullptr)
    fail(path, fmt::format("there is no {} in it: {}", name.empty() ? "sparse matrix" : "variable " + shortened(name),
                           list_of(variables)));
  const std::string place = fmt::format("{}: variable {}", path, shortened(found->name));
  if (found->is_struct()) fail(place, "it is a " + describe(*found));
  if (!found->sparse())
    fail(place, fmt::format("it is a {}; write it with A = sparse({})", describe(*found),
                            found->logical ? "double(A)" : "A"));  // Octave keeps sparse logical matrices as dense ones
  if (found->complex && part == ComplexPart::none)
    fail(place, complex_matrix_refused(name.empty() ? path : path + ":" + name));
  if (!found->complex && part != ComplexPart::none) fail(place, kNotComplex);
  return *found;
}

Variable find_array(const InputFile& file, const std::string& name, const std::vector<std::string>& likely) {
  const std::vector<Variable> variables = variables_of(file);
  const std::string path = file.path().string();
  const auto named = [&](const std::string& wanted) {
    return std::find_if(variables.begin(), variables.end(), [&](const Variable& one) { return one.name == wanted; });
  };
  for (const std::string& wanted : name.empty() ? likely : std::vector<std::string>{name})
    if (const auto found = named(wanted); found != variables.end()) return *found;
  if (!name.empty())
    fail(path, fmt::format("there is no variable {} in it; shardmat info {} lists what there is", shortened(name), path));
  const auto is_array = [](const Variable& one) { return one.dense(); };
  const auto first = std::find_if(variables.begin(), variables.end(), is_array);
  if (first == variables.end())
    fail(path, fmt::format("there is no array in it; shardmat info {} lists what there is", path));
  if (std::count_if(first, variables.end(), is_array) > 1)
    fail(path, fmt::format("it has several arrays, and none is named {}; name one, as {}:{}: {}", likely.front(), path,
                           shortened(first->name), list_of(variables)));
  return *first;
}

struct Contents::Impl {
  Elements elements;
};

Contents::Contents(const InputFile& file, const Variable& variable) {
  const bool swapped = is_swapped(file);
  auto bytes = bytes_of(file, variable.offset, variable.bytes, variable.compressed,
                        fmt::format("{}: variable {}", file.path().string(), shortened(variable.name)));
  if (variable.compressed) read_tag(*bytes, swapped);
  impl_ = std::make_unique<Impl>(Impl{Elements(std::move(bytes), swapped)});
  Variable again;
  read_head(impl_->elements, again);
}

Contents::~Contents() = default;

std::int64_t Contents::begin() { return impl_->elements.begin(); }
std::int64_t Contents::begin_logical(std::int64_t places) { return impl_->elements.begin_logical(places); }

template <class T>
void Contents::next(T* to, std::int64_t count) {
  impl_->elements.next(to, count);
}
template void Contents::next(std::int64_t*, std::int64_t);
template void Contents::next(double*, std::int64_t);

bool Contents::at_last() { return impl_->elements.at_last(); }
void Contents::finish() { impl_->elements.finish(); }

HostVector<double> read_dense(const InputFile& file, const Variable& variable) {
  const std::string place = fmt::format("{}: variable {}", file.path().string(), shortened(variable.name));
  if (!variable.dense()) fail(place, "it is no array of numbers but a " + describe(variable));
  if (variable.complex) fail(place, "its values are complex, which is not supported; write two real arrays");
  Contents contents(file, variable);
  const std::int64_t count = contents.begin();
  std::int64_t wanted = 0;
  const bool whole = !__builtin_mul_overflow(variable.rows, variable.cols, &wanted) && count == wanted;
  const auto fail_logical = [&] {
    fail(place, "it is a sparse logical matrix as Octave writes it, in a form that cannot be read; write double(A)");
  };
  if (!whole && variable.logical) fail_logical();
  if (!whole) fail_damaged(place, fmt::format("it is {} × {}, and has {} numbers", variable.rows, variable.cols, count));
  ReadLimits{}.require_budget(16 * count, file);
  HostVector<double> by_columns(static_cast<std::size_t>(count)), by_rows(static_cast<std::size_t>(count));
  contents.next(by_columns.data(), count);
  if (variable.logical && !contents.at_last()) fail_logical();
  contents.finish();
  for (std::int64_t j = 0; j < variable.cols; ++j)
    for (std::int64_t i = 0; i < variable.rows; ++i)
      by_rows[static_cast<std::size_t>(i * variable.cols + j)] = by_columns[static_cast<std::size_t>(j * variable.rows + i)];
  return by_rows;
}

}  // namespace shardmat::matlab5
