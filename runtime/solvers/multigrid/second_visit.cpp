#include "runtime/solvers/multigrid/second_visit.h"

#include "comm/communicator.h"
#include "kernels/base/memory_limits.h"
#include "runtime/solvers/multigrid/nodes.h"

namespace shardmat::multigrid {
namespace {

constexpr int kSums = 3;  ///< of a visit

}  // namespace

SecondVisit::SecondVisit(const Operator& a, const krylov::Passes& passes, Context& context, ValueType type, void* r, void* x,
                         Combination combination, int owners)
    : a_(a),
      passes_(passes),
      type_(type),
      rows_(a.x_bytes() / static_cast<std::int64_t>(size_of(type)) / passes.columns()),
      r_(r),
      x_(x),
      combination_(combination),
      on_one_rank_(owners <= 1),
      over_ranks_(context.exchange_context(type, 1), kSums * passes.columns()) {
  context.communicator().run_agreed([&] {
    require_memory(context.device(), 4 * a.x_bytes(), "a level of multigrid that is visited twice");
    for (Buffer* const vector : {&kept_r_, &first_, &a_first_, &a_second_})
      *vector = Buffer(context.device(), at(a.x_bytes()));
    sums_ = Buffer(context.device(), at(2 * kSums * passes.columns()) * sizeof(double));
    fill_bytes(sums_.data(), 0, sums_.bytes(), context.stream());
  });
}

template <class F>
void SecondVisit::with_type(const F& f) const {
  dispatch(type_, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    const int columns = passes_.columns();
    double* const sums = sums_.as<double>();
    f(krylov::TwoVisits<T>{static_cast<T*>(r_), static_cast<T*>(x_), kept_r_.as<T>(), first_.as<T>(), a_first_.as<T>(),
                           a_second_.as<T>(), columns, combination_ == Combination::sum ? nullptr : sums,
                           combination_ == Combination::residual});
  });
}

void SecondVisit::begin(Stream& stream) const { copy_on_device(kept_r_.data(), r_, kept_r_.bytes(), stream); }

void SecondVisit::turn(Stream& stream) const {
  a_.multiply(1, x_, 0, a_first_.data(), stream);
  with_type([&]<class T>(const krylov::TwoVisits<T>& v) {
    if (combination_ != Combination::sum) {
      passes_.run(krylov::FirstVisitSums<T>{v}, rows_, stream);
      if (!on_one_rank_) over_ranks_(v.first_sums(), stream);
    }
    passes_.run(krylov::FirstVisit<T>{v}, rows_, stream);
  });
}

void SecondVisit::end(Stream& stream) const {
  if (combination_ != Combination::sum) a_.multiply(1, x_, 0, a_second_.data(), stream);
  with_type([&]<class T>(const krylov::TwoVisits<T>& v) {
    if (combination_ != Combination::sum) {
      passes_.run(krylov::SecondVisitSums<T>{v}, rows_, stream);
      if (!on_one_rank_) over_ranks_(v.second_sums(), stream);
    }
    passes_.run(krylov::CombineVisits<T>{v}, rows_, stream);
  });
}

std::int64_t SecondVisit::device_bytes() const {
  std::int64_t bytes = 0;
  for (const Buffer* const one : {&kept_r_, &first_, &a_first_, &a_second_, &sums_})
    bytes += static_cast<std::int64_t>(one->bytes());
  return bytes;
}

}  // namespace shardmat::multigrid
