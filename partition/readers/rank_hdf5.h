// Matrices of which each rank of another program wrote its rows to HDF5: one file a rank, named by a pattern such as
// A.%05d.h5, or one file with the groups /rank_00000, /rank_00001 ….
//
// Of each rank, by default (--map gives other names):
//   row_ptr   CSR: rows + 1 pointers from 0; or   rows   COO: the global row of each entry
//   columns   global column of each entry
//   values    its value
//   row_start   the rank's first row: an attribute of the group, or a dataset of one number. CSR only; without it rows
//   follow
//               one another in the order of the ranks
// The sizes of the matrix are the attributes rows and cols of the first rank's group, or what the entries need.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "partition/hdf5/file.h"

namespace shardmat::rank_hdf5 {

/// Names of the datasets, below the rank's group or absolute in the rank's file.
struct Map {
  std::string rowptr = "row_ptr", rows = "rows", columns = "columns", values = "values", start = "row_start";
  bool given = false;
};

/// From "rowptr=/A/ia,columns=/A/ja,values=/A/a". Throws Error(usage) for other keys than rowptr, rows, columns, values and
/// start, and unless there are columns, values, and one of rowptr and rows.
Map parse_map(const std::string& text);

/// True for a pattern of .h5 files, or an HDF5 file whose root has groups rank_N. Does not throw.
bool is_rank_hdf5(const std::filesystem::path& path);

}  // namespace shardmat::rank_hdf5
