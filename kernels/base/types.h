// The closed list of value types and backends, and the one place where a run-time type becomes a C++ type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardmat {

/// Storage and arithmetic type of matrix values and vectors, chosen at run time.
enum class ValueType { f32, f64 };

/// Where the work of a rank runs: threads of the host, or one CUDA device.
enum class Backend { host, cuda };

/// Bytes of one value.
constexpr std::size_t size_of(ValueType type) { return type == ValueType::f32 ? 4 : 8; }

/// Unit roundoff u: 2^-24 for f32, 2^-53 for f64.
constexpr double unit_roundoff(ValueType type) { return type == ValueType::f32 ? 0x1p-24 : 0x1p-53; }

std::string_view name(ValueType type);
std::string_view name(Backend backend);

/// Parses "f32" or "f64"; throws Error(usage) naming the choices otherwise.
ValueType parse_value_type(std::string_view text);

template <class T>
struct TypeTag {
  using type = T;
};

/// Calls f(TypeTag<float>{}) or f(TypeTag<double>{}).
template <class F>
decltype(auto) dispatch(ValueType type, F&& f) {
  return type == ValueType::f32 ? f(TypeTag<float>{}) : f(TypeTag<double>{});
}

}  // namespace shardmat
