#include "tools/bench/batched_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/batched/matrix_of.h"

namespace shardmat::tools {
namespace {

constexpr std::uint64_t kOrderOfEntries = 1;    ///< seed of the order in which a SparseTensor has them
constexpr std::int64_t kMostChecked = 1 << 22;  ///< entries of Y
constexpr int kTogether = 20;                   ///< products between two events …
constexpr double kLong = 1e-3;                  ///< … that take no longer than so many seconds
constexpr double kMostSeconds = 1;

}  // namespace

BatchedTrial::BatchedTrial(const BatchView& batch, ValueType type, Stream& stream, const TrialOptions& options)
    : batch_(batch), type_(type), stream_(stream), options_(options), table_(type), csr_(upload(batch, type, stream)) {}

std::shared_ptr<const DeviceBatch> BatchedTrial::batch_in(BatchFormat format) {
  if (format == BatchFormat::csr) return csr_;
  if (!coo_) coo_ = upload(to_coo(batch_, kOrderOfEntries).view(), type_, stream_);
  return coo_;
}

void BatchedTrial::prepare(std::int64_t columns) {
  columns_ = columns;
  x_ = Buffer(), y_ = Buffer();
  const std::size_t width = static_cast<std::size_t>(columns) * size_of(type_);
  const std::size_t x_bytes = static_cast<std::size_t>(batch_.cols()) * width,
                    y_bytes = static_cast<std::size_t>(batch_.rows()) * width;
  require_memory(stream_.device(), static_cast<std::int64_t>(x_bytes + y_bytes),
                 fmt::format("X and Y of {} columns", columns));
  x_ = Buffer(stream_.device(), x_bytes);
  y_ = Buffer(stream_.device(), y_bytes);
  table_.fill(x_, stream_);
  if (!options_.verify) return;
  host_y_.reserve(y_bytes, stream_.device(), true);
  compute_expected();
}

void BatchedTrial::compute_expected() {
  // Odd, so that the rows looked at are not always the same ones of matrices whose sizes are powers of two.
  row_step_ = batch_.rows() * columns_ <= kMostChecked ? 1 : batch_.rows() * columns_ / kMostChecked | 1;
  const std::int64_t rows = (batch_.rows() + row_step_ - 1) / row_step_;
  const auto width = static_cast<std::size_t>(columns_);
  expected_.assign(static_cast<std::size_t>(rows) * width, 0);
  bound_.assign(expected_.size(), 0);
  const auto& at = csr_->at;
  parallel_ranges(rows, 64, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const auto row = static_cast<std::size_t>(i * row_step_), place = static_cast<std::size_t>(i) * width;
      const auto matrix = batched::matrix_of(i * row_step_, at.first_row.data(), static_cast<std::int32_t>(at.count()));
      const std::int64_t shift = at.first_col[static_cast<std::size_t>(matrix)];
      const std::int64_t begin = batch_.row_ptr[row] - batch_.row_ptr[0], end = batch_.row_ptr[row + 1] - batch_.row_ptr[0];
      for (std::int64_t k = begin; k < end; ++k) {
        const auto entry = static_cast<std::size_t>(k);
        const double value = rounded(type_, batch_.values[entry]);
        for (std::size_t j = 0; j < width; ++j) {
          const double term = value * table_.at((shift + batch_.col_idx[entry]) * columns_ + static_cast<std::int64_t>(j));
          expected_[place + j] += term;
          bound_[place + j] += std::abs(term);
        }
      }
      for (std::size_t j = 0; j < width; ++j)
        bound_[place + j] *= 2 * unit_roundoff(type_) * static_cast<double>(end - begin + 2);
    }
  });
}

std::int64_t BatchedTrial::count_wrong() {
  copy_to_host(host_y_.data(), y_.data(), y_.bytes(), stream_);
  stream_.synchronize();
  std::int64_t wrong = 0;
  dispatch(type_, [&](auto tag) {
    const auto* y = host_y_.as<typename decltype(tag)::type>();
    const auto width = static_cast<std::size_t>(columns_), step = static_cast<std::size_t>(row_step_);
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      const auto found = static_cast<double>(y[i / width * step * width + i % width]);
      wrong += !(std::abs(found - expected_[i]) <= bound_[i]);
    }
  });
  return wrong;
}

int BatchedTrial::together(const std::function<void()>& product) {
  TimingOptions timing;
  timing.repetitions = 3;
  timing.warm_ups = 1;
  return time_work(product, stream_, timing).median > kLong ? 1 : kTogether;
}

Timing BatchedTrial::mean_of(int products, const std::function<void()>& work) {
  TimingOptions timing;
  timing.repetitions = options_.repetitions;
  timing.warm_up_seconds = kUsualWarmUp;
  timing.most_seconds = kMostSeconds;
  Timing result = time_work(work, stream_, timing);
  for (double* seconds : {&result.median, &result.min, &result.max}) *seconds /= products;
  return result;
}

Timing BatchedTrial::on_stream(const std::function<void()>& product) {
  const int products = together(product);
  return mean_of(products, [&] {
    for (int i = 0; i < products; ++i) product();
  });
}

