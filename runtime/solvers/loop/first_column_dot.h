// Dot products of vectors whose columns are all alike, on the host of every rank.
//
// Threads: as DistributedMatrix. The constructor and every product are collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "kernels/base/device.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_vector.h"

namespace shardmat {

class FirstColumnDot {
 public:
  /// `wait` returns when the work on the stream of the products is done (Product::wait()).
  FirstColumnDot(Context& context, std::int64_t columns, std::function<void()> wait)
      : sums_(context, columns), wait_(std::move(wait)) {
    context.communicator().run_agreed(
        [&] { on_device_ = Buffer(context.device(), static_cast<std::size_t>(columns) * sizeof(double)); });
  }

  /// Σ_i x[i, 0]·y[i, 0] over all ranks.
  double operator()(const DistributedVector& x, const DistributedVector& y, Stream& stream) {
    sums_.dot(x, y, on_device_.as<double>(), stream);
    wait_();
    double value = 0;
    copy_to_host(&value, on_device_.data(), sizeof value, stream);
    return value;
  }

 private:
  VectorSums sums_;
  std::function<void()> wait_;
  Buffer on_device_;
};

}  // namespace shardmat
