// Packets (Bell, Garland): rows are cut into packets. Each packet has a window of columns that holds as many of its nonzeros
// as possible. Nonzeros in the window are stored with 16-bit columns relative to the window, and a product copies the
// window's part of x to shared memory. Nonzeros outside the windows are stored as CSR (the rest). Packets are contiguous
// rows and windows contiguous columns, of the matrix as it is (cluster=0) or with rows and columns in an order of clusters
// (cluster=1; square matrices): packets are then clusters, and a product reads x and writes y through the permutation, whose
// bytes count. A packet has no window if it would hold fewer nonzeros than columns, because the copy would not pay.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

constexpr std::int64_t kPktSlice = 32;         ///< rows padded to the same width: those of a warp
constexpr std::uint16_t kPktPadding = 0xffff;  ///< column of a position without nonzero

/// Where the nonzeros are; kept on the host for new values.
struct PktPattern {
  std::int64_t packet_rows = 0;
  HostVector<std::int32_t> window_first;    ///< for each packet: first column of its window
  HostVector<std::int32_t> window_columns;  ///< for each packet: number of columns of its window; 0: no window
  HostVector<std::int64_t> inside_first;    ///< for each row: its first nonzero inside the window; the others follow it
  HostVector<std::int64_t> slice_ptr;       ///< for each slice of 32 rows, + 1: offsets into the padded arrays
  HostVector<std::int64_t> rest_ptr;        ///< rows + 1 offsets into the rest

  /// With clusters; else empty. Rows and nonzeros above are then those of the reordered matrix.
  HostVector<std::int64_t> order;    ///< order[new row] = row
  HostVector<std::int64_t> row_ptr;  ///< of the reordered matrix
  HostVector<std::int64_t> columns;  ///< reordered, ascending in each row
  HostVector<std::int64_t> entries;  ///< for each nonzero its place in the matrix as it is

  std::int64_t packets() const { return static_cast<std::int64_t>(window_first.size()); }
};

struct PktStorage final : Storage {
  std::vector<const Buffer*> value_arrays() const override { return {&local_values, &rest_values}; }

  std::shared_ptr<const PktPattern> pattern;
  std::int64_t widest_window = 0;  ///< columns
  bool wide_offsets = false;       ///< slice_ptr and rest_ptr hold int64 instead of int32
  Buffer order;                    ///< int32 for each row, or empty: the row and column that it is
  Buffer window_first;             ///< int32
  Buffer window_columns;           ///< int32
  Buffer slice_ptr;
  Buffer local_columns;  ///< uint16, column by column within a slice; kPktPadding at positions without nonzero
  Buffer local_values;   ///< in the same order
  Buffer rest_ptr;
  Buffer rest_columns;  ///< int32, columns of the matrix as it is
  Buffer rest_values;
};

std::vector<Policy> pkt_layouts(ConversionInput& input);
std::int64_t pkt_bytes(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_pkt(ConversionInput& input, const Policy& layout);
void update_pkt(Storage& storage, ConversionInput& input);

std::unique_ptr<Plan> make_pkt_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
std::unique_ptr<Plan> make_pkt(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

}  // namespace shardmat
