// Names of value types in requests, replies and files of the service.
#pragma once

#include <optional>
#include <string_view>

#include "kernels/base/types.h"

namespace shardmat::serve {

/// The types that are served.
constexpr std::string_view type_name(ValueType type) { return type == ValueType::f32 ? "f32" : "f64"; }
constexpr std::optional<ValueType> parse_type(std::string_view text) {
  return text == "f64" ? std::optional(ValueType::f64) : text == "f32" ? std::optional(ValueType::f32) : std::nullopt;
}

}  // namespace shardmat::serve
