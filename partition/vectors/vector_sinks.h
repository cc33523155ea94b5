// Where a VectorWriter puts vectors: HDF5, .npy, Matrix Market arrays, and the files of several ranks.
//
// Threads: one thread at a time uses a sink.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "partition/files/atomic_files.h"
#include "partition/vectors/vector_formats.h"

namespace shardmat {

/// For `size` rows of `columns` values. `f32`: values are stored in f32. Files outlive their sinks.
std::unique_ptr<VectorSink> make_hdf5_sink(const AtomicFile& file, const std::string& dataset, std::int64_t size, bool f32,
                                           std::int64_t columns);
std::unique_ptr<VectorSink> make_npy_sink(const AtomicFile& file, std::int64_t size, bool f32, std::int64_t columns);
std::unique_ptr<VectorSink> make_array_sink(const AtomicFile& file, std::int64_t size, std::int64_t columns);
/// REQUIRES: a format with make_part_sink.
std::unique_ptr<VectorSink> make_sink_of_parts(const VectorFormat& format, const AtomicFiles& files, std::int64_t size,
                                               std::int64_t columns);

}  // namespace shardmat
