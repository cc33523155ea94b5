#include "runtime/timing/measure_performance.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "comm/exchange/halo.h"
#include "partition/source/partitioner.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/load_part.h"
#include "runtime/matrix/product.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/matrix/vectors.h"
#include "runtime/timing/iterate.h"

namespace shardmat {
namespace {

/// The rows [begin, end) of another source.
class RowRange final : public RowSource {
 public:
  RowRange(const RowSource& source, std::int64_t begin, std::int64_t end) : source_(source), begin_(begin), end_(end) {}
  std::int64_t rows() const override { return end_ - begin_; }
  std::int64_t cols() const override { return source_.cols(); }
  std::string name() const override { return fmt::format("rows {} to {} of {}", begin_, end_, source_.name()); }
  HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const override {
    return source_.row_lengths(begin_ + begin, begin_ + end);
  }
  HostCsr read_rows(std::int64_t begin, std::int64_t end) const override {
    return source_.read_rows(begin_ + begin, begin_ + end);
  }
  void visit_rows(std::int64_t begin, std::int64_t end, const std::function<void(const CsrView&)>& use) const override {
    source_.visit_rows(begin_ + begin, begin_ + end, use);
  }

 private:
  const RowSource& source_;
  std::int64_t begin_, end_;
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

std::int64_t most_nonzeros(const Partition& partition, const HostVector<std::int64_t>& row_ptr) {
  std::int64_t most = 0;
  for (std::size_t p = 0; p + 1 < partition.row_starts.size(); ++p)
    most = std::max(most, row_ptr[static_cast<std::size_t>(partition.row_starts[p + 1])] -
                              row_ptr[static_cast<std::size_t>(partition.row_starts[p])]);
  return most;
}

/// The part whose product moves most bytes. Parts of equal nonzeros differ in their rows, and so in x and y.
int slowest_part(const Partition& partition, const HostVector<std::int64_t>& row_ptr, const LoadOptions& load) {
  const auto value = static_cast<std::int64_t>(size_of(load.type));
  const std::int64_t row_bytes = 8 + 2 * load.right_hand_sides * value, entry_bytes = 4 + value;
  int slowest = 0;
  std::int64_t most = -1;
  for (int p = 0; p < partition.parts(); ++p) {
    const std::int64_t begin = partition.row_starts[static_cast<std::size_t>(p)];
    const std::int64_t end = partition.row_starts[static_cast<std::size_t>(p) + 1];
    const std::int64_t bytes =
        (end - begin) * row_bytes +
        (row_ptr[static_cast<std::size_t>(end)] - row_ptr[static_cast<std::size_t>(begin)]) * entry_bytes;
    if (bytes > most) slowest = p, most = bytes;
  }
  return slowest;
}

/// Part p as its rank would hold it in the layout "compact", with an x of its own and received entries, but all of one rank.
LoadedPart load_part_of(Context& context, const MatrixSource& source, const Partition& partition, int p, ValueType type) {
  const auto at = static_cast<std::size_t>(p);
  const std::vector<std::int64_t> x_starts = column_starts(partition, source.rows->cols());
  MatrixSource range;
  range.rows = std::make_unique<RowRange>(*source.rows, partition.row_starts[at], partition.row_starts[at + 1]);
  PartOptions options;
  options.type = type, options.sort = LocalSort::none;
  LoadedPart part = load_part(range, context, options);
  const Halo halo = find_halo(x_starts[at], x_starts[at + 1] - x_starts[at], part.csr.columns());
  part.csr.change_columns([&](auto columns) { halo.renumber(columns); });
  part.cols = part.csr.cols = halo.length();
  part.x = even_share(part.cols, 1, 0);
  return part;
}

/// Seconds of the product of a part, which is expected to take `about` seconds.
double time_part(Context& context, LoadedPart part, const LoadOptions& load, double about) {
  constexpr double kSeconds = 1, kFewest = 20, kMost = 200;  // products
  DistributedMatrix matrix(std::move(part), context, load);
  const auto product = matrix.product(load.right_hand_sides);
  const auto x = open_vector("random", "x", matrix.cols(), 1, product->columns());
  to_device(product->x().data, collect(*x, matrix.x_rows()->ids()), matrix.type(), context.stream());
  const Buffer y(context.device(), product->y_bytes());
  IterateOptions options;
  options.iterations = static_cast<std::int64_t>(std::clamp(kSeconds / std::max(about, 1e-9), kFewest, kMost));
  return iterate(*product, product->y_view(y.data()), options).iteration.median;
}

}  // namespace

ProductCost measure_product_cost(Context& context, const MatrixSource& source, LoadOptions load, double seconds) {
  const ContextScope scope(context);
  constexpr int kParts[] = {64, 16, 4, 2};
  constexpr double kTuning = 1;  // seconds
  load.exchange = "auto";
  load.sort = LocalSort::none;
  if (load.plan.budget_seconds == 0) load.plan.budget_seconds = kTuning;  // as much is measured as of the whole matrix
  const HostVector<std::int64_t> row_ptr = read_row_pointers(*source.rows);
  const std::int64_t nnz = row_ptr.back();
  if (nnz == 0) return {};
  const std::int64_t node = node_block_size_of(source, context.communicator(), load.node_block_size);
  std::vector<ProductCost::Point> points;
  for (const int parts : kParts) {
    const Partition partition = make_partition(load.method, row_ptr, parts, node);
    const std::int64_t largest = most_nonzeros(partition, row_ptr);
    if (largest == nnz || (!points.empty() && largest <= points.back().nnz)) continue;
    LoadedPart part = load_part_of(context, source, partition, slowest_part(partition, row_ptr, load), load.type);
    points.push_back({largest, time_part(context, std::move(part), load, seconds / parts)});
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
