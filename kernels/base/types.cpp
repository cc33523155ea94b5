#include "kernels/base/types.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "kernels/base/error.h"
#include "kernels/base/first_where.h"

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

// Halfway from the largest value to the power of two behind it.
double least_out_of_range(ValueType type) {
  switch (type) {
    case ValueType::f16:
      return 65520;
    case ValueType::bf16:
      return 0x1p128 - 0x1p119;
    case ValueType::f32:
      return 0x1p128 - 0x1p103;
    default:
      return std::numeric_limits<double>::infinity();
  }
}

void require_in_range(ValueType type, const ValueView& values, std::string_view what) {
  if (type == ValueType::f64 || (type == ValueType::f32 && values.is_narrow())) return;
  const double limit = least_out_of_range(type);
  const auto beyond = [&](double value) { return std::abs(value) >= limit && std::isfinite(value); };
  const auto first = first_where(static_cast<std::int64_t>(values.size()), 1 << 16,
                                 [&](std::int64_t i) { return beyond(values[static_cast<std::size_t>(i)]); });
  if (first) refuse_out_of_range(type, *first, values[static_cast<std::size_t>(*first)], what);
}

void refuse_out_of_range(ValueType type, std::int64_t index, double value, std::string_view what) {
  const double magnitude = std::abs(value);
  const auto holds = [&](ValueType other) { return magnitude < least_out_of_range(other); };
  throw Error(ErrorKind::input,
              fmt::format("entry {} of {} is {}, beyond what {} holds ({}); use {}", index + 1, what, value, name(type),
                          type == ValueType::f16    ? "65504"
                          : type == ValueType::bf16 ? "3.39e38"
                                                    : "3.4e38",
                          !holds(ValueType::f32)                             ? "f64"
                          : type == ValueType::f16 && holds(ValueType::bf16) ? "bf16 or f32"
                                                                             : "f32"));
}

void refuse_half(ValueType type) {
  throw Error(ErrorKind::usage,
              fmt::format("{} is for products with several right-hand sides; use f32 or f64 here", name(type)));
}

}  // namespace shardmat
