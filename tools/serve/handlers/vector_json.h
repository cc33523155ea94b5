// Vectors as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/types.h"
#include "tools/serve/state/vectors.h"

namespace shardmat::serve {

/// A vector that a client asks for.
struct WantedVector {
  std::string matrix;  ///< empty: `size` entries in equal parts
  std::int64_t size = 0, columns = 1;
  std::optional<ValueType> type;
  bool as_y = false;                ///< distributed as y of the matrix
  std::vector<std::string> shared;  ///< patterns of the names of tokens that have it, too
};

/// The body of POST /v1/vectors. Throws Error(input), which says what is wrong, for anything else than the fields that it
/// has.
WantedVector parse_vector(std::string_view body);

/// As these rights see it: only its owner and the owner of the service see whose it is.
nlohmann::ordered_json to_json(const Vector& vector, const Rights& rights);

}  // namespace shardmat::serve
