// Batched CSR products with a sub-warp a row, whatever matrix the row belongs to: the rows of all matrices follow each other,
// so no thread is superfluous, however uneven the batch. A list says where in X the matrix of each row begins. Lanes take 16
// bytes of a row of X at once, and several entries of A at once, so that few loads wait for others.
#include "kernels/batched/kernels.h"
#include "kernels/batched/operands.h"
#include "kernels/batched/row_shifts.h"
#include "kernels/cuda/launch.h"

namespace shardmat {
namespace {

using namespace batched;

constexpr int kMostBlock = 256;
constexpr int kEntries = 4;          ///< of a row at once
constexpr int kMostAcross = 64;      ///< blocks over the columns
constexpr int kThreadsOfSm = 1024;   ///< as many are worth splitting columns for

template <class T, class A, int W>
__global__ void __launch_bounds__(kMostBlock)
    rows_product(std::int32_t rows, int lanes_log, const std::int32_t* __restrict__ row_ptr,
                 const std::int32_t* __restrict__ shift, const std::int32_t* __restrict__ col_idx,
                 const A* __restrict__ values, Operands<T, A> v) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t row = thread >> lanes_log;
  if (row >= rows) return;
  const int lanes = 1 << lanes_log;
  const std::int32_t begin = __ldg(row_ptr + row), end = __ldg(row_ptr + row + 1);
  const std::int64_t first = __ldg(shift + row);
  for (int j = (static_cast<int>(blockIdx.y) * lanes + static_cast<int>(thread & (lanes - 1))) * W; j < v.columns;
       j += lanes * W * static_cast<int>(gridDim.y)) {
    T sum[W] = {};
    for (std::int32_t k = begin; k < end; k += kEntries) {
      std::int32_t column[kEntries];
      A value[kEntries];
      Stretch<A, W> x[kEntries];
#pragma unroll
      for (int e = 0; e < kEntries; ++e) {
        const bool there = k + e < end;
        column[e] = there ? __ldg(col_idx + k + e) : 0;
        value[e] = there ? load<1>(values + k + e).of[0] : A{};
      }
#pragma unroll
      for (int e = 0; e < kEntries; ++e)
        if (k + e < end) x[e] = load<W>(v.x + (first + column[e]) * v.ldx + j);
#pragma unroll
      for (int e = 0; e < kEntries; ++e)
        if (k + e < end) add_product<T>(sum, value[e], x[e]);
    }
    store(v, row, j, sum);
  }
}

class RowsPlan final : public BatchedPlan {
 public:
  RowsPlan(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns, int block)
      : BatchedPlan(std::move(batch), columns), block_(block), multiprocessors_(cuda::multiprocessors(this->batch().device)) {
    work_bytes_ = shifts_.reserve(descriptor_, this->batch().at);
  }

 private:
  void expand(Stream& stream) override { shifts_.fill(work(), stream); }

  void run(const void* x, std::int64_t ldx, void* y, std::int64_t ldy, const Epilogue& epilogue,
           Stream& stream) const override {
    dispatch_operands(batch().type, [&](auto of_a, auto of_sum) {
      using A = typename decltype(of_a)::type;
      using T = typename decltype(of_sum)::type;
      const auto v = operands<T, A>(*this, x, ldx, y, ldy, epilogue);
      with_width(v, [&](auto width) {
        constexpr int kWidth = decltype(width)::value;
        const std::int64_t stretches = (v.columns + kWidth - 1) / kWidth;
        const int lanes = lanes_for(stretches);
        const std::int64_t threads = batch().at.rows() * lanes, passes = (stretches + lanes - 1) / lanes;
        const std::int64_t wanted = std::int64_t{multiprocessors_} * kThreadsOfSm / threads;
        cuda::launch_grid(rows_product<T, A, kWidth>, (threads + block_ - 1) / block_,
                          std::clamp<std::int64_t>(wanted, 1, std::min<std::int64_t>(passes, kMostAcross)),
                          dim3(static_cast<unsigned>(block_)), 0, stream, static_cast<std::int32_t>(batch().at.rows()),
                          log2_of(lanes), batch().row_ptr, shifts_.of(work()), batch().col_idx,
                          static_cast<const A*>(batch().values), v);
      });
    });
  }

  int block_, multiprocessors_;
  RowShifts shifts_;
};

}  // namespace

std::vector<Policy> rows_policies(const DeviceBatch&, std::int64_t) {
  return {Policy{{"block_size", 128}}, Policy{{"block_size", 256}}};
}

double rows_estimate(const DeviceBatch& batch, std::int64_t columns, const Policy&) {
  // Rows of X that neighbours share come from L2 about every second time.
  constexpr double kShare = 0.75, kMissed = 0.6, kCopyOverL2 = 4.2 / 5.5;
  const auto value = static_cast<double>(size_of(batch.type) * static_cast<std::size_t>(columns));
  const double gathered = value * (kMissed * static_cast<double>(batch.at.nnz()) + static_cast<double>(batch.at.rows()));
  return std::max(static_cast<double>(batch.compulsory_bytes(columns)) / kShare, gathered * kCopyOverL2);
}

std::unique_ptr<BatchedPlan> make_rows(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns, const Policy& policy) {
  const int block = cuda::block_size_of(policy, "rows");
  if (block > kMostBlock) throw Error(ErrorKind::usage, "rows: block_size must be at most 256");
  return std::make_unique<RowsPlan>(std::move(batch), columns, block);
}

}  // namespace shardmat