Timing BatchedTrial::in_graph(const std::function<void()>& product, int most) {
  const int products = together(product), inside = std::min(most, products);
  Graph graph(stream_, [&] {
    for (int i = 0; i < inside; ++i) product();
  });
  return mean_of(products, [&] {
    for (int i = 0; i < products; i += inside) graph.launch(stream_);
  });
}

Timing BatchedTrial::from_cold(const Method& method) {
  TimingOptions timing;
  timing.repetitions = options_.repetitions;
  timing.most_seconds = kMostSeconds;
  timing.flush = options_.flush;
  // A few launches take less than flushing, so that the device does not wait for the host; many go as a graph.
  if (method.in_graph > 1) return time_work(method.multiply, stream_, timing);
  Graph graph(stream_, method.multiply);
  return time_work([&] { graph.launch(stream_); }, stream_, timing);
}

void BatchedTrial::measure(const Method& method, BatchedResult& result) {
  const auto placed = [&] {
    method.place();
    method.multiply();
  };
  if (method.plain) {
    result.plain = on_stream(method.multiply);
    result.plain_placed = method.place ? on_stream(placed) : result.plain;
  }
  if (method.in_graph == 0) return;
  result.graph = in_graph(method.multiply, method.in_graph);
  result.graph_placed = method.place ? in_graph(placed, method.in_graph) : result.graph;
  if (options_.flush != nullptr) result.cold = from_cold(method);
}

BatchedResult BatchedTrial::measure(const std::string& kernel) {
  const Device device = stream_.device();
  const auto format = kernel == "auto" ? BatchFormat::csr : find_batched_kernel(kernel, device.backend).format;
  BatchedRequest request;
  request.kernel = kernel;
  const ChosenBatchedPlan chosen = choose_batched_plan(batch_in(format), columns_, request, stream_);
  BatchedPlan& plan = *chosen.plan;
  const Buffer work(device, plan.work_bytes());
  HostBuffer staging;
  staging.reserve(plan.staging_bytes(), device, true);
  const bool one_launch = kernel != "coo_tensorflow";
  Method method;
  method.multiply = [&] { plan.multiply(x_.data(), columns_, y_.data(), columns_, {}, stream_); };
  if (plan.work_bytes() > 0) method.place = [&] { plan.place(work.data(), staging.data(), stream_); };
  method.in_graph = one_launch ? kTogether : 1;
  BatchedResult result;
  result.method = kernel;
  result.heading = one_launch ? kernel : std::string("TensorFlow");
  result.choice = fmt::format("{}{}{}", plan.kernel, plan.policy.empty() ? "" : " ", plan.policy.text());
  result.own = one_launch;
  plan.place(work.data(), staging.data(), stream_);
  if (options_.verify) {
    fill_bytes(y_.data(), 0xff, y_.bytes(), stream_);  // NaN
    method.multiply();
    result.wrong = count_wrong();
  }
  measure(method, result);
  return result;
}

BatchedResult BatchedTrial::measure(const PeerKind& kind) {
  const PeerInput input{batch_, *csr_, x_.data(), y_.data(), columns_};
  BatchedResult best;
  best.method = kind.name;
  best.heading = kind.heading;
  best.refused = kind.why_not(input);
  if (!best.refused.empty()) return best;
  const BatchedResult start = best;
  std::string wrong_choices;
  const auto seconds = [](const BatchedResult& r) { return (r.graph ? r.graph : r.plain)->median; };
  for (const auto& peer : kind.make(input, stream_)) {
    BatchedResult result = start;
    result.choice = peer->choice;
    if (options_.verify) {
      fill_bytes(y_.data(), 0xff, y_.bytes(), stream_);  // NaN
      peer->multiply(stream_);
      result.wrong = count_wrong();
    }
    Method method{[&] { peer->multiply(stream_); }, {}, kind.plain, kind.in_graph};
    if (peer->has_descriptors()) method.place = [&] { peer->place(stream_); };
    measure(method, result);
    if (result.wrong > 0) wrong_choices += (wrong_choices.empty() ? "" : ", ") + result.choice;
    const bool better = best.choice.empty() || (result.wrong == 0) > (best.wrong == 0) ||
                        ((result.wrong == 0) == (best.wrong == 0) && seconds(result) < seconds(best));
    if (better) best = std::move(result);
  }
  best.wrong_choices = wrong_choices;
  return best;
}

BatchedResult BatchedTrial::measure_copy() {
  // A copy reads and writes each byte: half as many make as much traffic.
  const auto bytes = static_cast<std::size_t>(compulsory_bytes() / 2);
  const Buffer from(stream_.device(), bytes), to(stream_.device(), bytes);
  fill_bytes(from.data(), 0, bytes, stream_);
  BatchedResult result;
  result.method = "copy";
  measure({[&] { copy_on_device(to.data(), from.data(), bytes, stream_); }, {}, true, kTogether}, result);
  // In a graph another engine may copy: better for few bytes, worse for many.
  if (result.plain && result.graph && result.plain->median < result.graph->median) result.graph = result.plain;
  return result;
}

}  // namespace shardmat::tools
