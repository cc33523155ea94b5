// Steps with the inverse of a block diagonal matrix.
#pragma once

#include <vector>

#include "runtime/solvers/multigrid/smoother.h"

namespace shardmat::multigrid {

/// A step is d = a·M·r + b·d, x = x + d; M: a block for each node.
class BlockSteps : public Smoother {
 public:
  struct Step {
    double a, b;
  };
  explicit BlockSteps(const SmootherInputs& inputs);

  void take(const NodeRows&, const HostVector<double>& inverse, double, Stream& stream) override { put(inverse, stream); }
  using Smoother::take;
  /// Takes the blocks of M.
  void put(const HostVector<double>& blocks, Stream& stream);
  /// The same in f64 on the device.
  void put(const Buffer& blocks, Stream& stream);
  void smooth(krylov::Before before, Stream& stream) const override;
  void step(const void* r, void* d, void* x, Step factors, krylov::Before before, Stream& stream) const;
  std::int64_t device_bytes() const override { return static_cast<std::int64_t>(blocks_.bytes()); }
  std::int64_t smooth_bytes() const override;

 protected:
  SmootherInputs in_;
  std::vector<Step> steps_;

 private:
  Buffer blocks_;
};

}  // namespace shardmat::multigrid
