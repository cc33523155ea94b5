// Files of which each rank of another program wrote one: "IJ.A" stands for IJ.A.00000, IJ.A.00001 …, and "A.%05d.h5" for
// A.00000.h5, A.00001.h5 ….
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace shardmat {

/// True if `name` is no file itself and the first file that it stands for exists. Does not throw.
bool names_rank_files(const std::string& name);

/// True if `name` has a place for the rank's number, such as %05d. No other conversion is one.
bool is_rank_pattern(const std::string& name);

/// The files that `name` stands for, in the order of the ranks: NAME.00000 …, NAME.00000.bin …, or those of a pattern; also
/// if `name` is the first of them. Empty if `name` stands for none. Throws Error(input) if there is a gap: a file of a later
/// rank exists and one before it does not.
std::vector<std::filesystem::path> rank_files(const std::string& name);

/// True if `name` is that of the first file of hypre: NAME.00000 or NAME.00000.bin, whether or not it exists.
bool is_first_rank_file(const std::string& name);

/// The names of so many files, from that of the first one. REQUIRES: is_first_rank_file(first), unless files is 1.
std::vector<std::filesystem::path> rank_file_names(const std::string& first, std::int64_t files);

/// The files in the folder that belong to ranks from `files` on, in the order of the ranks, gaps or not. REQUIRES:
/// is_first_rank_file(first).
std::vector<std::filesystem::path> later_rank_files(const std::string& first, std::int64_t files);

}  // namespace shardmat
