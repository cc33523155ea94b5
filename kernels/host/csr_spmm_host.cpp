// CSR with many right-hand sides on host threads: the sums of a row for a block of columns stay in registers while the row
// goes by, which is read once a block.
#include "kernels/formats/csr_spmm.h"
#include "kernels/host/csr_rows.h"

namespace shardmat {
namespace {

constexpr int kBlock = 32;  ///< columns at once

/// A dense matrix: entry (i, j) at i·row + j·column. A row-major one has kUnit: column = 1, known to the compiler.
template <class T, bool kUnit>
struct Dense {
  T* data;
  std::int64_t row, stride;
  T& at(std::int64_t i, std::int64_t j) const { return data[i * row + (kUnit ? j : j * stride)]; }
};
template <class T>
Dense<T, true> by_rows(T* data, std::int64_t leading) {
  return {data, leading, 1};
}
template <class T>
Dense<T, false> by_columns(T* data, std::int64_t leading) {
  return {data, 1, leading};
}

template <class A, class T, class Offset, class X, class Y>
void multiply_rows(const CsrStorage& a, std::int64_t begin, std::int64_t end, std::int64_t count, T alpha, const X& x,
                   T beta, const Y& y) {
  const Offset* row_ptr = a.row_ptr.as<Offset>();
  const std::int32_t* col_idx = a.col_idx.as<std::int32_t>();
  const A* values = a.values.as<A>();
  for (std::int64_t i = begin; i < end; ++i)
    for (std::int64_t first = 0; first < count; first += kBlock) {
      const std::int64_t columns = std::min<std::int64_t>(kBlock, count - first);
      T sum[kBlock] = {};
      for (Offset k = row_ptr[i]; k < row_ptr[i + 1]; ++k)
        for (std::int64_t j = 0; j < columns; ++j)
          sum[j] += static_cast<T>(values[k]) * static_cast<T>(x.at(col_idx[k], first + j));
      for (std::int64_t j = 0; j < columns; ++j) {
        T& out = y.at(i, first + j);
        out = beta == T(0) ? alpha * sum[j] : alpha * sum[j] + beta * out;
      }
    }
}

class CsrSpmmHostPlan final : public SpmmPlan {
 public:
  CsrSpmmHostPlan(std::shared_ptr<CsrStorage> a, const RightHandSides& rhs)
      : SpmmPlan(a, rhs), a_(std::move(a)), starts_(even_row_starts(*a_)) {}

 private:
  void run(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy, Stream&) const override {
    dispatch_operands(a_->type, [&](auto of_a, auto of_sum) {
      using A = typename decltype(of_a)::type;
      using T = typename decltype(of_sum)::type;
      const auto with_order = [](DenseOrder order, auto* data, std::int64_t leading, const auto& f) {
        if (order == DenseOrder::row_major) f(by_rows(data, leading));
        else f(by_columns(data, leading));
      };
      with_order(right_hand_sides().x, static_cast<const A*>(x), ldx, [&](const auto& from) {
        with_order(right_hand_sides().y, static_cast<T*>(y), ldy, [&](const auto& to) {
          parallel_tasks(static_cast<std::int64_t>(starts_.size()) - 1, [&](std::int64_t t) {
            const std::int64_t begin = starts_[static_cast<std::size_t>(t)], end = starts_[static_cast<std::size_t>(t) + 1];
            const auto rows = [&](auto offset) {
              multiply_rows<A, T, typename decltype(offset)::type>(*a_, begin, end, right_hand_sides().count,
                                                                   static_cast<T>(alpha), from, static_cast<T>(beta), to);
            };
            if (a_->wide_offsets) rows(TypeTag<std::int64_t>{});
            else rows(TypeTag<std::int32_t>{});
          });
        });
      });
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
