// An inference request of the Open Inference Protocol (KServe v2), of which a product is one: input x, output y.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/types.h"
#include "tools/serve/words/priority.h"

namespace shardmat::serve {

/// "FP64" or "FP32".
std::string_view datatype_name(ValueType type);

struct InferRequest {
  std::string id;
  std::vector<std::int64_t> shape;  ///< of x: [n] or [k, n]
  ValueType type = ValueType::f64;
  double alpha = 1;
  std::optional<Priority> priority;
  double timeout_seconds = std::numeric_limits<double>::infinity();
  bool binary_output = false;
  std::optional<std::uint64_t> binary_bytes;  ///< x follows the JSON in so many bytes
  std::vector<double> data;                   ///< x, if it does not

  std::int64_t columns() const { return shape.size() == 2 ? shape[0] : 1; }
};

/// Reads the JSON of a request. Throws Error(input), which says what is wrong and what would be right.
InferRequest parse_infer(std::string_view json);

}  // namespace shardmat::serve
