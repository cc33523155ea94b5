#include "kernels/base/types.h"

#include <fmt/format.h>

#include <cmath>

#include "kernels/base/error.h"

namespace shardmat {

std::string_view name(ValueType type) {
  switch (type) {
    case ValueType::f16:
      return "f16";
    case ValueType::bf16:
      return "bf16";
    case ValueType::f32:
      return "f32";
    default:
      return "f64";
  }
}
std::string_view name(Backend backend) { return backend == Backend::host ? "host" : "cuda"; }

ValueType parse_value_type(std::string_view text) {
  for (const ValueType type : {ValueType::f32, ValueType::f64, ValueType::f16, ValueType::bf16})
    if (text == name(type)) return type;
  throw Error(ErrorKind::usage, fmt::format("'{}' is no value type; choose f32, f64, f16 or bf16", text));
}

double rounded(ValueType type, double value) {
  return dispatch_operands(
      type, [&](auto tag, auto) { return static_cast<double>(static_cast<typename decltype(tag)::type>(value)); });
}

void require_in_range(ValueType type, std::span<const double> values, std::string_view what) {
  if (!is_half(type)) return;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i]) && !std::isfinite(rounded(type, values[i])))
      throw Error(ErrorKind::input, fmt::format("entry {} of {} is {}, beyond what {} holds ({}); use {}f32", i + 1, what,
                                                values[i], name(type), type == ValueType::f16 ? "65504" : "3.39e38",
                                                type == ValueType::f16 ? "bf16 or " : ""));
}

void refuse_half(ValueType type) {
  throw Error(ErrorKind::usage,
              fmt::format("{} is for products with several right-hand sides; use f32 or f64 here", name(type)));
}

}  // namespace shardmat
