// Compressed text: gzip, and bzip2, xz and Zstandard where their libraries were found. A new one is a file here and a line
// in the list of compression.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace shardmat {

/// Decompresses one member of a file after another.
class Decompressor {
 public:
  struct Step {
    std::size_t taken = 0, given = 0;  ///< bytes
    bool member_ended = false;
  };

  virtual ~Decompressor() = default;
  /// Begins a new member.
  virtual void reset() = 0;
  /// Takes bytes of `in` and fills `out`, as far as one of them lasts. Throws DamagedData; Error(resources) without memory.
  virtual Step run(std::string_view in, char* out, std::size_t room) = 0;
};

/// Thrown by run(); what() says what the library found.
struct DamagedData {
  std::string what;
};

struct Compression {
  std::string_view suffix;   ///< ".gz"
  std::string_view name;     ///< "gzip"
  std::string_view magic;    ///< the first bytes of a file
  std::string_view package;  ///< that has the library
  /// Null if this build is without the library.
  std::unique_ptr<Decompressor> (*make)();
};

/// The compression that the name's suffix says; null for none.
const Compression* compression_of(const std::filesystem::path& path);
/// The compression whose magic the bytes begin with; null for none.
const Compression* compression_of_bytes(std::string_view bytes);

/// Text of a file cannot be more than this many times its size, which gzip cannot exceed, and these bytes.
constexpr std::int64_t kMostExpansion = 1032, kFreeText = 64 << 20;

/// The name without the suffix of a compression: "b.mtx" of "b.mtx.gz".
std::filesystem::path uncompressed_name(const std::filesystem::path& path);

// The functions behind the lines of the list; null if this build is without the library.
extern std::unique_ptr<Decompressor> (*const make_gzip)();
extern std::unique_ptr<Decompressor> (*const make_bzip2)();
extern std::unique_ptr<Decompressor> (*const make_xz)();
extern std::unique_ptr<Decompressor> (*const make_zstd)();

}  // namespace shardmat
