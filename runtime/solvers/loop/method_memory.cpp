#include "runtime/solvers/loop/method_memory.h"

#include "comm/communicator.h"
#include "runtime/context/context.h"

namespace shardmat {
namespace {

constexpr std::size_t kAlignment = 256;

}  // namespace

MethodMemory::MethodMemory(const MethodInputs& in, int vectors, std::int64_t scalars)
    : columns_(in.columns()), apart_((in.vector_bytes() + kAlignment - 1) / kAlignment * kAlignment) {
  in.context().communicator().run_agreed([&] {
    const Device device = in.context().device();
    const std::size_t bytes = static_cast<std::size_t>(vectors) * apart_;
    const std::int64_t scalar_bytes = scalars * columns_ * static_cast<std::int64_t>(sizeof(double));
    require_memory(device, static_cast<std::int64_t>(bytes) + scalar_bytes, "the vectors of the solver");
    vectors_ = Buffer(device, bytes);
    scalars_ = Buffer(device, static_cast<std::size_t>(scalar_bytes));
    fill_bytes(scalars_.data(), 0, scalars_.bytes(), in.context().stream());
  });
}

}  // namespace shardmat
