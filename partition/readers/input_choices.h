// What a user says about an input file because the file itself does not.
// Ownership: values. Nothing is collective.
// Threads: values; any thread. The same on all ranks.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "kernels/base/error.h"

namespace shardmat {

/// Which numbers of a complex file are read. none: a complex file is refused; else a real file is refused.
enum class ComplexPart { none, real, imaginary };

struct InputChoices {
  std::string format;           ///< name of a reader in readers(), or "shard"; empty: found by content or suffix
  std::optional<int> base;      ///< triplets: the first index, 0 or 1
  std::string triangle{};       ///< triplets: "lower", "upper" or "both"; empty is both
  std::string map{};            ///< per-rank HDF5: where its arrays are, as "rowptr=/A/ia,columns=/A/ja,values=/A/a"
  bool sum_duplicates = false;  ///< per-rank HDF5: entries that several ranks have are summed; hypre: those that come twice
  ComplexPart part = ComplexPart::none;
  /// Called with what looks wrong in a file that can be read nevertheless; may be null.
  std::function<void(const Error&)> warn{};
};

}  // namespace shardmat
