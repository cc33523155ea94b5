// CSR with many right-hand sides on host threads. Columns go in groups whose sums stay in registers. Each column is summed
// as csr_host sums a single one, so that it has the same bits.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "kernels/formats/csr_spmm.h"
#include "kernels/host/csr_rows.h"

namespace shardmat {
namespace {

/// X or Y: entry (i, j) is at i·row + j·column. kUnit: column = 1, known to the compiler.
template <class T, bool kUnit>
struct Strided {
  T* data;
  std::int64_t row, column;
  T& at(std::int64_t i, std::int64_t j) const { return data[i * row + (kUnit ? j : j * column)]; }
};

/// 16 bytes of values: every 64-bit CPU multiplies them at once.
template <class T>
using Vector [[gnu::vector_size(16)]] = T;

/// A product of one plan, with the rows' offsets of either width.
template <class A, class T, bool kUnitX>
struct CsrProduct {
  const std::int32_t* narrow_row_ptr;  ///< null if offsets are wide
  const std::int64_t* wide_row_ptr;
  const std::int32_t* col_idx;
  const A* values;
  Strided<const A, kUnitX> x;
  Strided<T, false> y;
  T alpha, beta;

  std::int64_t offset(std::int64_t i) const { return narrow_row_ptr != nullptr ? narrow_row_ptr[i] : wide_row_ptr[i]; }

  /// Columns first … of the row of X that entry k multiplies, as many as a Pack holds.
  template <class Pack>
  [[gnu::always_inline]] Pack of_x(std::int64_t k, std::int64_t first) const {
    const A* from = &x.at(col_idx[k], first);
    Pack pack;
    T lanes[sizeof(Pack) / sizeof(T)];
    for (std::size_t j = 0; j < std::size(lanes); ++j) lanes[j] = static_cast<T>(from[kUnitX ? j : j * x.column]);
    std::memcpy(&pack, lanes, sizeof pack);
    return pack;
  }

  /// Columns first … first + W - 1 of some rows. Four sums a column, so that additions of one row overlap.
  template <int W>
  void multiply_group(std::int64_t begin, std::int64_t end, std::int64_t first) const {
    using Pack = std::conditional_t<(W * sizeof(T) >= sizeof(Vector<T>)), Vector<T>, T>;
    constexpr int kLanes = sizeof(Pack) / sizeof(T), kPacks = W / kLanes;
    for (std::int64_t i = begin; i < end; ++i) {
      Pack sum[4][kPacks] = {};
      const auto add = [&](Pack(&to)[kPacks], std::int64_t k) {
        const T value = static_cast<T>(values[k]);
        for (int p = 0; p < kPacks; ++p) to[p] += value * of_x<Pack>(k, first + p * kLanes);
      };
      std::int64_t k = offset(i);
      const std::int64_t last = offset(i + 1);
      for (; k + 4 <= last; k += 4) add(sum[0], k), add(sum[1], k + 1), add(sum[2], k + 2), add(sum[3], k + 3);
      for (; k < last; ++k) add(sum[0], k);
      for (int p = 0; p < kPacks; ++p) {
        const Pack product = alpha * ((sum[0][p] + sum[1][p]) + (sum[2][p] + sum[3][p]));
        T lanes[kLanes];
        std::memcpy(lanes, &product, sizeof product);
        for (int j = 0; j < kLanes; ++j) {
          T& out = y.at(i, first + p * kLanes + j);
          out = beta == T(0) ? lanes[j] : lanes[j] + beta * out;
        }
      }
    }
  }

  /// All columns. A few rows at a time: they come from cache when the next group of columns needs them.
  void multiply_rows(std::int64_t begin, std::int64_t end, std::int64_t columns) const {
    constexpr int kWidest = 64 / sizeof(T);  // a cache line of X
    constexpr std::int64_t kRows = 8;
    for (std::int64_t row = begin; row < end; row += kRows) {
      const std::int64_t beyond = std::min(end, row + kRows);
      std::int64_t first = 0;
      for (; first + kWidest <= columns; first += kWidest) multiply_group<kWidest>(row, beyond, first);
      if (kWidest > 8 && first + 8 <= columns) multiply_group<8>(row, beyond, first), first += 8;
      if (first + 4 <= columns) multiply_group<4>(row, beyond, first), first += 4;
      if (first + 2 <= columns) multiply_group<2>(row, beyond, first), first += 2;
      if (first < columns) multiply_group<1>(row, beyond, first);
    }
  }
};

class CsrSpmmHostPlan final : public SpmmPlan {
 public:
  CsrSpmmHostPlan(std::shared_ptr<CsrStorage> a, const RightHandSides& rhs)
      : SpmmPlan(a, rhs), a_(std::move(a)), starts_(even_row_starts(*a_)) {}

 private:
  template <class A, class T, bool kUnitX>
  void run_typed(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy) const {
    const DenseStrides of_x = strides(right_hand_sides().x, ldx), of_y = strides(right_hand_sides().y, ldy);
    const CsrProduct<A, T, kUnitX> product{a_->wide_offsets ? nullptr : a_->row_ptr.as<std::int32_t>(),
                                           a_->row_ptr.as<std::int64_t>(),
                                           a_->col_idx.as<std::int32_t>(),
                                           a_->values.as<A>(),
                                           {static_cast<const A*>(x), of_x.row, of_x.column},
                                           {static_cast<T*>(y), of_y.row, of_y.column},
                                           static_cast<T>(alpha),
                                           static_cast<T>(beta)};
    parallel_tasks(std::ssize(starts_) - 1, [&](std::int64_t t) {
      const auto task = static_cast<std::size_t>(t);
      product.multiply_rows(starts_[task], starts_[task + 1], right_hand_sides().count);
    });
  }

  void run(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy, Stream&) const override {
    dispatch_operands(a_->type, [&](auto of_a, auto of_sum) {
      using A = typename decltype(of_a)::type;
      using T = typename decltype(of_sum)::type;
      if (right_hand_sides().x == DenseOrder::row_major) run_typed<A, T, true>(alpha, x, ldx, beta, y, ldy);
      else run_typed<A, T, false>(alpha, x, ldx, beta, y, ldy);
    });
  }

  std::shared_ptr<CsrStorage> a_;
  std::vector<std::int64_t> starts_;
};

}  // namespace

std::unique_ptr<SpmmPlan> make_csr_spmm_host(std::shared_ptr<Storage> storage, const RightHandSides& rhs, const Policy&,
                                             Stream&) {
  return std::make_unique<CsrSpmmHostPlan>(std::static_pointer_cast<CsrStorage>(std::move(storage)), rhs);
}

}  // namespace shardmat
