// The two implementations behind value_map.h. Internal to kernels/.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"
#include "kernels/base/types.h"

#ifdef __CUDACC__
#define SHARDMAT_HOST_DEVICE __host__ __device__
#else
#define SHARDMAT_HOST_DEVICE
#endif

namespace shardmat::values {

/// Where the values of `count` places come from: for each place 0, or the number of an entry counted from 1.
struct Sources {
  void* data = nullptr;  ///< uint32, or uint64 if wide
  std::int64_t count = 0;
  bool wide = false;
};

/// What is known of a place, with one digit more: `value`, at bit `shift`.
template <class Source>
SHARDMAT_HOST_DEVICE inline Source with_digit(Source before, double value, int shift) {
  constexpr Source kNone = ~Source{0};
  if (!(value >= 0 && value < 0x1p53)) return kNone;
  const auto digit = static_cast<std::uint64_t>(value);
  const std::uint64_t all = (shift == 0 ? 0 : before) | digit << shift;
  return static_cast<double>(digit) != value || all > kNone ? kNone : static_cast<Source>(all);
}

/// What is to be known of sources before they are used.
struct Counts {
  std::uint64_t filled = 0;        ///< not 0
  std::uint64_t beyond = 0;        ///< larger than the number of entries
  std::uint64_t out_of_place = 0;  ///< place i has not entry i
};

/// `from`: entries of `from_type`, f64 or f32; `to`: a value of `to_type` a place.
struct Update {
  const void* from;
  ValueType from_type;
  void* to;
  ValueType to_type;
};

struct ValueMapBackend {
  /// Adds the digit that each place holds as its value.
  void (*add_digits)(ValueType type, const void* values, const Sources& sources, int shift, Stream& stream);
  /// Waits for the result.
  Counts (*count)(const Sources& sources, std::uint64_t entries, Stream& stream);
  /// Without data, place i has entry i.
  void (*update)(const Sources& sources, const Update& update, Stream& stream);
  /// The first of `count` values that is finite and of at least this magnitude, or `count`. Waits for the result.
  std::int64_t (*first_beyond)(double limit, const void* values, std::int64_t count, ValueType values_type, Stream& stream);
};

extern const ValueMapBackend host_backend;
extern const ValueMapBackend cuda_backend;

/// Calls f(Source()) with the type of the sources.
template <class F>
decltype(auto) dispatch_source(bool wide, F&& f) {
  return wide ? f(TypeTag<std::uint64_t>{}) : f(TypeTag<std::uint32_t>{});
}

}  // namespace shardmat::values
