#include "runtime/matrix/held_rows.h"

#include "kernels/base/memory_limits.h"
#include "kernels/krylov/preconditioner_steps.h"

namespace shardmat {

void HeldRows::set(std::span<const std::int64_t> rows, std::int64_t count, double magnitudes, Stream& stream) {
  rows_.assign(rows.begin(), rows.end());
  const std::size_t bytes = rows_.size() * sizeof(std::int64_t);
  if (bytes > places_.bytes()) {
    places_ = Buffer();
    require_memory(stream.device(), static_cast<std::int64_t>(bytes), "the rows with known values");
    places_ = Buffer(stream.device(), bytes);
  }
  if (bytes > 0 && !passes_) passes_.emplace(stream.device(), static_cast<int>(columns_));
  if (bytes > 0) copy_to_device(places_.data(), rows_.data(), bytes, stream);
  stream.synchronize();
  count_ = count, magnitudes_ = magnitudes;
}

void HeldRows::clear(const Dense& vector, Stream& stream) const {
  if (rows_.empty()) return;
  dispatch(vector.type, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    passes_->run(krylov::ClearRows<T>{places_.as<std::int64_t>(), static_cast<T*>(vector.data), vector.leading},
                 std::ssize(rows_), stream);
  });
}

}  // namespace shardmat
