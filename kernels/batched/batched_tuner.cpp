#include "kernels/batched/batched_tuner.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/base/timer.h"

namespace shardmat {
namespace {

constexpr double kShort = 1e-4;  // seconds
constexpr int kInGraph = 20;

}  // namespace

std::vector<BatchedCandidate> batched_candidates(const DeviceBatch& batch, std::int64_t columns,
                                                 const BatchedRequest& request) {
  const bool named = request.kernel != "auto";
  if (!named && !request.policy.empty())
    throw Error(ErrorKind::usage, "a policy belongs to one kernel: name the kernel", "kernel");
  std::vector<BatchedCandidate> all;
  const auto add = [&](const BatchedKernel& kernel) {
    for (const Policy& policy : kernel.policies(batch, columns)) {
      const Policy asked = policy.with(request.policy);
      if (std::none_of(all.begin(), all.end(),
                       [&](const BatchedCandidate& c) { return c.kernel == &kernel && c.policy == asked; }))
        all.push_back({&kernel, asked, kernel.estimate(batch, columns, asked)});
    }
  };
  if (named) {
    add(find_batched_kernel(request.kernel, batch.device.backend));
  } else {
    for (const BatchedKernel& kernel : batched_kernels())
      if (kernel.automatic && kernel.backend == batch.device.backend && kernel.format == batch.format) add(kernel);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const BatchedCandidate& a, const BatchedCandidate& b) { return a.cost < b.cost; });
  if (all.empty())
    throw Error(ErrorKind::usage,
                named ? fmt::format("kernel {} cannot take this batch in {} with {} columns; use another kernel, or auto",
                                    request.kernel, name(batch.type), columns)
                      : fmt::format("no kernel multiplies {} in {}; take f32 or f64, or store compressed rows",
                                    name(batch.type), name(batch.format)),
                named ? "kernel" : "format");
  return all;
}

Timing time_batched(const BatchedPlan& plan, const void* x, std::int64_t ldx, void* y, std::int64_t ldy,
                    const Epilogue& epilogue, Stream& stream, const TimingOptions& options) {
  const auto product = [&] { plan.multiply(x, ldx, y, ldy, epilogue, stream); };
  const Timing once = time_work(product, stream, options);
  if (options.flush != nullptr || once.median > kShort || stream.device().backend == Backend::host) return once;
  Graph graph(stream, [&] {
    for (int i = 0; i < kInGraph; ++i) product();
  });
  Timing timing = time_work([&] { graph.launch(stream); }, stream, options);
  for (double* seconds : {&timing.median, &timing.min, &timing.max}) *seconds /= kInGraph;
  return timing;
}

ChosenBatchedPlan choose_batched_plan(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns,
                                      const BatchedRequest& request, Stream& stream) {
  const bool named = request.kernel != "auto";
  const Timer timer;
  const std::vector<BatchedCandidate> candidates = batched_candidates(*batch, columns, request);
  const auto bytes = [&](std::int64_t rows, ValueType type) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) * size_of(type);
  };
  const std::size_t x_bytes = bytes(batch->at.cols(), batch->type), y_bytes = bytes(batch->at.rows(), sum_type(batch->type));
  const bool measures = request.measure && batch->device.backend == Backend::cuda && candidates.size() > 1 &&
                        batch->at.nnz() > 0 &&
                        available_memory(batch->device) > static_cast<std::int64_t>(x_bytes + y_bytes);
  Buffer x, y;
  if (measures) {
    x = Buffer(batch->device, x_bytes);
    y = Buffer(batch->device, y_bytes);
    fill_bytes(x.data(), 0, x_bytes, stream);
  }
  const auto time = [&](const BatchedPlan& plan) {
    return time_batched(plan, x.data(), columns, y.data(), columns, {}, stream).median;
  };
  ChosenBatchedPlan chosen;
  double best = 0;
  std::size_t leader = 0;  // among the measurements
  for (const BatchedCandidate& candidate : candidates) {
    auto plan = make_batched_plan(*candidate.kernel, batch, columns, candidate.policy);
    if (request.reproducible && !plan->reproducible()) continue;
    plan->place(stream);
    if (!measures) {
      chosen.plan = std::move(plan);
      break;
    }
    double seconds = time(*plan);
    bool faster = true;
    if (chosen.plan) {
      faster = overtakes(
          seconds, [&] { return time(*plan); }, best, [&] { return time(*chosen.plan); }, stream.device().backend);
      chosen.measurements[leader].seconds = best;
    }
    chosen.measurements.push_back({plan->kernel, plan->policy.text(), seconds});
    if (!faster) continue;
    leader = chosen.measurements.size() - 1;
    chosen.plan = std::move(plan);
    best = seconds;
  }
  if (!chosen.plan)
    throw Error(ErrorKind::usage, "no kernel that takes this batch is reproducible; do without reproducible results",
                "reproducible");
  Choice choice = describe_choice(chosen.measurements, best, named, candidates.size(),
                                  "expected to be the fastest; nothing was measured");
  chosen.decision = choice.decision;
  chosen.why = std::move(choice.why);
  chosen.choosing_seconds = timer.seconds();
  return chosen;
}

}  // namespace shardmat
