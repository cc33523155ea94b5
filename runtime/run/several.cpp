#include "runtime/run/several.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "comm/long_wait.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"
#include "partition/shard/shard_file.h"
#include "partition/vectors/vector_file.h"
#include "runtime/base/break_on_error.h"
#include "runtime/context/context.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/matrix/vectors.h"
#include "runtime/source/hdf5_on_ranks.h"
#include "runtime/source/matrix_source.h"
#include "runtime/timing/iterate.h"
#include "runtime/timing/measure_performance.h"

namespace shardmat {
namespace {

/// Nonzeros of a matrix; each rank counts an even share of the rows.
std::int64_t count_nonzeros(const MatrixSource& source, Communicator& communicator) {
  if (source.file != nullptr) return source.file->nnz();
  const std::vector<std::int64_t> shares = even_starts(source.rows->rows(), communicator.size());
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const std::int64_t mine = communicator.run_agreed([&] {
    const HostVector<std::int64_t> lengths = source.rows->row_lengths(shares[rank], shares[rank + 1]);
    return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  });
  return communicator.all_reduce(mine, Reduction::sum);
}

/// The rank of each matrix: the largest first, each to the rank with least so far (R. L. Graham, "Bounds on Multiprocessing
/// Timing Anomalies", SIAM J. Appl. Math. 1969).
std::vector<int> spread(std::span<const SeveralItem> items, int ranks) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return items[a].nnz > items[b].nnz; });
  std::vector<std::int64_t> load(static_cast<std::size_t>(ranks), 0), count(load);
  std::vector<int> rank_of(items.size());
  for (const std::size_t i : order) {
    std::size_t least = 0;
    for (std::size_t r = 1; r < load.size(); ++r)
      if (std::pair(load[r], count[r]) < std::pair(load[least], count[least])) least = r;
    rank_of[i] = static_cast<int>(least);
    load[least] += items[i].nnz;
    ++count[least];
  }
  return rank_of;
}

/// One run; keeps what its steps share.
class Several {
 public:
  Several(Context& context, const SeveralOptions& options)
      : context_(context), ranks_(context.communicator()), options_(options), load_(options.each.load) {
    load_.progress = options.each.progress;
    load_.host_rows = HostRows::drop;
  }

  SeveralReport operator()() {
    return break_on_error(ranks_, [&] { return steps(); });
  }

 private:
  /// A matrix that this rank has, or has a share of.
  struct Loaded {
    std::size_t item;
    std::unique_ptr<DistributedMatrix> matrix;
    std::unique_ptr<Product> product;
    Buffer y;

    Dense y_view() const { return product->y_view(y.data()); }
  };

  SeveralReport steps() {
    ranks_.run_agreed([&] { check_options(); });
    describe_on_all_ranks(VectorFile::hdf5_input(options_.each.x, "x"), ranks_);
    for (const std::string& name : options_.matrices) {
      sources_.push_back(open_matrix(name, ranks_,
                                     {options_.each.allow_nonfinite, load_.method, load_.progress, false,
                                      options_.each.choices, false, load_.node_block_size}));
      const MatrixSource& source = sources_.back();
      SeveralItem item;
      item.matrix = source.rows->name();
      item.rows = source.rows->rows(), item.cols = source.rows->cols();
      report_.items.push_back(std::move(item));
      report_.items.back().nnz = count_nonzeros(source, ranks_);
    }
    ranks_.run_agreed([&] { check_shapes(); });
    place();
    if (whole_) {
      alone_ = std::make_unique<Communicator>(MPI_COMM_SELF, ranks_.timeout_seconds());
      own_ = ranks_.run_agreed([&] { return std::make_unique<Context>(*alone_, context_); });
      const LongWait wait(ranks_);  // ranks with less to load
      ranks_.run_agreed([&] { load_all(); });
    } else {
      load_all();
    }
    share_results();
    if (report_.passed() && options_.each.iterations > 0) time();
    describe();
    return std::move(report_);
  }

  Context& context() { return whole_ ? *own_ : context_; }

  void check_options() const {
    const MultiplyOptions& o = options_.each;
    if (options_.matrices.empty()) throw Error(ErrorKind::usage, "there is no matrix to multiply");
    if (!o.output.empty()) throw Error(ErrorKind::usage, "y is written for one matrix, not for several", "output");
    if (o.beta != 0) throw Error(ErrorKind::usage, "several matrices multiply y = alpha A x: beta must be 0", "beta");
    if (o.x != "ones" && o.x != "zeros" && o.x != "random")
      throw Error(ErrorKind::usage, fmt::format("x = {}: for several matrices x is ones, zeros or random", o.x), "x");
    if (o.verify_mode == VerifyMode::sampled)
      throw Error(ErrorKind::usage, "several matrices are verified in full, not sampled", "verify_mode");
    require_consistent(o, context_.device().backend);
  }

