// Packets (Bell, Garland): rows are cut into packets, each with a window of columns that holds as many of its nonzeros as
// possible; these are stored with 16-bit columns counted from the window, and a product stages the window's part of x in
// shared memory. Nonzeros outside the windows go to a CSR rest. Packets are contiguous rows, and windows contiguous columns,
// of the matrix as it comes: an order that brings neighbours together (such as RCM) makes the packets dense, and is not made
// here. A packet whose window holds fewer nonzeros than columns, so that staging would cost more than it saves, has none.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

constexpr std::int64_t kPktSlice = 32;         ///< rows padded to one width: those of a warp
constexpr std::uint16_t kPktPadding = 0xffff;  ///< column of a position without nonzero

/// Where the nonzeros are; kept on the host for new values.
struct PktPattern {
  std::int64_t packet_rows = 0;
  HostVector<std::int32_t> window_first;    ///< a packet: first column of its window
  HostVector<std::int32_t> window_columns;  ///< a packet: columns of its window, 0 if it has none
  HostVector<std::int64_t> inside_first;    ///< a row: its first nonzero inside the window; those inside are neighbours
  HostVector<std::int64_t> slice_ptr;       ///< a slice of 32 rows and one more: offsets into the padded arrays
  HostVector<std::int64_t> rest_ptr;        ///< rows + 1 offsets into the rest

  std::int64_t packets() const { return static_cast<std::int64_t>(window_first.size()); }
};

struct PktStorage final : Storage {
  std::vector<const Buffer*> value_arrays() const override { return {&local_values, &rest_values}; }

  std::shared_ptr<const PktPattern> pattern;
  std::int64_t widest_window = 0;  ///< columns
  bool wide_offsets = false;       ///< slice_ptr and rest_ptr hold int64 instead of int32
  Buffer window_first;             ///< int32
  Buffer window_columns;           ///< int32
  Buffer slice_ptr;
  Buffer local_columns;  ///< uint16, column by column within a slice, kPktPadding where there is none
  Buffer local_values;   ///< likewise
  Buffer rest_ptr;
  Buffer rest_columns;  ///< int32
  Buffer rest_values;
};

std::vector<Policy> pkt_layouts(ConversionInput& input);
std::int64_t pkt_bytes(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_pkt(ConversionInput& input, const Policy& layout);
void update_pkt(Storage& storage, ConversionInput& input);

std::unique_ptr<Plan> make_pkt_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
std::unique_ptr<Plan> make_pkt(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

}  // namespace shardmat
