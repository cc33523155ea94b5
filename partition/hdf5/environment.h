// Environment variables for HDF5 files.
#pragma once

namespace shardmat {

/// Throws Error(usage) if HDF5_DRIVER or HDF5_VOL_CONNECTOR is set, because they make the HDF5 library load and run other
/// code. Call it before the first call of the library.
void refuse_other_hdf5_drivers();

/// True if SHARDMAT_HDF5_LINKS is "follow". Throws Error(usage) if it is anything else.
bool hdf5_links_are_followed();

}  // namespace shardmat
