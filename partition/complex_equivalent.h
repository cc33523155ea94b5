// Complex matrices and vectors as real ones: each value a + ib becomes the block [a -b; b a], each number of a vector the
// real and the imaginary part, one behind the other. Unknowns 2i and 2i + 1 are the parts of x_i, so a node has two
// unknowns, and products and solvers take blocks of 2 × 2.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "partition/readers/reader.h"
#include "partition/source/row_source.h"

namespace shardmat {

/// The real equivalent of FILE or FILE:OBJECT. Reads the file twice, and keeps both matrices in memory. Throws as
/// read_matrix(), and Error(input) for a matrix with real values, or in a format that is not read with complex ones.
std::unique_ptr<RowSource> real_equivalent(const std::string& argument, const ReadOptions& options);

/// Whether the file is a .npy file or a Matrix Market array: a vector, or some of them as columns.
bool is_dense_file(const std::filesystem::path& path);

/// Writes the real equivalent of a complex vector (n × columns) as 2n × columns real numbers. Returns n.
std::int64_t write_real_vector(const std::filesystem::path& from, const std::filesystem::path& to);
/// The way back, into a .npy or .mtx file. Throws Error(usage) for another suffix, and Error(input) if the number of rows is
/// odd. Returns n.
std::int64_t write_complex_vector(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace shardmat
