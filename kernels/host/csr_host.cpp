// CSR on host threads.
#include "kernels/host/csr_rows.h"

namespace shardmat {
namespace {

template <class T, class Offset>
void multiply_rows(const CsrStorage& a, std::int64_t begin, std::int64_t end, T alpha, const T* x, T beta, T* y) {
  const Offset* row_ptr = a.row_ptr.as<Offset>();
  const std::int32_t* col_idx = a.col_idx.as<std::int32_t>();
  const T* values = a.values.as<T>();
  for (std::int64_t i = begin; i < end; ++i) {
    // Four sums, so that additions of one row overlap.
    T sum[4] = {};
    Offset k = row_ptr[i];
    const Offset last = row_ptr[i + 1];
    for (; k + 4 <= last; k += 4)
      for (int j = 0; j < 4; ++j) sum[j] += values[k + j] * x[col_idx[k + j]];
    for (; k < last; ++k) sum[0] += values[k] * x[col_idx[k]];
    const T product = alpha * ((sum[0] + sum[1]) + (sum[2] + sum[3]));
    y[i] = beta == T(0) ? product : product + beta * y[i];
  }
}

class CsrHostPlan final : public Plan {
 public:
  explicit CsrHostPlan(std::shared_ptr<CsrStorage> a) : Plan(a), a_(std::move(a)), starts_(even_row_starts(*a_)) {}

  void multiply(double alpha, const void* x, double beta, void* y, Stream&) const override {
    dispatch(a_->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      parallel_tasks(static_cast<std::int64_t>(starts_.size()) - 1, [&](std::int64_t t) {
        const auto task = static_cast<std::size_t>(t);
        const auto run = a_->wide_offsets ? multiply_rows<T, std::int64_t> : multiply_rows<T, std::int32_t>;
        run(*a_, starts_[task], starts_[task + 1], static_cast<T>(alpha), static_cast<const T*>(x), static_cast<T>(beta),
            static_cast<T*>(y));
      });
    });
  }

 private:
  std::shared_ptr<CsrStorage> a_;
  std::vector<std::int64_t> starts_;
};

}  // namespace

std::vector<Policy> csr_host_policies(const RowStatistics&) { return {Policy{}}; }

std::unique_ptr<Plan> make_csr_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  return std::make_unique<CsrHostPlan>(std::static_pointer_cast<CsrStorage>(std::move(storage)));
}

}  // namespace shardmat
