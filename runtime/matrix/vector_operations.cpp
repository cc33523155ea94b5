#include "runtime/matrix/distributed_vector.h"

#include <fmt/format.h>

#include "comm/exchange/sum_over_ranks.h"
#include "kernels/base/error.h"
#include "kernels/vector.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/distributed_matrix.h"

namespace shardmat {
namespace {

void require_alike(const DistributedVector& x, const DistributedVector& y) {
  const auto text = [](const DistributedVector& v) {
    return fmt::format("{} × {} of {}", v.rows(), v.columns(), name(v.type()));
  };
  // Facts that all ranks share: the sums below are collective.
  if (x.rows() == y.rows() && !x.lies_on(*y.map()))
    throw Error(
        ErrorKind::usage,
        fmt::format("two vectors lie on different row maps, {:016x} and {:016x}: their entries lie on other ranks or in "
                    "another order",
                    x.map()->number(), y.map()->number()));
  if (x.rows() != y.rows() || x.columns() != y.columns() || x.type() != y.type())
    throw Error(ErrorKind::usage, fmt::format("two vectors do not go together: {}, and {}", text(x), text(y)));
}

void combine_vectors(Factor a, const DistributedVector& x, Factor b, DistributedVector& y, Stream& stream) {
  const ContextScope scope(y.context());
  require_alike(x, y);
  combine(x.type(), x.local_rows(), x.columns(), a, x.view().data, b, y.view().data, stream);
}

}  // namespace

void axpy(Factor a, const DistributedVector& x, DistributedVector& y, Stream& stream) {
  combine_vectors(a, x, {1}, y, stream);
}

void xpay(const DistributedVector& x, Factor b, DistributedVector& y, Stream& stream) {
  combine_vectors({1}, x, b, y, stream);
}

void scale(Factor b, DistributedVector& y, Stream& stream) {
  const ContextScope scope(y.context());
  combine(y.type(), y.local_rows(), y.columns(), {}, nullptr, b, y.view().data, stream);
}

void copy(const DistributedVector& x, DistributedVector& y, Stream& stream) { combine_vectors({1}, x, {0}, y, stream); }

VectorSums::VectorSums(Context& context, std::int64_t columns)
    : columns_(columns),
      sum_(std::make_unique<SumOverRanks>(context.exchange_context(ValueType::f64, 1), static_cast<int>(columns))) {
  context.communicator().run_agreed([&] { dots_ = std::make_unique<ColumnDots>(context.device(), columns); });
}

VectorSums::~VectorSums() = default;

std::string_view VectorSums::summed_by() const { return sum_->name(); }

void VectorSums::dot(const DistributedVector& x, const DistributedVector& y, double* result, Stream& stream) {
  const ContextScope scope(x.context());
  require_alike(x, y);
  if (x.columns() != columns_)
    throw Error(ErrorKind::usage, fmt::format("vectors of {} columns came to sums of {}", x.columns(), columns_));
  dots_->compute(x.type(), x.local_rows(), x.view().data, y.view().data, result, stream);
  (*sum_)(result, stream);
}

void VectorSums::norm(const DistributedVector& x, double* result, Stream& stream) {
  const ContextScope scope(x.context());
  dot(x, x, result, stream);
  square_roots(columns_, result, stream);
}

}  // namespace shardmat
