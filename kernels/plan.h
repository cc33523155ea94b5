// What a chosen kernel is: a matrix stored in a format, with the kernel and policy that multiply it, ready to run.
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

/// A matrix in one storage format on one device. Formats derive from it; kernels of that format cast it back.
struct Storage {
  virtual ~Storage() = default;
  /// Sets device, type and sizes from what is converted. Throws Error(resources) if the columns do not fit 32 bits.
  void describe(const ConversionInput& input, std::int64_t exact_bytes);
  /// From now on products may begin beside the kernel before them in their stream, if that lets them
  /// (Stream::next_may_begin()) and nothing that they read changes meanwhile but entries of x from `first` on: what reads
  /// these waits.
  /// Sets expects_late; nothing happens if the format's kernels or the device cannot (below capability 9.0), or if there is
  /// no memory to find out what has to wait.
  virtual void expect_late([[maybe_unused]] std::int64_t first, [[maybe_unused]] Stream& stream) {}
  /// The arrays that hold the matrix's values; always the same ones in the same order. A value map (value_map.h) writes new
  /// values straight into them and knows nothing else of the format, so a new format keeps three rules:
  ///   - Each array is a whole number of values of `type`. Each nonzero lies at one place of one array, as the type rounds
  ///     it. No other array depends on values, and where a nonzero lies depends on the pattern and the layout alone.
  ///   - All other places are padding, which holds 0 from the conversion on, also where no kernel reads.
  ///   - Format::update() (registry.h) writes all nonzeros, and either leaves padding alone or writes 0 there.
  /// Plans read values from these arrays at every product; none keeps a copy.
  virtual std::vector<const Buffer*> value_arrays() const = 0;

  Device device;
  ValueType type = ValueType::f64;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t nnz = 0;
  std::int64_t bytes = 0;  ///< of all arrays of the format, exact
  std::string format;      ///< name in the registry
  Policy layout;           ///< the format's own tunables (block size, slice height …)
  bool expects_late = false;
};

/// Entries of x that arrive while a product runs.
struct LateX {
  std::int64_t first = 0;  ///< it and those behind it
  double seconds = 0;      ///< that they take to arrive; 0: not known
};

/// Ready to run any number of times, by one stream at a time.
class Plan {
 public:
  virtual ~Plan() = default;

  /// y = alpha·A·x + beta·y in stream order. x has cols and y rows entries of the storage's type, in memory of its device;
  /// they must not overlap. With beta = 0, y is only written, so it may hold NaN.
  virtual void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const = 0;

  /// True if the same plan and x give a bit-identical y in every run.
  virtual bool reproducible() const { return true; }

  /// Bytes of device memory that the plan holds beside the storage.
  virtual std::int64_t extra_bytes() const { return 0; }

  /// Bytes the product must move at least: the format's, the entries of x that its columns touch, and y once (twice if
  /// beta is not 0).
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
