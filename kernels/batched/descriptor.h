// A descriptor tells a kernel where matrices, or groups of matrices, begin. A short descriptor travels in the arguments of
// every product, so that a new batch costs no launch more. A longer one is sent to work memory once. The device then
// computes for each row where the row's matrix begins in the stacked X.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/base/host_device.h"
#include "kernels/batched/device_batch.h"
#include "kernels/batched/matrix_of.h"

namespace shardmat::batched {

/// Words of the longest descriptor that fits into the arguments of a kernel, besides its other arguments.
constexpr std::size_t kWordsOfLaunch = 960;
/// As many are enough for most short descriptors. Kernels with fewer bytes of arguments start sooner.
constexpr std::size_t kFewWordsOfLaunch = 256;
constexpr bool travels_with_launch(std::size_t words) { return words <= kWordsOfLaunch; }

/// A descriptor as an argument of a kernel. The kernel may read it before earlier kernels are done.
template <std::size_t kWords>
struct Descriptor {
  static constexpr bool in_arguments = true;
  alignas(16) std::int32_t of[kWords];

  explicit Descriptor(const std::vector<std::int32_t>& words) { std::copy(words.begin(), words.end(), of); }
};
/// A descriptor in work memory.
template <>
struct Descriptor<0> {
  static constexpr bool in_arguments = false;
  const std::int32_t* of;
};

/// Where in the stacked X the matrix of each row begins. If all matrices have one shape, it is computed from the shape
/// alone. Else it is looked up in the descriptor, or, if that is in work memory, in a list after the descriptor with an
/// entry for each row. Positions count 4-byte words from the start of the descriptor.
class RowShifts {
 public:
  /// Appends what a look-up needs to the descriptor.
  RowShifts(std::vector<std::int32_t>& descriptor, const BatchOffsets& at);
  RowShifts() = default;

  /// Rows in the list; 0: there is no list.
  std::int32_t listed() const { return listed_; }
  /// Bytes of descriptor and list.
  std::size_t bytes() const { return (list_ + static_cast<std::size_t>(listed_)) * sizeof(std::int32_t); }
  /// The list.
  SHARDMAT_HOST_DEVICE const std::int32_t* of(const void* work) const {
    return static_cast<const std::int32_t*>(work) + list_;
  }
  SHARDMAT_HOST_DEVICE bool one_shape() const { return inverse_ != 0; }

  /// What the list says of a row, without the list. Rows after the last one get what the last row has.
  SHARDMAT_HOST_DEVICE std::int32_t look_up(const std::int32_t* descriptor, std::int32_t row) const {
    row = row < rows_ ? row : rows_ - 1;
    if (one_shape())
      return static_cast<std::int32_t>((static_cast<std::uint64_t>(row) * inverse_) >> inverse_shift_) * cols_;
    std::int32_t matrix = 0, count = count_;
    if (stretches_ >= 0) {
      const std::int32_t* const stretch = descriptor + stretches_ + (row >> stretch_log_);
      matrix = stretch[0], count = stretch[1] - matrix + 1;
    }
    return descriptor[first_col_ + matrix + matrix_of(row, descriptor + first_row_ + matrix, count)];
  }

 private:
  std::int32_t first_row_ = 0, first_col_ = 0;  ///< positions of the first rows and first columns of the matrices
  /// Position of the matrices in which stretches of 2^stretch_log_ rows begin, and the last matrix; negative: they are left
  /// out, because a descriptor with them would not fit into the arguments of a kernel.
  std::int32_t stretches_ = -1, stretch_log_ = 0;
  std::int32_t count_ = 0;
  std::size_t list_ = 0;
  std::int32_t rows_ = 0, listed_ = 0;
  // Of matrices with one shape: row · inverse_ / 2^inverse_shift_ is the matrix of a row, cols_ their numbers of columns.
  std::uint64_t inverse_ = 0;
  std::int32_t inverse_shift_ = 0, cols_ = 0;
};

}  // namespace shardmat::batched

namespace shardmat::cuda {

#ifdef SHARDMAT_HAVE_CUDA
/// Copies the descriptor to `work` and fills the list, in stream order. A short descriptor travels in the arguments of a
/// kernel. A longer one is copied to `staging` first, which must stay valid until the stream has passed this call.
void place_descriptor(const std::vector<std::int32_t>& descriptor, const batched::RowShifts& shifts, void* work,
                      void* staging, Stream& stream);
#else
inline void place_descriptor(const std::vector<std::int32_t>&, const batched::RowShifts&, void*, void*, Stream&) {}
#endif

}  // namespace shardmat::cuda
