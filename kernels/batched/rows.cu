// Batched CSR products with a sub-warp a row, whatever matrix the row belongs to: the rows of all matrices follow each
// other, so no thread is superfluous, however uneven the batch. Where in X the matrix of a row begins is found while the
// previous kernel still runs: computed, or looked up in a short descriptor. After a long descriptor there is a list. Lanes
// take 16 bytes of a row of X at once, and several entries of A at once, so that few loads wait for others.
#include "kernels/batched/kernels.h"
#include "kernels/batched/operands.h"
#include "kernels/cuda/launch.h"

namespace shardmat {
namespace {

using namespace batched;

constexpr int kMostBlock = 512;
constexpr int kMostAcross = 64;     ///< blocks over the columns
constexpr int kThreadsOfSm = 1024;  ///< as many are worth splitting columns for

/// Up to E entries of a row; those behind its end count as zeros.
template <class A, int E>
struct Entries {
  std::int32_t column[E];
  A value[E];
  int count;

  __device__ Entries(const std::int32_t* col_idx, const A* values, std::int32_t begin, std::int32_t end)
      : count(end - begin) {
#pragma unroll
    for (int e = 0; e < E; ++e) {
      column[e] = e < count ? col_idx[begin + e] : 0;
      value[e] = e < count ? load<1>(values + begin + e).of[0] : A{};
    }
  }
  /// `x`: a lane's columns in the first row of the matrix's X.
  template <int W, class T>
  __device__ void multiply(const char* x, std::int32_t first, std::int32_t x_bytes, T (&sum)[W]) const {
    Stretch<A, W> rows[E];
#pragma unroll
    for (int e = 0; e < E; ++e)
      rows[e] =
          e < count ? load<W>(reinterpret_cast<const A*>(dense::row_at(x, first + column[e], x_bytes))) : Stretch<A, W>{};
#pragma unroll
    for (int e = 0; e < E; ++e) add_product<T>(sum, value[e], rows[e]);
  }
};

/// `x_bytes`: from one row of X to the next. E entries of a row are loaded at once.
template <class T, class A, int W, int E, bool kPlain, std::size_t kWords>
__global__ void __launch_bounds__(kMostBlock)
    rows_product(std::int32_t rows, int lanes_log, const std::int32_t* row_ptr, const std::int32_t* col_idx, const A* values,
                 std::int32_t x_bytes, Operands<T, A> v, RowShifts shifts, const __grid_constant__ Descriptor<kWords> d) {
  cuda::let_next_begin();
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t row = thread >> lanes_log;
  std::int32_t first = 0;
  if constexpr (d.in_arguments) first = shifts.look_up(d.of, static_cast<std::int32_t>(row));
  cuda::wait_for_previous();
  if (row >= rows) return;
  if constexpr (!d.in_arguments) first = shifts.of(d.of)[row];
  const int lanes = 1 << lanes_log, step = lanes * W * static_cast<int>(gridDim.y);
  const std::int32_t begin = row_ptr[row], end = row_ptr[row + 1];
  const char* const x = reinterpret_cast<const char*>(v.x);
  T* const y = v.y + row * v.ldy;
  int j = (static_cast<int>(blockIdx.y) * lanes + static_cast<int>(thread & (lanes - 1))) * W;
  const auto at = [&](int column) { return x + column * static_cast<int>(sizeof(A)); };
  if (lanes == 32 && end - begin <= E) {  // a warp has one row: its entries stay in registers for all columns
    const Entries<A, E> entries(col_idx, values, begin, end);
    for (; j < v.columns; j += step) {
      T sum[W] = {};
      entries.multiply(at(j), first, x_bytes, sum);
      store<kPlain>(v, y + j, j, sum);
    }
    return;
  }
  for (; j < v.columns; j += step) {
    T sum[W] = {};
    for (std::int32_t k = begin; k < end; k += E)
      Entries<A, E>(col_idx, values, k, end).multiply(at(j), first, x_bytes, sum);
    store<kPlain>(v, y + j, j, sum);
  }
}

class RowsPlan final : public BatchedPlan {
 public:
  RowsPlan(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns, const Policy& policy)
      : BatchedPlan(std::move(batch), columns),
        block_(cuda::block_size_of(policy, "rows")),
        entries_(policy.at("entries")),
        multiprocessors_(cuda::multiprocessors(this->batch().device)) {
    if (block_ > kMostBlock || (entries_ != 4 && entries_ != 8))
      throw Error(ErrorKind::usage, "rows: block_size must be at most 512, entries 4 or 8");
    shifts_ = RowShifts(descriptor_, this->batch().at);
    send_with_product();
  }