  void check_shapes() const {
    for (const SeveralItem& item : report_.items)
      if (options_.each.mode != Mode::repeat && item.rows != item.cols)
        throw Error(ErrorKind::usage,
                    fmt::format("mode {} needs square matrices; {} is {} × {}", name(options_.each.mode), item.matrix,
                                item.rows, item.cols),
                    "mode");
  }

  /// Decides between split and whole.
  void place() {
    const std::vector<int> rank_of = spread(report_.items, ranks_.size());
    const bool possible = fits(rank_of);
    if (options_.placement == SeveralPlacement::whole && !possible)
      ranks_.run_agreed([&] {
        throw Error(ErrorKind::resources,
                    "the matrices of a rank do not fit its memory whole; use more ranks, or split the matrices",
                    "placement");
      });
    whole_ = options_.placement == SeveralPlacement::whole;
    report_.why = "as asked";
    if (options_.placement == SeveralPlacement::automatic) {
      predict(rank_of);
      whole_ = possible && report_.predicted_whole <= report_.predicted_split;
      report_.why = ranks_.size() == 1
                        ? "one rank"
                        : fmt::format("predicted: {} an iteration whole, {} split{}", human_seconds(report_.predicted_whole),
                                      human_seconds(report_.predicted_split), possible ? "" : "; whole does not fit");
    }
    for (std::size_t i = 0; i < rank_of.size(); ++i) report_.items[i].rank = whole_ ? rank_of[i] : -1;
    report_.placement = whole_ ? "whole" : "split";
  }

  /// On the device the bytes of CSR with columns of 32 bits, and as much again while it is made; on the host, which the
  /// ranks there share, the largest matrix while it is loaded.
  bool fits(std::span<const int> rank_of) {
    double bytes = 0, loading = 0;
    for (std::size_t i = 0; i < rank_of.size(); ++i) {
      const SeveralItem& item = report_.items[i];
      if (rank_of[i] != ranks_.rank()) continue;
      bytes += static_cast<double>(item.nnz) * bytes_a_nonzero() +
               static_cast<double>((item.rows + item.cols) * load_.right_hand_sides + item.rows) * 8;
      loading = std::max(loading, 16 * static_cast<double>(item.nnz) + 64 * static_cast<double>(item.rows + kSliceEntries));
    }
    const double host = static_cast<double>(share_of_host_memory());
    const bool on_host = context_.device().backend == Backend::host;
    const double free = on_host ? host : static_cast<double>(available_memory(context_.device()));
    const bool room = 2 * bytes <= free && loading + (on_host ? 2 * bytes : 0) <= host;
    return ranks_.all_reduce(room ? 1 : 0, Reduction::min) == 1;
  }

  double bytes_a_nonzero() const { return static_cast<double>(size_of(load_.type)) + 4; }

  /// From copy bandwidth, launch and exchange latency of this machine; halos are thought small.
  void predict(std::span<const int> rank_of) {
    double bandwidth = 0, latency = 0;
    ranks_.run_agreed([&] {
      bandwidth = context_.copy_bandwidth();
      latency = measure_launch_latency(context_);
    });
    bandwidth = ranks_.all_reduce(bandwidth, Reduction::min);
    latency = ranks_.all_reduce(latency, Reduction::max);
    const ProductCost product(latency, bandwidth > 0 ? bytes_a_nonzero() / bandwidth : 0);
    const double move = measure_exchange_latency(context_.exchange_context(ValueType::f64, 1));
    std::vector<double> whole(static_cast<std::size_t>(ranks_.size()), 0);
    for (std::size_t i = 0; i < rank_of.size(); ++i) {
      const std::int64_t nnz = report_.items[i].nnz;
      whole[static_cast<std::size_t>(rank_of[i])] += product(nnz);
      report_.predicted_split += product((nnz + ranks_.size() - 1) / ranks_.size()) + move;
    }
    report_.predicted_whole = *std::max_element(whole.begin(), whole.end());
  }

