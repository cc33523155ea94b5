// New values for a stored matrix without another conversion: from which entry of the caller's values each place of the
// storage's value arrays is filled. The map knows no format. It is made by sending the entries' numbers through the format's
// own update(), as values, in as many digits as the storage's type needs to hold them exactly: one pass for f64, two for f32
// beyond 2^24 entries, three for f16 and four for bf16 up to 2^32.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/base/host_vector.h"
#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

/// Belongs to one storage, which it does not own. Move-only. Not collective; any thread, one at a time.
class ValueMap {
 public:
  /// `input` holds the matrix that the storage was converted from, or another of its pattern with the nonzeros of each row
  /// in the same order. Nonzero k of it (counted over its rows) has its value at entry positions[k] of the caller's values;
  /// without positions, at entry k. Several nonzeros may share an entry, and entries may belong to no nonzero.
  ///
  /// The storage, and what `input` has as CSR on the device, hold other values for a while and in the end those of `input`.
  /// Until the constructor returns, no product may run on them. Other than the map it takes 8 bytes of host memory a nonzero
  /// while it runs, and what the format's update() takes.
  ///
  /// Throws Error(resources) before it takes memory, Error(usage) for positions that are negative or not one a nonzero,
  /// Error(internal) if storage and input do not belong together or the format breaks the rules of value_arrays(). If a
  /// device fails meanwhile, the values of the storage are undefined.
  ValueMap(Storage& storage, ConversionInput& input, std::span<const std::int64_t> positions = {});

  /// Most bytes that the map of a storage can take, on the storage's device: 4 for each place of its value arrays, 8 if
  /// positions reach 2^32 - 2. `largest_position` is nnz - 1 without positions.
  static std::int64_t most_bytes(const Storage& storage, std::int64_t largest_position);

  /// Writes new values into the storage in stream order: each place gets its entry of `values`, rounded as a conversion
  /// rounds it, and padding gets 0. Products given to the stream later use them. Nothing is allocated or waited for, so that
  /// a Graph can record it. `values` are `count` entries of `values_type` (f64 or f32) in memory of the storage's device,
  /// and must stay until the stream has passed this. What is beyond the range of the storage's type becomes infinite: where
  /// that may be, call require_values_in_range() before.
  ///
  /// Throws Error(usage) for fewer than entries() values or another type, Error(internal) for another storage.
  void update(Storage& storage, const void* values, std::int64_t count, ValueType values_type, Stream& stream) const;

  /// The values that the storage has now, as f64 in the order of the caller's entries; entries without a place are 0. Waits
  /// for the stream. Takes host memory for the result and for the largest array with its sources.
  HostVector<double> read(const Storage& storage, Stream& stream) const;

  /// How many values update() needs: the largest position and one more.
  std::int64_t entries() const { return entries_; }
  /// Bytes of device memory that the map holds. An array whose place i is filled from entry i, as in CSR, takes none.
  std::int64_t bytes() const;

 private:
  struct Array {
    std::int64_t places = 0;
    Buffer sources;  ///< a place: 0 for padding, or the entry's number, counted from 1; nothing if place i has entry i
  };

  void require_same(const Storage& storage) const;
  void find_sources(Storage& storage, ConversionInput& input, std::span<const std::int64_t> positions);
  void check_sources(std::int64_t nonzeros, Stream& stream);

  std::vector<Array> arrays_;
  std::int64_t entries_ = 0;
  bool wide_ = false;  ///< sources are 64-bit instead of 32-bit
  Device device_;
  ValueType type_ = ValueType::f64;
  std::string format_;
};

/// Entries of the caller's values that lie elsewhere in another order: the diagonal of a matrix, for example. Move-only.
class ValuePicker {
 public:
  ValuePicker() = default;
  /// Place i gets entry positions[i], or 0 where that is -1. Throws Error(resources) before it takes memory.
  ValuePicker(std::span<const std::int64_t> positions, Stream& stream);

  /// Writes the places, of `type`, in stream order. `values` as in ValueMap::update().
  void pick(const void* values, ValueType values_type, void* places, ValueType type, Stream& stream) const;
  std::int64_t places() const { return places_; }
  /// Bytes of device memory.
  std::int64_t bytes() const { return static_cast<std::int64_t>(sources_.bytes()); }

 private:
  std::int64_t places_ = 0;
  bool wide_ = false;
  Buffer sources_;
};

/// Throws Error(input) naming `what` and the first of `count` values, f64 or f32 in memory of the stream's device, that is
/// finite and would become infinite in `type`. Returns at once if there can be none (for f64, and f32 in f32); otherwise
/// reads the values once and waits for the stream.
void require_values_in_range(ValueType type, const void* values, std::int64_t count, ValueType values_type,
                             std::string_view what, Stream& stream);

}  // namespace shardmat
