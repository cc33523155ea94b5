// Asks the HDF5 library for the contents of a file. For the helper program only, because damaged metadata may crash the
// library.
#pragma once

#include <string>
#include <vector>

#include "partition/hdf5/description.h"

namespace shardmat {

/// Describes the root (its attributes and names) and all existing `objects`: a dataset with the positions of its numbers, a
/// group with its whole contents. `descriptor` is open for reading. Throws Error(input) with HDF5's reason if the file is no
/// HDF5 file.
Hdf5Description survey_hdf5(int descriptor, const std::vector<std::string>& objects);

}  // namespace shardmat
