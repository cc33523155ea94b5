// Asks the HDF5 library what a file holds. For the helper program only: over damaged metadata the library may crash.
#pragma once

#include <string>
#include <vector>

#include "partition/hdf5/description.h"

namespace shardmat {

/// Describes the root (its attributes and the names in it) and each of `objects` that exists: a dataset with where its
/// numbers lie, a group with all that is below it. `descriptor` is open for reading. Throws Error(input) with HDF5's reason
/// if it is no HDF5 file.
Hdf5Description survey_hdf5(int descriptor, const std::vector<std::string>& objects);

}  // namespace shardmat
