#include "partition/hdf5/own_description.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kernels/base/error.h"
#include "partition/files/checksum.h"
#include "partition/files/output_file.h"

namespace shardmat {
namespace {

constexpr char kMark[] = "shardmat description 1\n";
constexpr std::int64_t kMostBytes = 16 << 20;  // ours have no chunks, and some kilobytes a partition

struct Tail {
  std::int64_t file_bytes, text_bytes;
  std::uint64_t checksum;
  char mark[sizeof kMark] = {};
};
static_assert(sizeof(Tail) == 48);

void write_all(int descriptor, const char* bytes, std::size_t size, const std::string& place) {
  while (size > 0) {
    const ssize_t put = ::write(descriptor, bytes, size);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_write(place, std::strerror(errno));
    bytes += put;
    size -= static_cast<std::size_t>(put);
  }
}

}  // namespace

void append_description(const std::filesystem::path& file, Hdf5Description description, const std::string& place) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) fail_write(place, std::strerror(errno));
  try {
    struct stat status {};
    if (::fstat(descriptor, &status) != 0) fail_write(place, std::strerror(errno));
    description.file_bytes = status.st_size;
    std::string text = description.to_text();
    Tail tail{status.st_size, static_cast<std::int64_t>(text.size()), xxh64(text.data(), text.size())};
    std::memcpy(tail.mark, kMark, sizeof kMark);
    text.append(reinterpret_cast<const char*>(&tail), sizeof tail);
    write_all(descriptor, text.data(), text.size(), place);
  } catch (...) {
    ::close(descriptor);
    throw;
  }
  if (::close(descriptor) != 0) fail_write(place, std::strerror(errno));
}

std::optional<Hdf5Description> own_description(const InputFile& file) {
  Tail tail{};
  const auto tail_bytes = static_cast<std::int64_t>(sizeof tail);
  if (file.size() < tail_bytes) return std::nullopt;
  file.read(&tail, file.size() - tail_bytes, tail_bytes);
  if (std::memcmp(tail.mark, kMark, sizeof kMark) != 0) return std::nullopt;
  if (tail.text_bytes < 0 || tail.text_bytes > kMostBytes || tail.text_bytes > file.size() - tail_bytes ||
      tail.file_bytes != file.size() - tail_bytes - tail.text_bytes)
    return std::nullopt;
  std::string text(static_cast<std::size_t>(tail.text_bytes), '\0');
  file.read(text.data(), tail.file_bytes, tail.text_bytes);
  if (xxh64(text.data(), text.size()) != tail.checksum) return std::nullopt;
  Hdf5Description description = Hdf5Description::from_text(text, file.path().string());
  if (description.file_bytes != tail.file_bytes) return std::nullopt;
  return description;
}

}  // namespace shardmat
