#include "partition/files/file_digest.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <vector>

#include "partition/files/object_name.h"

namespace shardmat {
namespace {

constexpr std::int64_t kEnds = 65536, kPiece = 4096, kPieces = 16;

class Checksum {  // FNV-1a
 public:
  void add(const char* bytes, std::streamsize count) {
    for (std::streamsize i = 0; i < count; ++i) sum_ = (sum_ ^ static_cast<unsigned char>(bytes[i])) * 0x100000001b3U;
  }
  std::uint64_t get() const { return sum_; }

 private:
  std::uint64_t sum_ = 0xcbf29ce484222325U;
};

}  // namespace

std::string file_digest(const std::string& name) {
  std::string path = split_object_name(name).file;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    path += ".00000";
    if (::stat(path.c_str(), &status) != 0) return {};
  }
  if (!S_ISREG(status.st_mode)) return {};
  std::ifstream file(path, std::ios::binary);
  const std::int64_t size = status.st_size;
  std::vector<char> bytes(static_cast<std::size_t>(kEnds));
  Checksum sum;
  const auto take = [&](std::int64_t from, std::int64_t count) {
    file.clear();
    file.seekg(from);
    file.read(bytes.data(), std::min(count, kEnds));
    sum.add(bytes.data(), file.gcount());
  };
  take(0, kEnds);
  if (size > kEnds) {
    for (std::int64_t i = 1; i <= kPieces; ++i) take(size / (kPieces + 1) * i, kPiece);
    take(size - kEnds, kEnds);
  }
  if (file.bad()) return {};
  return fmt::format("{} bytes, checksum {:016x}", size, sum.get());
}

}  // namespace shardmat
