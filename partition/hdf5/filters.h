// Undoes the filters of HDF5 chunks: deflate, shuffle and fletcher32. Each checks the size of its result. (HDF5 1.10 does
// not check sizes, and leaves uninitialised memory if a chunk is too short.)
#pragma once

#include <string>
#include <vector>

#include "partition/hdf5/description.h"

namespace shardmat {

/// Throws Error(input), which names `place` and the remedy, for a filter that is not supported here.
void require_known_filters(const std::vector<Hdf5Filter>& filters, const std::string& place);

/// The most bytes that `stored_bytes` can expand to; deflate reaches at most 1032 : 1.
std::int64_t most_filtered_bytes(const std::vector<Hdf5Filter>& filters, std::int64_t stored_bytes);

/// Undoes the filters of one chunk; its numbers have `element_bytes` bytes each. Replaces the stored chunk in `bytes` by the
/// numbers. Throws Error(input), which names `place`, if the result does not have `chunk_bytes` bytes, or a checksum
/// differs.
void undo_filters(const std::vector<Hdf5Filter>& filters, std::string& bytes, std::int64_t chunk_bytes, int element_bytes,
                  const std::string& place);

}  // namespace shardmat
