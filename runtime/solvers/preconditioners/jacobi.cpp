// M = the inverse of A's diagonal.
#include <fmt/format.h>

#include <optional>

#include "comm/communicator.h"
#include "kernels/base/text.h"
#include "kernels/krylov/preconditioner_steps.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/loop/preconditioner.h"

namespace shardmat {
namespace {

class Jacobi final : public Preconditioner {
 public:
  Jacobi(DistributedMatrix& matrix, const PreconditionerOptions& options)
      : matrix_(matrix), absolute_(options.absolute), inverse_(matrix, VectorLayout::rows, sum_type(matrix.type())) {
    matrix.context().communicator().run_agreed([&] {
      one_column_.emplace(matrix.context().device(), 1);
      all_columns_.emplace(matrix.context().device(), options.columns);
    });
    refresh(matrix.context().stream());
  }

  void refresh(Stream& stream) override {
    const DistributedVector diagonal = matrix_.diagonal(stream);
    double counts[2] = {};
    matrix_.context().communicator().run_agreed([&] {
      const Buffer on_device(matrix_.context().device(), sizeof counts);
      dispatch(inverse_.type(), [&]<class Tag>(Tag) {
        using T = typename Tag::type;
        one_column_->run(krylov::InvertDiagonal<T>{static_cast<const T*>(diagonal.view().data),
                                                   static_cast<T*>(inverse_.view().data), absolute_, on_device.as<double>()},
                         matrix_.local_rows(), stream);
      });
      copy_to_host(counts, on_device.data(), sizeof counts, stream);
    });
    matrix_.context().communicator().all_reduce(std::span<double>(counts), Reduction::sum);
    zeros_ = static_cast<std::int64_t>(counts[0]);
    negative_ = static_cast<std::int64_t>(counts[1]);
  }

  bool is_diagonal() const override { return true; }
  const void* diagonal() const override { return inverse_.view().data; }

  void apply(const Dense& r, const Dense& z, Stream& stream) const override {
    dispatch(r.type, [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      all_columns_->run(
          krylov::ScaleRows<T>{static_cast<const T*>(diagonal()), static_cast<const T*>(r.data), static_cast<T*>(z.data)},
          r.rows, stream);
    });
  }

  std::int64_t apply_bytes() const override { return (2 * std::int64_t{all_columns_->columns()} + 1) * device_bytes(); }
  std::int64_t device_bytes() const override {
    return inverse_.local_rows() * static_cast<std::int64_t>(size_of(inverse_.type()));
  }

  std::string describe() const override {
    if (zeros_ == 0 && negative_ == 0) return {};
    return fmt::format("{} zeros on the diagonal count as 1, {} entries are negative{}", human_count(zeros_),
                       human_count(negative_), absolute_ ? " and count by magnitude" : "");
  }

 private:
  DistributedMatrix& matrix_;
  bool absolute_;
  DistributedVector inverse_;
  std::optional<krylov::Passes> one_column_, all_columns_;
  std::int64_t zeros_ = 0, negative_ = 0;
};

}  // namespace

std::unique_ptr<Preconditioner> make_jacobi(DistributedMatrix& matrix, const PreconditionerOptions& options) {
  return std::make_unique<Jacobi>(matrix, options);
}

}  // namespace shardmat
