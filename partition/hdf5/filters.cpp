#include "partition/hdf5/filters.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

constexpr int kDeflate = 1, kShuffle = 2, kFletcher = 3;
constexpr std::int64_t kFletcherBytes = 4, kDeflateRatio = 1032;

[[noreturn]] void fail_chunk(const std::string& place, const std::string& what) {
  throw Error(ErrorKind::input, fmt::format("{}: {}; the file is damaged: copy or write it again", place, what));
}

void inflate_to(std::string& bytes, std::int64_t wanted, const std::string& place) {
  std::string out(static_cast<std::size_t>(wanted), '\0');
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw Error(ErrorKind::resources, fmt::format("{}: zlib cannot start", place));
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  // Chunks have less than 4 GiB, which is what zlib counts to.
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = inflate(&stream, Z_FINISH);
  const auto come = static_cast<std::int64_t>(stream.total_out);
  inflateEnd(&stream);
  if (result != Z_STREAM_END || come != wanted)
    fail_chunk(place, fmt::format("it does not inflate to its {} bytes (but to {}{})", wanted, come,
                                  result == Z_BUF_ERROR || result == Z_OK ? " or more" : ""));
  bytes = std::move(out);
}

/// HDF5 stores all first bytes of the numbers, then all second ones, and so on; what is less than a number stays at the end.
void unshuffle(std::string& bytes, std::size_t element_bytes) {
  const std::size_t count = bytes.size() / element_bytes;
  if (element_bytes < 2 || count < 2) return;
  std::string out = bytes;
  for (std::size_t b = 0; b < element_bytes; ++b)
    for (std::size_t i = 0; i < count; ++i) out[i * element_bytes + b] = bytes[b * count + i];
  bytes = std::move(out);
}

/// Fletcher's checksum of 16-bit words, big-endian, as HDF5 computes it (H5_checksum_fletcher32).
std::uint32_t fletcher32(const unsigned char* data, std::size_t size) {
  std::uint32_t sum1 = 0, sum2 = 0;
  std::size_t words = size / 2;
  while (words > 0) {
    std::size_t now = std::min<std::size_t>(words, 360);
    words -= now;
    for (; now > 0; --now, data += 2) {
      sum1 += static_cast<std::uint32_t>(data[0] << 8 | data[1]);
      sum2 += sum1;
    }
    sum1 = (sum1 & 0xffff) + (sum1 >> 16);
    sum2 = (sum2 & 0xffff) + (sum2 >> 16);
  }
  if (size % 2 != 0) {
    sum1 += static_cast<std::uint32_t>(*data << 8);
    sum2 += sum1;
    sum1 = (sum1 & 0xffff) + (sum1 >> 16);
    sum2 = (sum2 & 0xffff) + (sum2 >> 16);
  }
  sum1 = (sum1 & 0xffff) + (sum1 >> 16);
  sum2 = (sum2 & 0xffff) + (sum2 >> 16);
  return sum2 << 16 | sum1;
}

void check_fletcher(std::string& bytes, const std::string& place) {
  if (static_cast<std::int64_t>(bytes.size()) < kFletcherBytes) fail_chunk(place, "it is shorter than its checksum");
  const std::size_t size = bytes.size() - kFletcherBytes;
  std::uint32_t stored = 0;
  std::memcpy(&stored, bytes.data() + size, sizeof stored);
  if (fletcher32(reinterpret_cast<const unsigned char*>(bytes.data()), size) != stored)
    fail_chunk(place, "its checksum differs");
  bytes.resize(size);
}

}  // namespace

void require_known_filters(const std::vector<Hdf5Filter>& filters, const std::string& place) {
  constexpr std::size_t kMost = 32;  // of HDF5
  if (filters.size() > kMost) fail_chunk(place, fmt::format("it has {} filters", filters.size()));
  for (const Hdf5Filter& filter : filters)
    if (filter.id < kDeflate || filter.id > kFletcher)
      throw Error(ErrorKind::input,
                  fmt::format("{} is stored with the HDF5 filter {} ({}); deflate, shuffle and fletcher32 are read. "
                              "Rewrite it, where that filter is installed: h5repack -f GZIP=4 IN.h5 OUT.h5",
                              place, filter.id, filter.name.empty() ? "without a name" : filter.name));
}

std::int64_t most_filtered_bytes(const std::vector<Hdf5Filter>& filters, std::int64_t stored_bytes) {
  for (const Hdf5Filter& filter : filters)
    if (filter.id == kDeflate) stored_bytes = std::min(stored_bytes, INT64_MAX / kDeflateRatio) * kDeflateRatio;
  return stored_bytes;
}

void undo_filters(const std::vector<Hdf5Filter>& filters, std::string& bytes, std::int64_t chunk_bytes, int element_bytes,
                  const std::string& place) {
  for (auto filter = filters.rbegin(); filter != filters.rend(); ++filter) {
    // What was applied before this one adds a checksum each.
    const std::int64_t before =
        kFletcherBytes * std::count_if(filter + 1, filters.rend(), [](const Hdf5Filter& f) { return f.id == kFletcher; });
    if (filter->id == kDeflate) inflate_to(bytes, chunk_bytes + before, place);
    if (filter->id == kShuffle) unshuffle(bytes, static_cast<std::size_t>(element_bytes));
    if (filter->id == kFletcher) check_fletcher(bytes, place);
  }
  if (static_cast<std::int64_t>(bytes.size()) != chunk_bytes)
    fail_chunk(place, fmt::format("it has {} bytes in place of {}", bytes.size(), chunk_bytes));
}

}  // namespace shardmat
