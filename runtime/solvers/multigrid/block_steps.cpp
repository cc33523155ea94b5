#include "runtime/solvers/multigrid/block_steps.h"

#include <type_traits>

#include "kernels/base/known_size.h"
#include "kernels/base/memory_limits.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/multigrid/blocks.h"

namespace shardmat::multigrid {
namespace {}  // namespace

BlockSteps::BlockSteps(const SmootherInputs& inputs) : in_(inputs) {
  const std::int64_t bytes = in_.nodes * in_.size * in_.size * static_cast<std::int64_t>(size_of(in_.type));
  require_memory(in_.device, bytes, "the smoother of a level of multigrid");
  blocks_ = Buffer(in_.device, at(bytes));
}

void BlockSteps::put(const HostVector<double>& blocks, Stream& stream) {
  to_device(blocks_.data(), blocks, in_.type, stream);
}

void BlockSteps::put(const Buffer& blocks, Stream& stream) {
  const krylov::Passes one(in_.device, 1);
  dispatch(in_.type, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    one.run(krylov::ConvertVector<double, T>{blocks.as<double>(), blocks_.as<T>(), 1, nullptr, nullptr, 1},
            in_.nodes * in_.size * in_.size, stream);
  });
  stream.synchronize();
}

void BlockSteps::step(const void* r, void* d, void* x, Step factors, krylov::Before before, Stream& stream) const {
  dispatch(in_.type, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    with_known_size<kMostUnknowns>(in_.size, [&]<int kSize>(std::integral_constant<int, kSize>) {
      in_.passes.run(
          krylov::SmoothBlocks<T, kSize>{blocks_.as<T>(), static_cast<const T*>(r), static_cast<T*>(d), static_cast<T*>(x),
                                         in_.passes.columns(), static_cast<T>(factors.a), static_cast<T>(factors.b), before},
          in_.nodes, stream);
    });
  });
}

void BlockSteps::smooth(krylov::Before before, Stream& stream) const {
  for (const Step& factors : steps_) {
    if (before == krylov::Before::nothing) {
      step(in_.r, in_.a.x(), in_.x, factors, before, stream);
    } else if (in_.a.takes_steps()) {
      const bool corrects = before == krylov::Before::correction;
      in_.a.multiply({blocks_.data(), in_.r, in_.x, nullptr, factors.a, corrects ? 0 : factors.b, corrects}, stream);
    } else {
      in_.a.multiply(-1, 1, in_.r, stream);
      step(in_.r, in_.a.x(), in_.x, factors, before, stream);
    }
    before = krylov::Before::step;
  }
}

std::int64_t BlockSteps::smooth_bytes() const {
  const auto steps = static_cast<std::int64_t>(steps_.size());
  return steps * (5 * in_.a.x_bytes() + device_bytes()) + (steps - 1) * in_.a.compulsory_bytes(1);
}

}  // namespace shardmat::multigrid
