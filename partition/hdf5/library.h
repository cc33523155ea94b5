// Checked calls of the HDF5 library: each succeeds or throws an Error with the place and HDF5's own reason. For the writer
// and the helper program; readers do not use the library. The library has global state: only one thread of a process may be
// inside it at a time.
#pragma once

#include <fmt/format.h>
#include <hdf5.h>

#include <string>
#include <type_traits>

#include "kernels/base/error.h"
#include "partition/hdf5/handle.h"

namespace shardmat {

static_assert(std::is_same_v<hid_t, std::int64_t>, "HDF5 1.10 or newer");

/// Permanently stops HDF5 from printing messages and loading plugins. Silencing only during a call is not enough: after
/// damaged metadata, HDF5 prints more when the process exits.
void silence_hdf5();

/// HDF5's innermost reason for the last failure: the system's message if the error stack has an errno, else the deepest
/// description.
std::string hdf5_reason();

/// The result of an HDF5 call, or an Error "PLACE: cannot WHAT: REASON".
template <class Call>
auto checked_hdf5(ErrorKind kind, const std::string& place, const char* what, Call&& call) {
  silence_hdf5();
  const auto result = call();
  if (result < 0) throw Error(kind, fmt::format("{}: cannot {}: {}", place, what, hdf5_reason()));
  return result;
}

template <herr_t (*close)(hid_t)>
int close_quietly(std::int64_t id) {
  silence_hdf5();
  return close(id);
}

}  // namespace shardmat
