// What a matrix takes in each storage format of the registry, before anything is converted.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/conversion.h"

namespace shardmat::tools {

struct FormatSize {
  std::string name, layout;  ///< layout: the model's choice, e.g. "slice=32"
  ValueType type = ValueType::f64;
  std::int64_t bytes = 0;  ///< of the stored matrix, exact; 0 if it is not even known
  double seconds = 0;      ///< of one product at the given bandwidth: these bytes, x and y once
  std::string refused;     ///< why the format does not take this matrix; empty if it does
};

/// Every format in one type; `bandwidth` in bytes a second.
std::vector<FormatSize> format_sizes(ConversionInput& input, double bandwidth);

/// One line a format and type, with the reason of a refusal.
std::string format_table(std::span<const FormatSize> sizes, std::int64_t nnz);

}  // namespace shardmat::tools
