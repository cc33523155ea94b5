// Copies host arrays to device buffers. All threads convert entries into a host buffer of bounded size, so that a conversion
// never holds a second copy of the matrix in host memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/parallel.h"

namespace shardmat {

/// Writes `count` entries into `buffer`. write(begin, end, out) must write the entries begin … end - 1 to out[0 …]; several
/// threads call it, in any order.
template <class To, class Write>
void fill_ranges(const Buffer& buffer, std::int64_t count, Stream& stream, const Write& write) {
  constexpr std::int64_t kChunk = std::int64_t{1} << 24;
  constexpr std::int64_t kGrain = 1 << 14;  // so that all threads have a part of a page-locked chunk
  const auto convert = [&](std::int64_t first, std::int64_t length, To* out) {
    parallel_ranges(length, kGrain,
                    [&](std::int64_t begin, std::int64_t end) { write(first + begin, first + end, out + begin); });
  };
  if (stream.device().backend == Backend::host) {
    convert(0, count, buffer.as<To>());
    return;
  }
  // Two page-locked buffers in turn: threads write one while the device reads the other.
  constexpr std::int64_t kLockedChunk = (std::int64_t{4} << 20) / static_cast<std::int64_t>(sizeof(To));
  const bool locks = count >= 4 * kLockedChunk;
  const std::int64_t room = std::min(count, locks ? kLockedChunk : kChunk);
  HostBuffer chunk[2];
  Event read[2] = {Event(stream.device()), Event(stream.device())};
  for (HostBuffer& one : chunk)
    if (locks || &one == chunk) one.reserve(static_cast<std::size_t>(room) * sizeof(To), stream.device(), locks);
  int turn = 0;
  for (std::int64_t first = 0; first < count; first += room, turn ^= locks ? 1 : 0) {
    const std::int64_t length = std::min(room, count - first);
    if (first >= 2 * room) read[turn].synchronize();
    convert(first, length, chunk[turn].as<To>());
    const auto copy = locks ? copy_to_device_async : copy_to_device;
    copy(buffer.as<To>() + first, chunk[turn].data(), static_cast<std::size_t>(length) * sizeof(To), stream);
    read[turn].record(stream);
  }
  if (locks) stream.synchronize();
}

/// Writes entry(k), k = 0 … count - 1, as To into `buffer`.
template <class To, class Entry>
void fill(const Buffer& buffer, std::int64_t count, Stream& stream, const Entry& entry) {
  fill_ranges<To>(buffer, count, stream, [&](std::int64_t begin, std::int64_t end, To* out) {
    for (std::int64_t k = begin; k < end; ++k) *out++ = static_cast<To>(entry(k));
  });
}

/// Writes runs of entries one after the other; entry(run, k) is the k-th entry of a run. Run r lies at
/// starts[r] - starts[0] … starts[r + 1] - starts[0] - 1. Without starts there are no runs.
template <class To, class Entry>
void fill_runs(const Buffer& buffer, std::span<const std::int64_t> starts, Stream& stream, const Entry& entry) {
  if (starts.empty()) return;
  const std::int64_t* start = starts.data();
  const std::int64_t offset = start[0];
  fill_ranges<To>(buffer, starts.back() - offset, stream, [&](std::int64_t begin, std::int64_t end, To* out) {
    std::int64_t run = std::upper_bound(start, start + starts.size(), begin + offset) - start - 1;
    for (std::int64_t k = begin + offset; k < end + offset; ++k) {
      while (k >= start[run + 1]) ++run;
      *out++ = static_cast<To>(entry(run, k - start[run]));
    }
  });
}

/// A new buffer of `count` entries, filled.
template <class To, class Entry>
Buffer upload(std::int64_t count, Stream& stream, const Entry& entry) {
  Buffer buffer(stream.device(), static_cast<std::size_t>(count) * sizeof(To));
  fill<To>(buffer, count, stream, entry);
  return buffer;
}

/// A new buffer of the runs, filled.
template <class To, class Entry>
Buffer upload_runs(std::span<const std::int64_t> starts, Stream& stream, const Entry& entry) {
  const std::int64_t count = starts.empty() ? 0 : starts.back() - starts.front();
  Buffer buffer(stream.device(), static_cast<std::size_t>(count) * sizeof(To));
  fill_runs<To>(buffer, starts, stream, entry);
  return buffer;
}

/// A new buffer with the entries of a host array, as To.
template <class To, class From>
Buffer upload(const HostVector<From>& from, Stream& stream) {
  return upload<To>(static_cast<std::int64_t>(from.size()), stream,
                    [&](std::int64_t k) { return from[static_cast<std::size_t>(k)]; });
}

/// A new buffer with a copy of the entries.
template <class E>
Buffer upload(const std::vector<E>& entries, Stream& stream) {
  Buffer buffer(stream.device(), entries.size() * sizeof(E));
  if (!entries.empty()) copy_to_device(buffer.data(), entries.data(), buffer.bytes(), stream);
  return buffer;
}

/// A copy of the entries of a buffer.
template <class E>
std::vector<E> download(const Buffer& buffer, Stream& stream) {
  std::vector<E> entries(buffer.bytes() / sizeof(E));
  if (!entries.empty()) copy_to_host(entries.data(), buffer.data(), entries.size() * sizeof(E), stream);
  return entries;
}

}  // namespace shardmat
