// The closed list of value types and backends, and the one place where a run-time type becomes a C++ type.
// Ownership: values. Nothing is collective.
// Threads: values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/base/half.h"
#include "kernels/base/number_view.h"

namespace shardmat {

/// Type of matrix values and vectors, chosen at run time. f16 and bf16 are types of the matrix and of X only; sums and Y are
/// then f32. Only products with several right-hand sides support them.
enum class ValueType { f32, f64, f16, bf16 };

/// Where the work of a rank runs: threads of the host, or one CUDA device.
enum class Backend { host, cuda };

/// Bytes of one value.
constexpr std::size_t size_of(ValueType type) { return type == ValueType::f64 ? 8 : type == ValueType::f32 ? 4 : 2; }

constexpr bool is_half(ValueType type) { return type == ValueType::f16 || type == ValueType::bf16; }

/// Type of sums and of results.
constexpr ValueType sum_type(ValueType type) { return is_half(type) ? ValueType::f32 : type; }

/// Unit roundoff u of sums: 2^-53 for f64, else 2^-24.
constexpr double unit_roundoff(ValueType type) { return type == ValueType::f64 ? 0x1p-53 : 0x1p-24; }

/// The nearest value of the type.
double rounded(ValueType type, double value);

/// The least magnitude that rounds to infinity in the type; infinity for f64.
double least_out_of_range(ValueType type);
/// Throws Error(input) naming `what` if a finite value would become infinite in the type.
void require_in_range(ValueType type, const ValueView& values, std::string_view what);
/// Throws the error of require_in_range() for the value at `index` (from 0).
[[noreturn]] void refuse_out_of_range(ValueType type, std::int64_t index, double value, std::string_view what);

std::string_view name(ValueType type);
std::string_view name(Backend backend);

/// Throws Error(usage) naming the choices for any other text.
ValueType parse_value_type(std::string_view text);

template <class T>
struct TypeTag {
  using type = T;
};

/// Throws Error(usage), which says that f16 and bf16 are not supported here.
[[noreturn]] void refuse_half(ValueType type);

/// Calls f(TypeTag<float>{}) or f(TypeTag<double>{}); throws Error(usage) for other types.
template <class F>
decltype(auto) dispatch(ValueType type, F&& f) {
  if (is_half(type)) refuse_half(type);
  return type == ValueType::f32 ? f(TypeTag<float>{}) : f(TypeTag<double>{});
}

/// Calls f(TypeTag<type>{}, TypeTag<sum_type>{}) for every type.
template <class F>
decltype(auto) dispatch_operands(ValueType type, F&& f) {
  switch (type) {
    case ValueType::f16:
      return f(TypeTag<F16>{}, TypeTag<float>{});
    case ValueType::bf16:
      return f(TypeTag<Bf16>{}, TypeTag<float>{});
    case ValueType::f32:
      return f(TypeTag<float>{}, TypeTag<float>{});
    default:
      return f(TypeTag<double>{}, TypeTag<double>{});
  }
}

}  // namespace shardmat
