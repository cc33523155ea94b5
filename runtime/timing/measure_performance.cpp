#include "runtime/timing/measure_performance.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/matrix/vectors.h"
#include "runtime/timing/iterate.h"

namespace shardmat {
namespace {

/// The first rows of another source.
class FirstRows final : public RowSource {
 public:
  FirstRows(const RowSource& source, std::int64_t rows) : source_(source), rows_(rows) {}
  std::int64_t rows() const override { return rows_; }
  std::int64_t cols() const override { return source_.cols(); }
  std::string name() const override { return fmt::format("{} rows of {}", rows_, source_.name()); }
  HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const override {
    return source_.row_lengths(begin, end);
  }
  HostCsr read_rows(std::int64_t begin, std::int64_t end) const override { return source_.read_rows(begin, end); }
  void visit_rows(std::int64_t begin, std::int64_t end, const std::function<void(const CsrView&)>& use) const override {
    source_.visit_rows(begin, end, use);
  }

 private:
  const RowSource& source_;
  std::int64_t rows_;
};

/// A recorded step that writes a word, and with `split` another on the second stream. On the host, where all is done at
/// once, 0.
double seconds_of_step(Context& context, bool split) {
  const ContextScope scope(context);
  constexpr int kTimes = 200;
  if (context.device().backend == Backend::host) return 0;
  const Buffer words(context.device(), 16);
  Stream &stream = context.stream(), &other = context.exchange_stream();
  Event forked(context.device()), joined(context.device()), begin(context.device()), end(context.device());
  Graph graph(stream, [&] {
    if (split) {
      forked.record(stream);
      other.wait_for(forked);
      fill_bytes(words.as<char>() + 8, 0, 8, other);
      joined.record(other);
    }
    fill_bytes(words.data(), 0, 8, stream);
    if (split) stream.wait_for(joined);
  });
  for (int i = 0; i < kTimes; ++i) graph.launch(stream);
  begin.record(stream);
  for (int i = 0; i < kTimes; ++i) graph.launch(stream);
  end.record(stream);
  stream.synchronize();
  return end.seconds_since(begin) / kTimes;
}

/// Seconds of a product with the first rows, which is thought to take `about` as long.
double time_first_rows(Context& context, const MatrixSource& source, std::int64_t rows, const LoadOptions& load,
                       double about) {
  constexpr double kSeconds = 1, kFewest = 20, kMost = 200;  // products
  MatrixSource part;
  part.rows = std::make_unique<FirstRows>(*source.rows, rows);
  DistributedMatrix matrix(part, context, load);
  const auto product = matrix.product(load.right_hand_sides);
  const auto x = open_vector("random", "x", matrix.cols(), 1, product->columns());
  to_device(product->x().data, collect(*x, matrix.x_ids()), matrix.type(), context.stream());
  const Buffer y(context.device(), product->y_bytes());
  IterateOptions options;
  options.iterations = static_cast<std::int64_t>(std::clamp(kSeconds / std::max(about, 1e-9), kFewest, kMost));
  return iterate(*product, product->y_view(y.data()), options).iteration.median;
}

}  // namespace

ProductCost measure_product_cost(Context& context, const MatrixSource& source, LoadOptions load, double seconds) {
  const ContextScope scope(context);
  constexpr std::int64_t kShares[] = {64, 16, 4, 2};
  constexpr double kTuning = 1;  // seconds
  load.exchange = "auto";
  load.sort = LocalSort::none;
  if (load.plan.budget_seconds == 0) load.plan.budget_seconds = kTuning;  // as much is measured as of the whole matrix
  const HostVector<std::int64_t> row_ptr = read_row_pointers(*source.rows);
  const std::int64_t nnz = row_ptr.back();
  if (nnz == 0) return {};
  std::vector<ProductCost::Point> points;
  for (const std::int64_t share : kShares) {
    const auto end = std::lower_bound(row_ptr.begin(), row_ptr.end(), (nnz + share - 1) / share);
    if (*end == nnz || (!points.empty() && *end == points.back().nnz)) continue;
    points.push_back(
        {*end, time_first_rows(context, source, end - row_ptr.begin(), load, seconds / static_cast<double>(share))});
  }
  points.push_back({nnz, seconds});
  return ProductCost(std::move(points));
}

double measure_launch_latency(Context& context) { return seconds_of_step(context, false); }

double measure_split_latency(Context& context) {
  const double one = seconds_of_step(context, false);
  return std::max(0.0, seconds_of_step(context, true) - one);
}

}  // namespace shardmat
