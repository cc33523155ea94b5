#include "runtime/run/pagerank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "partition/source/partitioner.h"
#include "partition/vectors/vector_file.h"
#include "runtime/base/break_on_error.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/vectors.h"
#include "runtime/run/reported_run.h"
#include "runtime/run/seeds.h"
#include "runtime/run/time_product.h"
#include "runtime/solvers/eigen/pagerank.h"
#include "runtime/source/hdf5_on_ranks.h"
#include "runtime/source/matrix_source.h"

namespace shardmat {
namespace {

class PageRankRun : ReportedRun<PageRankOptions, PageRankReport> {
 public:
  PageRankRun(Context& context, const PageRankOptions& options) : ReportedRun(context, options), load_(options.load) {}

  PageRankReport operator()() {
    return break_on_error(communicator_, [&] {
      check_options();
      open();
      load();
      iterate();
      if (!options_.output.empty()) write();
      describe();
      return std::move(report_);
    });
  }

 private:
  std::int64_t columns() const { return load_.right_hand_sides; }

  void check_options() {
    seeds_ = read_seeds(options_.seeds, communicator_);
    communicator_.run_agreed([&] {
      const PageRankSettings& s = options_.settings;
      if (!(s.damping >= 0 && s.damping < 1))
        throw Error(ErrorKind::usage, fmt::format("the damping must be 0 or more and less than 1, not {:g}", s.damping),
                    "damping");
      make_partition(load_.method, std::vector<std::int64_t>{0}, 1);  // before long work: is there such a method?
      if (seeds_.weights.empty() && columns() > 1)
        throw Error(ErrorKind::usage,
                    "several columns without a file of weights for them; give several seeds instead, one for each column",
                    "right_hand_sides");
      if (!seeds_.vertices.empty()) load_.right_hand_sides = std::ssize(seeds_.vertices);
      require_column_block(columns(), load_.column_block);
      if (options_.output.empty()) return;
      check_vector_suffix(options_.output);
      if (communicator_.rank() == 0) check_vector_writable(options_.output, columns());  // it writes
    });
    if (!seeds_.weights.empty()) describe_on_all_ranks(VectorFile::hdf5_input(seeds_.weights, "seeds"), communicator_);
  }

  void open() {
    MatrixSource graph;
    phase("read", [&] {
      graph = open_matrix(options_.graph, communicator_,
                          {options_.unweighted, "rows", load_.progress, false, options_.choices, false, 1});
    });
    communicator_.run_agreed([&] {
      const std::int64_t vertices = graph.rows->rows();
      require_vertices(seeds_, options_.seeds, graph.rows->name(), vertices);
      if (!seeds_.weights.empty() && vertices == graph.rows->cols())
        weights_ = open_vector(seeds_.weights, "seeds", vertices, 0, columns());
    });
    phase("transpose", [&] { links_ = transition_matrix(graph, {options_.unweighted, load_.method}, communicator_); });
  }

  void load() {
    matrix_ = std::make_unique<DistributedMatrix>(links_.links, context_, load_);
    // The matrix has a copy of the rows; the report needs nothing but their name.
    links_.links.rows = make_memory_source(std::make_shared<const HostCsr>(), links_.links.rows->name());
    PageRankSettings settings = options_.settings;
    settings.columns = columns();
    pagerank_ = std::make_unique<PageRank>(*matrix_, settings);
    matrix_->drop_host_rows();
    add_load_phases(matrix_->load_times(), communicator_, report_.phases);
    phase("vectors", [&] {
      scores_.emplace(*matrix_, VectorLayout::rows, sum_type(matrix_->type()), columns());
      if (options_.seeds.empty()) return;
      restarts_.emplace(*matrix_, VectorLayout::rows, sum_type(matrix_->type()), columns());
      communicator_.run_agreed([&] {
        const HostVector<double> values = weights_ ? own_weights() : own_seeds();
        to_device(restarts_->view().data, values, restarts_->type(), context_.stream());
      });
    });
  }

  HostVector<double> own_seeds() const {
    require_host_memory(8 * restarts_->local_rows() * columns(), "the restart distributions");
    HostVector<double> values(static_cast<std::size_t>(restarts_->local_rows() * columns()), 0.0);
    std::vector<std::pair<std::int64_t, std::size_t>> places;  // of seeds: vertex, column
    for (std::size_t j = 0; j < seeds_.vertices.size(); ++j) places.push_back({seeds_.vertices[j], j});
    std::sort(places.begin(), places.end());
    for (std::size_t i = 0; i < restarts_->ids().size(); ++i) {
      const std::int64_t vertex = restarts_->ids()[i];
      for (auto at = std::lower_bound(places.begin(), places.end(), std::pair(vertex, std::size_t{0}));
           at != places.end() && at->first == vertex; ++at)
        values[i * places.size() + at->second] = 1;
    }
    return values;
  }

  HostVector<double> own_weights() const {
    HostVector<double> values = collect(*weights_, restarts_->ids());
    const auto width = static_cast<std::size_t>(columns());
    for (std::size_t at = 0; at < values.size(); ++at)
      if (!(values[at] >= 0 && std::isfinite(values[at])))
        throw Error(ErrorKind::input,
                    fmt::format("{}, row {}, column {}: the weight {:g} of a restart must be finite and 0 or more",
                                weights_->name(), restarts_->ids()[at / width], at % width, values[at]),
                    "seeds");
    require_in_range(restarts_->type(), values, weights_->name());
    return values;
  }

  void iterate() {
    phase("iterate", [&] {
      report_.result = pagerank_->run(restarts_ ? &*restarts_ : nullptr, *scores_, options_.monitor, options_.stop);
    });
    report_.top = top_entries(*scores_, options_.top, context_.stream());
    if (report_.result.iterations == 0) return;
    const ProductSeconds seconds = time_product(pagerank_->product(), context_.stream());
    report_.product_seconds = seconds.product, report_.exchange_seconds = seconds.exchange;
  }

  void write() {
    phase("write", [&] { scores_->write(options_.output, "scores", context_.stream()); });
    report_.output = options_.output;
  }

  void describe() {
    PageRankReport& r = report_;
    describe_product(pagerank_->product(), links_.links, load_, r);
    r.unweighted = options_.unweighted;
    r.personalisation = weights_ ? weights_->name() : options_.seeds.empty() ? "uniform" : "seeds";
    r.seeds = seeds_.vertices;
    r.dangling = links_.dangling;
    r.settings = pagerank_->settings();
    r.sums = pagerank_->summed_by();
    if (r.result.iterations > 0) r.seconds_an_iteration = r.result.seconds / static_cast<double>(r.result.iterations);
    double held = static_cast<double>(matrix_->device_bytes() + pagerank_->device_bytes());
    held += (restarts_ ? 2 : 1) * static_cast<double>(pagerank_->product().y_bytes());
    r.device_bytes = over_ranks(held, communicator_);
    r.host_peak_bytes = over_ranks(static_cast<double>(peak_host_memory()), communicator_);
  }

  LoadOptions load_;
  Seeds seeds_;
  Transition links_;
  std::unique_ptr<DistributedMatrix> matrix_;
  std::unique_ptr<PageRank> pagerank_;
  std::unique_ptr<VectorSource> weights_;
  std::optional<DistributedVector> restarts_, scores_;
};

}  // namespace

PageRankReport pagerank(Communicator& communicator, const PageRankOptions& options) {
  Context context(communicator, options.backend, options.threads);
  return pagerank(context, options);
}

PageRankReport pagerank(Context& context, const PageRankOptions& options) {
  const ContextScope scope(context);
  return PageRankRun(context, options)();
}

}  // namespace shardmat
