#include "runtime/solvers/loop/exact_residual.h"

#include "comm/communicator.h"
#include "comm/exchange/column_map.h"
#include "comm/exchange/exchange.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/matrix/csr.h"
#include "runtime/context/context.h"

namespace shardmat {
namespace {

constexpr std::int64_t kRowsAtOnce = 1 << 10;

/// A row times x: four sums, so that additions do not wait for each other.
double product_of_row(const CsrView& a, std::size_t row, const float* x) {
  constexpr std::size_t kSums = 4;
  const auto term = [&](std::size_t k) {
    return a.values[k] * static_cast<double>(x[static_cast<std::size_t>(a.col_idx[k])]);
  };
  const auto end = static_cast<std::size_t>(a.row_ptr[row + 1]);
  auto k = static_cast<std::size_t>(a.row_ptr[row]);
  double sums[kSums] = {};
  for (; k + kSums <= end; k += kSums)
    for (std::size_t s = 0; s < kSums; ++s) sums[s] += term(k + s);
  for (; k < end; ++k) sums[0] += term(k);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// Row by row, in an order that depends on the entries alone: no number of threads changes a bit.
void subtract_products(const CsrView& a, std::size_t columns, const float* x, const float* b, float* r) {
  if (columns == 1)
    return parallel_ranges(a.rows, kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
        r[i] = static_cast<float>(b[i] - product_of_row(a, i, x));
    });
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
    ranks.run_agreed([&] {
      matrix_.host_rows(stream);  // with the present values
      if (!on_gpu) return;
      const std::size_t bytes = (entries_of_x + entries_of_b) * sizeof(float);
      if (copies_.bytes() >= bytes) return;
      require_host_memory(static_cast<std::int64_t>(bytes), "x and b on the host");
      copies_.reserve(bytes, matrix_.context().device(), true);
    });
    ready_ = true;
  } catch (const AgreedError& error) {  // all ranks are here
    if (error.kind() != ErrorKind::resources) throw;
    why_not_ = error.what();
  }
}

void ExactResidual::operator()(const void* b, const void* x, void* r, Stream& stream) const {
  const bool on_gpu = stream.device().backend == Backend::cuda;
  copy_on_device(product_.x().data, x, product_.y_bytes(), stream);
  product_.move_x(stream);
  product_.wait(stream);
  matrix_.context().communicator().run_agreed([&] {
    const auto* moved = static_cast<const float*>(product_.exchange().x());
    const auto* from = static_cast<const float*>(b);
    auto* to = static_cast<float*>(r);
    const auto of_x = static_cast<std::size_t>(product_.exchange().length() * product_.columns()) * sizeof(float);
    if (on_gpu) {
      auto* const copy_of_x = copies_.as<float>();
      auto* const copy_of_b = copy_of_x + of_x / sizeof(float);
      copy_to_host_async(copy_of_x, moved, of_x, stream);
      copy_to_host(copy_of_b, from, product_.y_bytes(), stream);
      moved = copy_of_x, from = copy_of_b, to = copy_of_b;
    }
    subtract_products(matrix_.host_rows(stream), static_cast<std::size_t>(product_.columns()), moved, from, to);
    if (on_gpu) copy_to_device(r, to, product_.y_bytes(), stream);
  });
}

}  // namespace shardmat
