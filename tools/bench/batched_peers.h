// What batches are multiplied with elsewhere: the vendor's libraries, called as well as their manuals allow.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/batched/device_batch.h"

namespace shardmat::tools {

/// Y = A X of a whole batch, everything row-major and stacked, leading dimensions `columns`. All of it outlives the peer.
struct PeerInput {
  const BatchView& host;
  const DeviceBatch& batch;  ///< in compressed rows, f32 or f64
  const void* x;
  void* y;
  std::int64_t columns;

  /// True if all matrices have as many rows and as many columns as each other …
  bool one_shape() const;
  /// … and as many nonzeros.
  bool one_pattern_size() const;
};

/// Ready to run any number of times in streams of the device; may be recorded into a Graph.
class BatchedPeer {
 public:
  virtual ~BatchedPeer() = default;
  virtual void multiply(Stream& stream) = 0;
  /// Copies to the device what multiply() reads beside matrices, X and Y: pointers. From page-locked memory, in stream
  /// order.
  virtual void place(Stream&) {}
  virtual bool has_descriptors() const { return false; }

  std::string choice;  ///< algorithms and versions, for the report
};

using Peers = std::vector<std::unique_ptr<BatchedPeer>>;

struct PeerKind {
  std::string_view name;     ///< "cusparse_plain"
  std::string_view heading;  ///< of columns
  bool plain = false;        ///< timed as calls on a stream …
  int in_graph = 0;          ///< … and as a graph of so many products; 0: only the former, 1: one, launched over and over
  /// Why it does not take this batch; empty if it does.
  std::string (*why_not)(const PeerInput& input);
  /// The ways to do it, of which the fastest counts.
  Peers (*make)(const PeerInput& input, Stream& stream) = nullptr;
};

/// None in a build without CUDA.
std::span<const PeerKind> batched_peers();

Peers make_cusparse_plain(const PeerInput& input, Stream& stream);
Peers make_cusparse_graph(const PeerInput& input, Stream& stream);
Peers make_cusparse_strided(const PeerInput& input, Stream& stream);
Peers make_cusparse_block_diagonal(const PeerInput& input, Stream& stream);
Peers make_cublas_gemm_batched(const PeerInput& input, Stream& stream);
Peers make_cublas_gemm_strided(const PeerInput& input, Stream& stream);

}  // namespace shardmat::tools
