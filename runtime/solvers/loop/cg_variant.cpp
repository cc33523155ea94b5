#include "runtime/solvers/loop/cg_variant.h"

#include <fmt/format.h>

#include "comm/communicator.h"
#include "comm/exchange/grid_sums.h"
#include "comm/exchange/sum_over_ranks.h"
#include "kernels/base/text.h"
#include "kernels/krylov/cg_iteration.h"
#include "kernels/krylov/residual.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/time_in_batches.h"

namespace shardmat {
namespace {

// Of the rule: a sum takes some 2 µs between processes of a host and 3 µs between GPUs. So long takes reading these vectors.
constexpr std::int64_t kFewBytesOnHost = 32'000, kFewBytesOnGpu = 8'000'000;

struct Measured {
  double sum = 0;     ///< over the ranks
  double vector = 0;  ///< reading one
};

Measured measure(const MethodInputs& in) {
  Stream& stream = in.context().stream();
  const auto columns = static_cast<std::size_t>(in.columns());
  SumOverRanks sum(in.context().exchange_context(in.type(), 1), 3 * in.columns());
  Buffer sums;
  in.context().communicator().run_agreed([&] {
    sums = Buffer(in.context().device(), 3 * columns * sizeof(double));
    fill_bytes(sums.data(), 0, sums.bytes(), stream);
    fill_bytes(in.product.x().data, 0, in.vector_bytes(), stream);
  });
  Measured found;
  found.sum = time_in_batches(in.product, stream, true, [&] { sum(sums.as<double>(), stream); });
  dispatch(in.type(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    const krylov::ResidualSums<T, krylov::Scaling::none> pass{{static_cast<T*>(in.product.x().data), nullptr, nullptr},
                                                              krylov::Norm::unpreconditioned,
                                                              sums.as<double>(),
                                                              sums.as<double>() + columns};
    found.vector = time_in_batches(in.product, stream, true, [&] { in.run(pass, stream); });
  });
  return found;
}

}  // namespace

int cg_blocks_for(const MethodInputs& in) {
  const bool separate = !in.preconditioner.identity() && !in.preconditioner.is_diagonal();
  return separate || in.options.variant == CgVariant::flexible || in.columns() > 1
             ? 0
             : krylov::cg_blocks(in.context().device());
}

CgChoice choose_cg_variant(const MethodInputs& in, CgVariant asked, bool by_rule) {
  if (asked != CgVariant::automatic) return {asked, "asked for"};
  if (in.options.own_preconditioner)
    return {CgVariant::flexible, "the program's preconditioner may be unsymmetric, or change"};
  if (in.preconditioner.varies()) return {CgVariant::flexible, "the cycle K is no linear map"};
  if (is_half(in.options.preconditioning.multigrid.inner))
    return {CgVariant::flexible, "in f16 the cycle is not quite symmetric"};
  if (in.preconditioner.usual_iterations() <= kFewIterations && in.options.residual_norm == ResidualNorm::unpreconditioned)
    return {CgVariant::classic, "its last iteration leaves the preconditioner out, which takes longer than all sums"};
  Communicator& ranks = in.context().communicator();
  if (ranks.size() == 1) return {CgVariant::classic, "one rank has no sums over the ranks to save"};
  if (GridSums::possible(in.context().exchange_context(in.type(), 1), cg_blocks_for(in)))
    return {CgVariant::classic, "one launch sums over the ranks and updates the vectors"};
  const bool separate = !in.preconditioner.identity() && !in.preconditioner.is_diagonal();
  const int vectors = separate ? 2 : 1;
  const std::string further = separate ? "two further vectors" : "a further vector";
  const auto choice = [](bool single) { return single ? CgVariant::single_reduction : CgVariant::classic; };
  if (by_rule) {
    const bool on_host = in.context().device().backend == Backend::host;
    const std::int64_t few = on_host ? kFewBytesOnHost : kFewBytesOnGpu,
                       bytes = vectors * ranks.all_reduce(static_cast<std::int64_t>(in.vector_bytes()), Reduction::max);
    return {choice(bytes <= few),
            fmt::format("by rule, for reproducible results: {} of {} a rank, {} {}", further,
                        human_bytes(static_cast<double>(bytes)), bytes <= few ? "at most" : "more than",
                        human_bytes(static_cast<double>(few)))};
  }
  const Measured measured = measure(in);
  return {choice(measured.sum > vectors * measured.vector),
          fmt::format("measured: a sum over the ranks takes {}, reading {} {}", human_seconds(measured.sum), further,
                      human_seconds(vectors * measured.vector))};
}

}  // namespace shardmat