 private:
  void run(const void* x, std::int64_t ldx, void* y, std::int64_t ldy, const Epilogue& epilogue,
           Stream& stream) const override {
    dispatch_operands(batch().type, [&](auto of_a, auto of_sum) {
      using A = typename decltype(of_a)::type;
      using T = typename decltype(of_sum)::type;
      const auto v = operands<T, A>(columns(), x, ldx, y, ldy, epilogue);
      with_instance(v, [&](auto instance) {
        constexpr int kWidth = decltype(instance)::width;
        const std::int64_t stretches = (v.columns + kWidth - 1) / kWidth;
        const int lanes = lanes_for(stretches);
        const std::int64_t threads = batch().at.rows() * lanes, passes = (stretches + lanes - 1) / lanes;
        const std::int64_t wanted = std::int64_t{multiprocessors_} * kThreadsOfSm / threads;
        with_descriptor([&]<std::size_t kWords>(const Descriptor<kWords>& descriptor) {
          const auto launch = [&](auto kernel) {
            cuda::launch_grid_early(kernel, (threads + block_ - 1) / block_,
                                    std::clamp<std::int64_t>(wanted, 1, std::min<std::int64_t>(passes, kMostAcross)),
                                    dim3(static_cast<unsigned>(block_)), 0, stream,
                                    static_cast<std::int32_t>(batch().at.rows()), log2_of(lanes), batch().row_ptr,
                                    batch().col_idx, static_cast<const A*>(batch().values), bytes_of_row<A>(ldx, "X"), v,
                                    shifts_, descriptor);
          };
          constexpr bool kPlain = decltype(instance)::plain;
          if constexpr (kWidth * sizeof(A) == 16)
            if (entries_ == 8) return launch(rows_product<T, A, kWidth, 8, kPlain, kWords>);
          launch(rows_product<T, A, kWidth, 4, kPlain, kWords>);
        });
      });
    });
  }

  int block_, entries_, multiprocessors_;
};

}  // namespace

std::vector<Policy> rows_policies(const DeviceBatch& batch, std::int64_t) {
  std::vector<Policy> policies{Policy{{"block_size", 256}, {"entries", 4}}, Policy{{"block_size", 128}, {"entries", 4}},
                               Policy{{"block_size", 512}, {"entries", 4}}};
  if (batch.at.nnz() > 7 * batch.at.rows() / 2)
    policies.insert(policies.end(),
                    {Policy{{"block_size", 256}, {"entries", 8}}, Policy{{"block_size", 128}, {"entries", 8}}});
  return policies;
}

double rows_estimate(const DeviceBatch& batch, std::int64_t columns, const Policy&) {
  // Rows of X that neighbours share come from L2 about every second time.
  constexpr double kShare = 0.75, kMissed = 0.6, kCopyOverL2 = 4.2 / 5.5;
  const auto value = static_cast<double>(size_of(batch.type) * static_cast<std::size_t>(columns));
  const double gathered = value * (kMissed * static_cast<double>(batch.at.nnz()) + static_cast<double>(batch.at.rows()));
  return std::max(static_cast<double>(batch.compulsory_bytes(columns)) / kShare, gathered * kCopyOverL2);
}

std::unique_ptr<BatchedPlan> make_rows(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns,
                                       const Policy& policy) {
  return std::make_unique<RowsPlan>(std::move(batch), columns, policy);
}

}  // namespace shardmat
