#include "runtime/solvers/exact_residual.h"

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "runtime/context.h"

namespace shardmat {
namespace {

constexpr std::int64_t kRowsAtOnce = 1 << 10;

/// Row by row in the order of the entries: no number of threads changes a bit.
void subtract_products(const CsrView& a, std::size_t columns, const float* x, const float* b, float* r) {
  parallel_ranges(a.rows, kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      for (std::size_t j = 0; j < columns; ++j) {
        double sum = b[i * columns + j];
        for (auto k = static_cast<std::size_t>(a.row_ptr[i]); k < static_cast<std::size_t>(a.row_ptr[i + 1]); ++k)
          sum -= a.values[k] * static_cast<double>(x[static_cast<std::size_t>(a.col_idx[k]) * columns + j]);
        r[i * columns + j] = static_cast<float>(sum);
      }
  });
}

}  // namespace

void ExactResidual::prepare(Stream& stream) {
  ready_ = false, why_not_.clear();
  if (matrix_.type() != ValueType::f32) return;
  Communicator& ranks = matrix_.context().communicator();
  const bool on_gpu = matrix_.context().device().backend == Backend::cuda;
  const auto entries_of_x = static_cast<std::size_t>(product_.exchange().length() * product_.columns()),
             entries_of_b = static_cast<std::size_t>(matrix_.local_rows() * product_.columns());
  const auto everywhere = [&](bool here) { return ranks.all_reduce(here ? 1 : 0, Reduction::min) == 1; };
  if (!everywhere(matrix_.has_host_rows())) why_not_ = "the rows are no longer in host memory";
  else if (product_.column_block() != product_.columns()) why_not_ = "the columns of X move in blocks";
  else if (!everywhere(&product_.exchange().map() == &matrix_.column_map()))
    why_not_ = "the product numbers the columns in its own way";
  if (!why_not_.empty()) return;
  try {
    ranks.together([&] {
      matrix_.host_rows(stream);  // with the present values
      if (!on_gpu) return;
      require_host_memory(static_cast<std::int64_t>((entries_of_x + entries_of_b) * sizeof(float)), "x and b on the host");
      x_.resize(entries_of_x);
      b_.resize(entries_of_b);
    });
    ready_ = true;
  } catch (const AgreedError& error) {  // all ranks are here
    if (error.kind() != ErrorKind::resources) throw;
    release();
    why_not_ = error.what();
  }
}

void ExactResidual::release() {
  ready_ = false;
  x_ = {}, b_ = {};
}

void ExactResidual::operator()(const void* b, const void* x, void* r, Stream& stream) const {
  const bool on_gpu = stream.device().backend == Backend::cuda;
  copy_on_device(product_.x().data, x, product_.y_bytes(), stream);
  product_.move_x(stream);
  product_.wait(stream);
  matrix_.context().communicator().together([&] {
    const auto* moved = static_cast<const float*>(product_.exchange().x());
    const auto* from = static_cast<const float*>(b);
    auto* to = static_cast<float*>(r);
    if (on_gpu) {
      copy_to_host(x_.data(), moved, x_.size() * sizeof(float), stream);
      copy_to_host(b_.data(), from, b_.size() * sizeof(float), stream);
      moved = x_.data(), from = b_.data(), to = b_.data();
    }
    subtract_products(matrix_.host_rows(stream), static_cast<std::size_t>(product_.columns()), moved, from, to);
    if (on_gpu) copy_to_device(r, to, b_.size() * sizeof(float), stream);
  });
}

}  // namespace shardmat
