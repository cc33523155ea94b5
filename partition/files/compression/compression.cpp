// The list of compressions.
#include "partition/files/compression/compression.h"

namespace shardmat {
namespace {

const Compression kCompressions[] = {
    {.suffix = ".gz", .name = "gzip", .magic = "\x1f\x8b", .package = "zlib1g-dev", .make = make_gzip},
    {.suffix = ".bz2", .name = "bzip2", .magic = "BZh", .package = "libbz2-dev", .make = make_bzip2},
    {.suffix = ".xz",
     .name = "xz",
     .magic = std::string_view("\xfd"
                               "7zXZ\0",
                               6),
     .package = "liblzma-dev",
     .make = make_xz},
    {.suffix = ".zst", .name = "zstd", .magic = "\x28\xb5\x2f\xfd", .package = "libzstd-dev", .make = make_zstd},
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
