// The two implementations behind choose/value_map.h. Internal to kernels/.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"
#include "kernels/base/host_device.h"
#include "kernels/base/types.h"

namespace shardmat::values {

/// Where the values of `count` places come from: for each place the number of an entry, from 1, or 0 for padding.
struct Sources {
  void* data = nullptr;  ///< uint32, or uint64 if wide
  std::int64_t count = 0;
  bool wide = false;
};

/// Adds the digit `value` at bit `shift` to the digits `before`; all bits set if the value is no valid digit.
template <class Source>
SHARDMAT_HOST_DEVICE inline Source with_digit(Source before, double value, int shift) {
  constexpr Source kNone = ~Source{0};
  if (!(value >= 0 && value < 0x1p53)) return kNone;
  const auto digit = static_cast<std::uint64_t>(value);
  const std::uint64_t all = (shift == 0 ? 0 : before) | digit << shift;
  return static_cast<double>(digit) != value || all > kNone ? kNone : static_cast<Source>(all);
}

/// Counts that check sources before they are used.
struct Counts {
  std::uint64_t filled = 0;        ///< sources other than 0
  std::uint64_t beyond = 0;        ///< sources larger than the number of entries
  std::uint64_t out_of_place = 0;  ///< places i that do not take entry i
};

/// `from`: entries of `from_type`, f64 or f32. `to`: one value of `to_type` for each place.
struct Update {
  const void* from;
  ValueType from_type;
  void* to;
  ValueType to_type;
};

struct ValueMapBackend {
  /// Adds to each source the digit that its place holds as its value.
  void (*add_digits)(ValueType type, const void* values, const Sources& sources, int shift, Stream& stream);
  /// Waits for the result.
  Counts (*count)(const Sources& sources, std::uint64_t entries, Stream& stream);
  /// If sources.data is null, place i takes entry i.
  void (*update)(const Sources& sources, const Update& update, Stream& stream);
  /// to[k] becomes the value in the place of entry k. If sources.data is null, place i holds entry i.
  void (*write_back)(const Sources& sources, const void* from, ValueType from_type, double* to, Stream& stream);
  /// to[k] becomes the number of the place of entry k. If sources.data is null, place i holds entry i.
  void (*put_back)(const Sources& sources, const std::int32_t* of_places, std::int32_t* to, Stream& stream);
  /// Index of the first finite value with a magnitude of at least `limit`, or `count`. Waits for the result.
  std::int64_t (*first_beyond)(double limit, const void* values, std::int64_t count, ValueType values_type, Stream& stream);
  /// The same of the first value that is not finite.
  std::int64_t (*first_not_finite)(const void* values, std::int64_t count, ValueType values_type, Stream& stream);
};

extern const ValueMapBackend host_backend;
extern const ValueMapBackend cuda_backend;

/// Calls f(TypeTag<T>{}) with T the type of the sources.
template <class F>
decltype(auto) dispatch_source(bool wide, F&& f) {
  return wide ? f(TypeTag<std::uint64_t>{}) : f(TypeTag<std::uint32_t>{});
}

}  // namespace shardmat::values
