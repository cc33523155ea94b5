// A plan: a matrix stored in a format, with the kernel and policy that multiply it, ready to run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/base/types.h"
#include "kernels/policy.h"

namespace shardmat {

class ConversionInput;

/// A matrix in one storage format on one device. Formats derive from it; the kernels of a format cast it back.
struct Storage {
  virtual ~Storage() = default;
  /// Sets device, type and sizes from `input`. Throws Error(resources) if the columns do not fit 32 bits.
  void describe(const ConversionInput& input, std::int64_t exact_bytes);
  /// Lets later products overlap the kernel before them in their stream, if this kernel allows it
  /// (Stream::next_may_begin()). Rows that read x[first …] wait for that kernel; all other rows start at once. REQUIRES:
  /// meanwhile nothing else that a product reads changes. Sets expects_late. Does nothing if the format's kernels or the
  /// device cannot overlap (compute capability below 9.0), or if there is no memory to find the rows that wait.
  virtual void expect_late([[maybe_unused]] std::int64_t first, [[maybe_unused]] Stream& stream) {}
  /// The arrays that hold the matrix's values: always the same arrays in the same order. A value map (choose/value_map.h)
  /// writes new values directly into them and knows nothing else about the format, so every format obeys three rules:
  ///   - Each array is a whole number of values of `type`. Each nonzero has one place in one array, rounded to `type`. Its
  ///     place depends only on the pattern and the layout. No other array depends on values.
  ///   - All other places are padding. Padding is 0 after the conversion, even where no kernel reads it.
  ///   - Format::update() (registry.h) writes all nonzeros, and either leaves padding alone or writes 0 there.
  /// Plans read values from these arrays in every product and keep no copy.
  virtual std::vector<const Buffer*> value_arrays() const = 0;

  Device device;
  ValueType type = ValueType::f64;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t nnz = 0;
  std::int64_t bytes = 0;  ///< exact bytes of all arrays of the format
  std::string format;      ///< name in the registry
  Policy layout;           ///< the format's own tunables (block size, slice height …)
  bool expects_late = false;
};

/// True if plans of a kernel with this layout and policy sum each row in a fixed order: the same for all such plans of the
/// layout, and for any number of right-hand sides.
using SumsInOrder = bool (*)(ValueType type, const Policy& layout, const Policy& policy);

/// Entries of x that may arrive while a product runs: x[first …].
struct LateX {
  std::int64_t first = 0;
  double seconds = 0;  ///< until the entries have arrived; 0: not known
};

/// May run any number of times, on one stream at a time.
class Plan {
 public:
  virtual ~Plan() = default;

  /// y = alpha·A·x + beta·y in stream order. x has cols and y has rows entries of the storage's type, in memory of
  /// its device; x and y must not overlap. With beta = 0, y is only written, so it may hold NaN.
  virtual void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const = 0;

  /// Number of partial sums of multiply_with_dot(), which the caller adds; 0 if the kernel does not have it. It may change
  /// with Storage::expect_late().
  virtual std::int64_t dot_parts() const { return 0; }
  /// y = A·x in stream order. Also writes partial sums in f64 of own·y to parts[0 … dot_parts()): the dot product that
  /// methods for symmetric matrices need, without a pass that reads both vectors again. own: one entry a row; x and own may
  /// overlap. Each part is formed in a fixed order. REQUIRES: dot_parts() > 0.
  virtual void multiply_with_dot(const void* x, const void* own, void* y, double* parts, Stream& stream) const;

  /// True if the same plan and x give a bit-identical y in every run.
  virtual bool reproducible() const { return true; }

  /// Bytes of device memory that the plan holds, without the storage.
  virtual std::int64_t extra_bytes() const { return 0; }

  /// The least number of bytes that a product moves: the format's bytes, the entries of x that the matrix reads, and y once
  /// (twice if beta is not 0).
  std::int64_t compulsory_bytes(std::int64_t x_entries, double beta = 0) const {
    const auto value = static_cast<std::int64_t>(size_of(storage_->type));
    return storage_->bytes + value * (x_entries + storage_->rows * (beta == 0 ? 1 : 2));
  }

  const Storage& storage() const { return *storage_; }
  Storage& storage() { return *storage_; }
  const std::shared_ptr<Storage>& shared_storage() const { return storage_; }
  std::string kernel;  ///< name in the registry
  Policy policy;       ///< the kernel's tunables
  /// The tunables of format and kernel, e.g. "slice=32,block_size=128"; empty if there are none.
  std::string tunables() const;

 protected:
  explicit Plan(std::shared_ptr<Storage> storage) : storage_(std::move(storage)) {}

 private:
  std::shared_ptr<Storage> storage_;
};

}  // namespace shardmat
