// Conversion by gathering: a format says which nonzero of the CSR matrix lies at each of its positions (a "source"). The
// same source then gathers columns, values, and later new values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/base/host_vector.h"
#include "kernels/formats/upload.h"
#include "kernels/matrix/rows.h"

namespace shardmat {

/// Fills `buffer`: a position with nonzero k gets from[k], a position without nonzero gets `padding`. source(begin, end,
/// put) calls put(k), or put(-1) without nonzero, for the positions begin … end - 1 in order.
template <class To, class Source, class From>
void gather(const Buffer& buffer, std::int64_t count, Stream& stream, const Source& source, From from, To padding) {
  fill_ranges<To>(buffer, count, stream, [&](std::int64_t begin, std::int64_t end, To* out) {
    source(begin, end, [&](std::int64_t k) { *out++ = k < 0 ? padding : static_cast<To>(from[k]); });
  });
}

/// A new buffer of `count` entries, gathered.
template <class To, class Source, class From>
Buffer upload_gathered(std::int64_t count, Stream& stream, const Source& source, From from, To padding) {
  Buffer buffer(stream.device(), static_cast<std::size_t>(count) * sizeof(To));
  gather<To>(buffer, count, stream, source, from, padding);
  return buffer;
}

/// Gathers values in the storage's type; positions without nonzero get 0.
template <class Source>
void gather_values(const Buffer& buffer, ValueType type, std::int64_t count, Stream& stream, const Source& source,
                   ValuePointer from) {
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    gather<T>(buffer, count, stream, source, from, T(0));
  });
}

template <class Source>
Buffer upload_values(ValueType type, std::int64_t count, Stream& stream, const Source& source, ValuePointer from) {
  Buffer buffer(stream.device(), static_cast<std::size_t>(count) * size_of(type));
  gather_values(buffer, type, count, stream, source, from);
  return buffer;
}

/// The part that holds a position; offsets[p] is the first position of part p (from 0, ascending). Skips empty parts.
inline std::int64_t part_of(const HostVector<std::int64_t>& offsets, std::int64_t position) {
  return std::upper_bound(offsets.begin(), offsets.end(), position) - offsets.begin() - 1;
}

/// True if offsets up to `largest` need 64 bits.
inline bool needs_wide_offsets(std::int64_t largest) { return largest > std::numeric_limits<std::int32_t>::max(); }

inline Buffer upload_offsets(const HostVector<std::int64_t>& offsets, bool wide, Stream& stream) {
  return wide ? upload<std::int64_t>(offsets, stream) : upload<std::int32_t>(offsets, stream);
}

/// A source for slices of `slice` slots. Each slice is as wide as its longest row and stored column by column. entry(slot,
/// j) is the j-th nonzero of the row in a slot, or -1.
template <class Entry>
auto sliced_source(const HostVector<std::int64_t>& slice_ptr, std::int64_t slice, Entry entry) {
  return [&slice_ptr, slice, entry](std::int64_t begin, std::int64_t end, auto put) {
    if (begin == end) return;
    for (auto s = part_of(slice_ptr, begin); begin < end; ++s) {
      const std::int64_t first = slice_ptr[static_cast<std::size_t>(s)];
      const std::int64_t last = std::min(end, slice_ptr[static_cast<std::size_t>(s) + 1]);
      std::int64_t lane = (begin - first) % slice, j = (begin - first) / slice;
      for (; begin < last; ++begin) {
        put(entry(s * slice + lane, j));
        if (++lane == slice) lane = 0, ++j;
      }
    }
  };
}

/// A source for rows that are stored one after the other: row i has the positions offsets[i] … offsets[i + 1] - 1. For
/// formats that store some nonzeros of each row: visit(row, put) calls put(k) for each of these.
template <class Visit>
auto rows_source(const HostVector<std::int64_t>& offsets, Visit visit) {
  return [&offsets, visit](std::int64_t begin, std::int64_t end, auto put) {
    if (begin == end) return;
    for (auto row = part_of(offsets, begin); offsets[static_cast<std::size_t>(row)] < end; ++row) {
      std::int64_t position = offsets[static_cast<std::size_t>(row)];
      visit(row, [&](std::int64_t k) {
        if (position >= begin && position < end) put(k);
        ++position;
      });
    }
  };
}

}  // namespace shardmat
