// New values for a stored matrix without another conversion. The map says which of the caller's values belongs in each place
// of the storage's value arrays. It knows no format: to make the map, the format's own update() stores the numbers of the
// caller's entries as if they were values. If the storage's type cannot hold these numbers exactly, they are stored digit by
// digit: one pass for f64, two for f32 beyond 2^24 entries, three for f16 and four for bf16 up to 2^32.
#pragma once

#include <cstdint>
#include <optional>
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
  /// `input` holds the matrix from which the storage was converted, or a matrix of the same pattern with the nonzeros of
  /// each row in the same order. Nonzero k of `input` (counted row by row) takes entry positions[k] of the caller's values;
  /// without positions, entry k. Several nonzeros may share an entry, and entries may belong to no nonzero.
  ///
  /// The constructor overwrites the values of the storage, and of input.csr(), and sets them to those of `input` before it
  /// returns. No product may run on them meanwhile. Besides the map, it takes 8 bytes of host memory a nonzero and the
  /// memory of the format's update().
  ///
  /// Throws Error(resources) before it allocates, Error(usage) for a format that takes no new values, for negative
  /// positions or a wrong number of positions, Error(internal) if storage and input do not belong together or the format
  /// breaks the rules of value_arrays(). If the device fails, the values of the storage are undefined.
  ValueMap(Storage& storage, ConversionInput& input, std::span<const std::int64_t> positions = {});

  /// Upper bound of the map's device memory for a storage: 4 bytes for each place of its value arrays, 8 if positions reach
  /// 2^32 - 2. Without positions, `largest_position` is nnz - 1.
  static std::int64_t most_bytes(const Storage& storage, std::int64_t largest_position);

  /// Writes new values into the storage in stream order: each place gets its entry of `values`, rounded as in a conversion;
  /// padding gets 0. Later products on the stream use the new values. Does not allocate or wait, so a Graph can record it.
  /// `values` has `count` entries of `values_type` (f64 or f32) in memory of the storage's device, and must stay valid until
  /// the stream has passed this call. Values beyond the range of the storage's type become infinite; call
  /// require_values_in_range() first to refuse such values.
  ///
  /// Throws Error(usage) for fewer than entries() values or another values_type, Error(internal) for another storage.
  void update(Storage& storage, const void* values, std::int64_t count, ValueType values_type, Stream& stream) const;

  /// Writes the present value of each entry, in stream order, to `to`, which has entries() in memory of the storage's
  /// device; entries without a place keep what is there. Throws Error(internal) for another storage.
  void write_values(const Storage& storage, double* to, Stream& stream) const;

  /// The same of the column of each entry. False: the format cannot tell (place_columns.h). Throws also Error(resources).
  bool write_columns(const Storage& storage, std::int32_t* to, Stream& stream) const;

  /// Reads the present values of the storage, as f64 in the order of the caller's entries; entries without a place are 0.
  /// Waits for the stream. Takes host memory for the result and for the largest value array with its sources.
  HostVector<double> read(const Storage& storage, Stream& stream) const;

  /// The place of each of the caller's entries, counted through all value arrays, one after another; -1 for an entry that
  /// has none. Waits for the stream. REQUIRES: each entry has one place at most.
  HostVector<std::int64_t> places(Stream& stream) const;

  /// Number of values that update() needs: the largest position + 1.
  std::int64_t entries() const { return entries_; }
  /// Bytes of device memory that the map holds. An array where place i takes entry i, as in CSR, needs none.
  std::int64_t bytes() const;

 private:
  struct Array {
    std::int64_t places = 0;
    Buffer sources;  ///< for each place the number of its entry, from 1; 0 for padding. Empty if place i takes entry i
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

/// Copies some of the caller's values to another array, e.g. the diagonal of a matrix. Move-only.
class ValuePicker {
 public:
  ValuePicker() = default;
  /// Place i gets entry positions[i], or 0 if positions[i] is -1. Throws Error(resources) before it allocates.
  ValuePicker(std::span<const std::int64_t> positions, Stream& stream);

  /// Writes places(), as values of `type`, in stream order. `values`: as in ValueMap::update().
  void pick(const void* values, ValueType values_type, void* places, ValueType type, Stream& stream) const;
  std::int64_t places() const { return places_; }
  /// Bytes of device memory.
  std::int64_t bytes() const { return static_cast<std::int64_t>(sources_.bytes()); }

 private:
  std::int64_t places_ = 0;
  bool wide_ = false;
  Buffer sources_;
};

/// Throws Error(input) if a finite value would become infinite in `type`; the message has `what` and the first such value.
/// `values` has `count` values, f64 or f32, in memory of the stream's device. Returns at once if no value can overflow (f64,
/// and f32 in f32); otherwise reads the values once and waits for the stream.
void require_values_in_range(ValueType type, const void* values, std::int64_t count, ValueType values_type,
                             std::string_view what, Stream& stream);

/// The first of the values that is NaN or infinite, if there is one; as above. Waits for the stream.
std::optional<std::int64_t> first_not_finite(const void* values, std::int64_t count, ValueType values_type, Stream& stream);

}  // namespace shardmat
