// The filters of HDF5 chunks, undone: deflate, shuffle and fletcher32, each with the size that must come out. (HDF5 1.10
// does not compare sizes, and leaves what was in memory where a chunk is short.)
#pragma once

#include <string>
#include <vector>

#include "partition/hdf5/description.h"

namespace shardmat {

/// Throws Error(input) naming `place` and the remedy if there is a filter that is not undone here.
void require_known_filters(const std::vector<Hdf5Filter>& filters, const std::string& place);

/// The most bytes that `stored_bytes` can come to; deflate reaches 1032 : 1 at most.
std::int64_t most_filtered_bytes(const std::vector<Hdf5Filter>& filters, std::int64_t stored_bytes);

/// Undoes the filters of one chunk, whose numbers have `element_bytes` each. `bytes` holds the chunk as stored, and after it
/// the numbers. Throws Error(input) naming `place` if that gives other than `chunk_bytes`, or if a checksum differs.
void undo_filters(const std::vector<Hdf5Filter>& filters, std::string& bytes, std::int64_t chunk_bytes, int element_bytes,
                  const std::string& place);

}  // namespace shardmat