  void load_all() {
    for (std::size_t i = 0; i < report_.items.size(); ++i) {
      SeveralItem& item = report_.items[i];
      if (whole_ && sources_[i].by_part)  // the one rank that multiplies it reads it again
        sources_[i] = item.rank == ranks_.rank() ? open_matrix(options_.matrices[i], *alone_,
                                                               {options_.each.allow_nonfinite,
                                                                load_.method,
                                                                {},
                                                                false,
                                                                options_.each.choices,
                                                                false,
                                                                load_.node_block_size})
                                                 : MatrixSource{};
      if (whole_ && item.rank != ranks_.rank()) continue;
      Loaded loaded{i, std::make_unique<DistributedMatrix>(sources_[i], context(), load_), nullptr, {}};
      DistributedMatrix& m = *loaded.matrix;
      loaded.product = m.product(load_.right_hand_sides);
      const Product& p = *loaded.product;
      const auto x = open_vector(options_.each.x, "x", m.cols(), options_.each.seed, p.columns());
      context().communicator().run_agreed([&] {
        to_device(p.x().data, collect(*x, m.x_rows()->ids()), m.type(), context().stream());
        const std::size_t bytes = p.y_bytes();
        require_memory(context().device(), static_cast<std::int64_t>(bytes), "y");
        loaded.y = Buffer(context().device(), bytes);
        fill_bytes(loaded.y.data(), 0xff, bytes, context().stream());
      });
      p.multiply(options_.each.alpha, 0, loaded.y_view(), context().stream());
      p.wait(context().stream());
      item.kernel = p.row_plans()[0].kernel_and_tunables();
      item.exchange = p.exchange().name();
      item.column_block = p.column_block();
      if (options_.each.verify) {
        const HostVector<double> y = context().communicator().run_agreed(
            [&] { return to_host(loaded.y.data(), m.local_rows() * p.columns(), sum_type(m.type()), context().stream()); });
        item.verification = verify(m, sources_[i], {options_.each.alpha, 0, *x, nullptr, p.columns(), y}, VerifyMode::full);
      }
      loaded_.push_back(std::move(loaded));
    }
  }

  /// What only the rank knows that has a matrix.
  void share_results() {
    for (SeveralItem& item : report_.items) {
      item.kernel = ranks_.broadcast(item.kernel, std::max(item.rank, 0));
      item.exchange = ranks_.broadcast(item.exchange, std::max(item.rank, 0));
      ranks_.broadcast(std::span<std::int64_t>(&item.column_block, 1), std::max(item.rank, 0));
      if (!options_.each.verify || !whole_) continue;
      VerifyResult result = item.verification.value_or(VerifyResult{});
      ranks_.broadcast(std::span<VerifyResult>(&result, 1), item.rank);
      item.verification = result;
    }
  }

  void time() {
    std::vector<Iterated> mine;
    for (const Loaded& loaded : loaded_) mine.push_back({loaded.product.get(), loaded.y_view()});
    IterateOptions options;
    options.mode = options_.each.mode;
    options.iterations = options_.each.iterations;
    options.alpha = options_.each.alpha;
    options.graph = options_.each.graph;
    options.progress = options_.each.progress;
    const IterateResult result = iterate(ranks_, context(), mine, options);
    report_.iteration = result.iteration, report_.local = result.local, report_.exchange = result.exchange;
    report_.graph = ranks_.all_reduce(result.graph ? 1 : 0, Reduction::max) == 1;
    for (std::size_t i = 0; i < loaded_.size(); ++i) report_.items[loaded_[i].item].estimate = result.estimates[i];
    if (whole_)
      for (SeveralItem& item : report_.items) ranks_.broadcast(std::span<IterationEstimate>(&item.estimate, 1), item.rank);
  }

  void describe() {
    report_.type = name(load_.type);
    report_.mode = name(options_.each.mode);
    report_.backend = name(context_.device().backend);
    report_.ranks = context_.placement().ranks;
    report_.right_hand_sides = load_.right_hand_sides;
    std::int64_t nnz = 0, all = 0, bytes = 0;
    for (const Loaded& loaded : loaded_) {
      nnz += loaded.matrix->local_nnz();
      bytes += loaded.matrix->device_bytes() + loaded.product->device_bytes() + static_cast<std::int64_t>(loaded.y.bytes());
    }
    for (const SeveralItem& item : report_.items) all += item.nnz;
    report_.rank_nnz = over_ranks(static_cast<double>(nnz), ranks_);
    report_.device_bytes = over_ranks(static_cast<double>(bytes), ranks_);
    if (report_.iteration.median > 0)
      report_.gflops = 2e-9 * static_cast<double>(all * load_.right_hand_sides) / report_.iteration.median;
  }

  Context& context_;
  Communicator& ranks_;
  const SeveralOptions& options_;
  LoadOptions load_;
  bool whole_ = false;
  std::vector<MatrixSource> sources_;
  std::unique_ptr<Communicator> alone_;
  std::unique_ptr<Context> own_;
  std::vector<Loaded> loaded_;
  SeveralReport report_;
};

}  // namespace

SeveralPlacement parse_several_placement(std::string_view word) {
  if (word == "auto") return SeveralPlacement::automatic;
  if (word == "split") return SeveralPlacement::split;
  if (word == "whole") return SeveralPlacement::whole;
  throw Error(ErrorKind::usage, fmt::format("several matrices cannot be placed '{}'; choose auto, split or whole", word),
              "placement");
}

bool SeveralReport::passed() const {
  return std::all_of(items.begin(), items.end(),
                     [](const SeveralItem& item) { return !item.verification || item.verification->passed; });
}

SeveralReport multiply_several(Context& context, const SeveralOptions& options) {
  const ContextScope scope(context);
  return Several(context, options)();
}

}  // namespace shardmat
