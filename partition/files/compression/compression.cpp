// The list of compressions.
#include "partition/files/compression/compression.h"

namespace shardmat {
namespace {

const Compression kCompressions[] = {
    {".gz", "gzip", "\x1f\x8b", "zlib1g-dev", make_gzip},
    {".bz2", "bzip2", "BZh", "libbz2-dev", make_bzip2},
    {".xz", "xz",
     std::string_view("\xfd"
                      "7zXZ\0",
                      6),
     "liblzma-dev", make_xz},
    {".zst", "zstd", "\x28\xb5\x2f\xfd", "libzstd-dev", make_zstd},
};

}  // namespace

const Compression* compression_of(const std::filesystem::path& path) {
  const std::string suffix = path.extension().string();
  for (const Compression& one : kCompressions)
    if (one.suffix == suffix) return &one;
  return nullptr;
}

const Compression* compression_of_bytes(std::string_view bytes) {
  for (const Compression& one : kCompressions)
    if (bytes.starts_with(one.magic)) return &one;
  return nullptr;
}

std::filesystem::path uncompressed_name(const std::filesystem::path& path) {
  return compression_of(path) == nullptr ? path : std::filesystem::path(path).replace_extension();
}

}  // namespace shardmat
