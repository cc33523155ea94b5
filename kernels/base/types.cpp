#include "kernels/base/types.h"

#include <fmt/format.h>

#include "kernels/base/error.h"

namespace shardmat {

std::string_view name(ValueType type) { return type == ValueType::f32 ? "f32" : "f64"; }
std::string_view name(Backend backend) { return backend == Backend::host ? "host" : "cuda"; }

ValueType parse_value_type(std::string_view text) {
  if (text == "f32") return ValueType::f32;
  if (text == "f64") return ValueType::f64;
  throw Error(ErrorKind::usage, fmt::format("'{}' is no value type; choose f32 or f64", text));
}

}  // namespace shardmat
