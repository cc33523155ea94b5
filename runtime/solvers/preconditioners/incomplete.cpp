// M = the inverse of incomplete factors of each rank's rows (incomplete/factors.h). The host makes them, a GPU applies them
// (kernels/triangles). Without overlap M couples no rows of different ranks. With it, a rank's rows reach into the rows next
// to its own (additive Schwarz): ilu keeps its own rows of the result (restricted), ic weighs both sides by how many ranks
// have a row, so that M stays symmetric. Such factors stay in host memory: of a GPU, r and z are copied.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/kept_arrays.h"
#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "kernels/triangles/factor_solve.h"
#include "partition/source/partitioner.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/held_rows.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/incomplete/factors.h"
#include "runtime/solvers/incomplete/order.h"
#include "runtime/solvers/incomplete/pivot.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/loop/setting.h"
#include "runtime/solvers/multigrid/asymmetry.h"
#include "runtime/solvers/multigrid/take_nodes.h"

namespace shardmat {
namespace {

using incomplete::SquareRows;
using multigrid::NodeRows;

/// The fastest of the orders with exact solves in all four systems of tools/bench/results-solvers.md.
constexpr const char* kOrderOnGpu = "colours";
constexpr double kMostAsymmetry = 1e-8;  ///< of ‖A − Aᵀ‖ / ‖A‖

/// The nodes of `rows`, with those ghosts alone that its entries name: an exchange may bring more. Collective.
std::shared_ptr<const multigrid::Nodes> nodes_in_use(const NodeRows& rows) {
  const multigrid::Nodes& all = *rows.cols;
  HostVector<char> used(at(all.local_count()), 0);
  for (const std::int32_t column : rows.column) used[at(column)] = 1;
  HostVector<std::int64_t> ghosts;
  for (std::int64_t j = all.own(); j < all.local_count(); ++j)
    if (used[at(j)] != 0) ghosts.push_back(all.global(j));
  return std::make_shared<const multigrid::Nodes>(all.starts(), std::move(ghosts), all.ranks());
}

/// The rows of `nodes`, ghosts among them, in the order of all nodes; `node`: their local numbers. Collective.
SquareRows overlapping_square(const NodeRows& rows, const std::shared_ptr<const multigrid::Nodes>& nodes,
                              HostVector<std::int32_t>& node) {
  const multigrid::WithGhostRows all(rows, nodes);
  const std::int64_t own = nodes->own(), count = nodes->local_count(), entries = rows.block_entries();
  const std::int64_t before =
      std::lower_bound(nodes->ghosts().begin(), nodes->ghosts().end(), nodes->first()) - nodes->ghosts().begin();
  node.clear();
  for (std::int64_t g = 0; g < before; ++g) node.push_back(static_cast<std::int32_t>(own + g));
  for (std::int64_t i = 0; i < own; ++i) node.push_back(static_cast<std::int32_t>(i));
  for (std::int64_t g = before; own + g < count; ++g) node.push_back(static_cast<std::int32_t>(own + g));
  HostVector<std::int32_t> number(at(all.cols()->local_count()), -1);  // of the columns, among these rows
  for (std::int64_t i = 0; i < count; ++i)
    number[at(all.cols()->local(nodes->global(node[at(i)])))] = static_cast<std::int32_t>(i);
  SquareRows a{rows.row_size, {0}, {}, {}};
  std::vector<std::pair<std::int32_t, const double*>> row;
  for (const std::int32_t i : node) {
    row.clear();
    all.each_block(i, [&](std::int32_t column, const double* block) {
      if (number[at(column)] >= 0) row.emplace_back(number[at(column)], block);
    });
    std::sort(row.begin(), row.end());
    for (const auto& [column, block] : row) {
      a.column.push_back(column);
      a.value.insert(a.value.end(), block, block + entries);
    }
    a.start.push_back(std::ssize(a.column));
  }
  return a;
}

class Incomplete final : public Preconditioner {
 public:
  Incomplete(DistributedMatrix& matrix, const PreconditionerOptions& options, bool symmetric)
      : matrix_(matrix),
        held_(options.held),
        options_(options),
        symmetric_(symmetric),
        size_(options.node_block_size > 0 ? options.node_block_size : static_cast<int>(block_jacobi_size(matrix))) {
    ranks().run_agreed([&] {
      if (size_ > incomplete::kMostUnknowns)
        throw Error(ErrorKind::usage,
                    fmt::format("blocks of {}; they have 1 to {} unknowns", size_, incomplete::kMostUnknowns),
                    "node_block_size");
      if (is_half(options.multigrid.inner))
        throw Error(ErrorKind::usage, "incomplete factors are in f64 or f32, not in f16", "inner");
      require_node_block_size(size_, matrix.rows());
      if (options.factor.sweeps > 0 && (is_on_host() || (options.factor.overlap > 0 && ranks().size() > 1)))
        throw Error(ErrorKind::usage,
                    fmt::format("sweeps in place of solves are for factors on a GPU; {} exact",
                                is_on_host() ? "the host's are" : "those that overlap lie in host memory, and are"),
                    "factor_sweeps");
    });
    if (size_ > 1 && !matrix.nodes_are_whole()) require_whole_nodes();
    refresh(matrix.context().stream());
  }

  void refresh(Stream& stream) override {
    const Timer timer;
    const KeptArrays reuse;
    ranks().run_guarded([&] {
      NodeRows rows = multigrid::take_nodes(matrix_, size_, held_, stream);
      require_symmetric(rows);
      overlaps_ = options_.factor.overlap > 0 && ranks().size() > 1;
      HostVector<std::int32_t> node;
      if (overlaps_) nodes_ = nodes_in_use(rows);
      SquareRows a = overlaps_ ? overlapping_square(rows, nodes_, node) : incomplete::own_square(std::move(rows));
      if (!has_pattern_of(a)) take_pattern(a, node);
      factors_->factorise(a);
      bytes_ = factors_->bytes();
      if (is_on_gpu()) move_to_gpu(stream);
      start_ = std::move(a.start), column_ = std::move(a.column);
    });
    describe_factors(timer.seconds());
  }

  void apply(const Dense& r, const Dense& z, Stream& stream) const override {
    if (on_gpu_) on_gpu_->apply(r.data, z.data, r.type, stream);
    else if (is_on_host() && !overlaps_) dispatch(r.type, [&]<class Tag>(Tag) { apply_here<typename Tag::type>(r, z); });
    else apply_elsewhere(r, z, stream);
    if (held_ != nullptr) held_->clear(z, stream);
  }
  bool capturable() const override { return !overlaps_; }
  std::int64_t apply_bytes() const override {
    const std::int64_t vector = 8 * matrix_.local_rows() * options_.columns;
    return bytes_ * std::max(1, is_on_gpu() ? options_.factor.sweeps : 0) + 5 * vector;
  }
  std::int64_t device_bytes() const override {
    return on_gpu_ ? on_gpu_->bytes() : is_on_host() ? bytes_ + 8 * std::ssize(x_) : 0;
  }
  std::string describe() const override { return text_; }

 private:
  Communicator& ranks() const { return matrix_.context().communicator(); }
  bool is_on_host() const { return matrix_.context().device().backend == Backend::host; }
  bool is_on_gpu() const { return !is_on_host() && !overlaps_; }

  void move_to_gpu(Stream& stream) {
    triangles::Ways ways;
    ways.sweeps = options_.factor.sweeps;
    ways.most_launches = options_.factor.most_launches.value_or(ways.most_launches);
    on_gpu_.reset();
    on_gpu_.emplace(factors_->arrays(), from_, ways, options_.columns, stream);
    factors_->discard();
  }

  const char* name() const { return symmetric_ ? "ic" : "ilu"; }

  /// Blocks that were asked for must not be cut.
  void require_whole_nodes() {
    const std::vector<std::int64_t>& starts = matrix_.y_rows()->starts();
    ranks().run_agreed([&] {
      for (const std::int64_t start : starts)
        if (start % size_ != 0)
          throw Error(
              ErrorKind::usage,
              fmt::format("blocks of {} unknowns, and the rows of a rank begin at {}: take blocks of 1, or give each "
                          "rank whole nodes",
                          size_, start),
              "node_block_size");
    });
  }

  void require_symmetric(const NodeRows& rows) {
    if (!symmetric_) return;
    const double asymmetry = multigrid::asymmetry(rows);
    if (asymmetry > kMostAsymmetry)
      throw Error(
          ErrorKind::usage,
          fmt::format("ic is for symmetric matrices, and of this one A − Aᵀ has {:.2g} times the norm of A; take ilu",
                      asymmetry),
          "preconditioner");
  }

  bool has_pattern_of(const SquareRows& a) const { return factors_ != nullptr && start_ == a.start && column_ == a.column; }

  void take_pattern(const SquareRows& a, const HostVector<std::int32_t>& node) {
    const std::string& asked = options_.factor.order;
    order_ = asked;
    if (asked == "auto") order_ = is_on_gpu() && options_.factor.sweeps == 0 ? kOrderOnGpu : "natural";
    if (asked == "auto" && order_ == "natural" && incomplete::is_scattered(a)) order_ = "rcm";
    const std::optional<int> matching = incomplete::matching_of(order_);
    const bool fills = options_.factor.drop_tolerance > 0;
    incomplete::Order order =
        matching ? incomplete::order_by_colours(a, *matching, fills ? 0 : options_.factor.levels, fills, thread_count())
                 : incomplete::find_order(a, order_ == "rcm", thread_count());
    incomplete::Pattern pattern = incomplete::find_pattern(a, order, options_.factor, symmetric_);
    const HostVector<std::int64_t> rows = matrix_.y_rows()->rows_by_place();
    const std::int64_t own = matrix_.local_rows();
    from_.resize(at(a.count() * size_));
    for (std::int64_t i = 0; i < a.count(); ++i) {
      const std::int64_t of_a = order.row[at(i)], local = node.empty() ? of_a : node[at(of_a)];
      for (std::int64_t u = 0; u < size_; ++u) {
        const std::int64_t place = local * size_ + u;
        from_[at(i * size_ + u)] = static_cast<std::int32_t>(place < own && !overlaps_ ? rows[at(place)] : place);
      }
    }
    if (overlaps_ && symmetric_) weigh_ranks();
    factors_ = incomplete::make_factors(std::move(order), std::move(pattern), size_, symmetric_, options_.multigrid.inner);
    if (!is_on_gpu()) x_.resize(at(a.count() * size_ * options_.columns)), all_.reserve(x_.size());
  }

  /// 1 / √(ranks that have a node).
  void weigh_ranks() {
    HostVector<double> count(at(nodes_->local_count()), 1);
    nodes_->add_home(count, 1);
    const HostVector<double> of_ghosts = nodes_->fetch<double>(std::span<const double>(count.data(), at(nodes_->own())), 1);
    weight_.assign(count.begin(), count.begin() + nodes_->own());
    weight_.insert(weight_.end(), of_ghosts.begin(), of_ghosts.end());
    for (double& weight : weight_) weight = 1 / std::sqrt(weight);
  }

  void describe_factors(double seconds) {
    const std::int64_t blocks = ranks().all_reduce(factors_->blocks() * size_ * size_, Reduction::sum),
                       bytes = ranks().all_reduce(bytes_, Reduction::sum),
                       pieces = ranks().all_reduce(
                           std::int64_t{factors_->order().phase.size() > 1 ? factors_->order().phase[1] : 1},
                           Reduction::max),
                       rcm_ranks = ranks().all_reduce(std::int64_t{order_ == "rcm"}, Reduction::sum),
                       shifted = ranks().all_reduce(std::int64_t{factors_->shift() > 0}, Reduction::sum);
    const double slowest = ranks().all_reduce(seconds, Reduction::max),
                 shift = ranks().all_reduce(factors_->shift(), Reduction::max);
    const FactorOptions& f = options_.factor;
    text_ = f.drop_tolerance > 0 ? fmt::format("{} with drop tolerance {:g}", symmetric_ ? "ICT" : "ILUT", f.drop_tolerance)
                                 : fmt::format("{}({})", symmetric_ ? "IC" : "ILU", f.levels);
    if (size_ > 1) text_ += fmt::format(" of blocks of {}", size_);
    if (incomplete::matching_of(order_)) text_ += ", order " + order_;
    else if (rcm_ranks > 0) text_ += ", order rcm";
    if (ranks().size() > 1) text_ += fmt::format(", the rows of each rank{}", overlaps_ ? " and those next to them" : "");
    text_ += fmt::format("; {} entries in {}, type {}; ", human_count(blocks), human_bytes(static_cast<double>(bytes)),
                         shardmat::name(options_.multigrid.inner));
    text_ += pieces > 1 ? fmt::format("{} pieces at once", pieces) : "one piece";
    text_ += fmt::format("; made in {}", human_seconds(slowest));
    if (shifted > 0)
      text_ += fmt::format("; {} were met{}: {:g} times the magnitudes of each row were added to its diagonal",
                           symmetric_ ? "pivots of 0 or below" : "pivots of 0",
                           ranks().size() == 1 ? "" : fmt::format(" on {} of the ranks", shifted), shift);
    if (on_gpu_) text_ += describe_solves();
    else if (!is_on_host()) text_ += "; in host memory, vectors are copied";
  }

  std::string describe_solves() const {
    if (options_.factor.sweeps > 0) return fmt::format("; {} Jacobi sweeps of each factor", options_.factor.sweeps);
    return fmt::format("; {} and {} levels, {}", human_count(on_gpu_->lower_levels()), human_count(on_gpu_->upper_levels()),
                       on_gpu_->waits() ? "rows wait in one launch each" : "a launch each");
  }

  /// Between vectors of T and x_, by position.
  template <class T>
  void apply_here(const Dense& r, const Dense& z) const {
    const T* const from = static_cast<const T*>(r.data);
    T* const to = static_cast<T*>(z.data);
    const std::int64_t columns = options_.columns;
    const auto each = [&](std::int64_t begin, std::int64_t end, auto use) {
      if (columns == 1) {
        for (std::int64_t i = begin * size_; i < end * size_; ++i) use(i, std::int64_t{from_[at(i)]});
      } else {
        for (std::int64_t i = begin * size_; i < end * size_; ++i)
          for (std::int64_t j = 0; j < columns; ++j) use(i * columns + j, from_[at(i)] * columns + j);
      }
    };
    factors_->solve(
        x_.data(), options_.columns,
        [&](std::int64_t begin, std::int64_t end) {
          each(begin, end, [&](std::int64_t x, std::int64_t v) { x_[at(x)] = static_cast<double>(from[v]); });
        },
        [&](std::int64_t begin, std::int64_t end) {
          each(begin, end, [&](std::int64_t x, std::int64_t v) { to[v] = static_cast<T>(x_[at(x)]); });
        });
  }

  /// Through memory of its own, with the rows of other ranks.
  void apply_elsewhere(const Dense& r, const Dense& z, Stream& stream) const {
    const std::int64_t columns = options_.columns, own = r.rows * columns;
    HostVector<double>& all = all_;
    all.resize(at(overlaps_ ? nodes_->local_count() * size_ * columns : own));
    move_own(r, stream, [](auto& of_vector, double& of_all) { of_all = static_cast<double>(of_vector); });
    const auto weigh = [&] {
      for (std::size_t i = 0; i < all.size() && !weight_.empty(); ++i) all[i] *= weight_[i / at(size_ * columns)];
    };
    if (overlaps_) {
      const HostVector<double> ghosts = nodes_->fetch<double>(std::span<const double>(all.data(), at(own)), size_ * columns);
      std::copy(ghosts.begin(), ghosts.end(), all.begin() + own);
      weigh();
    }
    const Dense whole{all.data(), std::ssize(all) / columns, columns, columns, DenseOrder::row_major, ValueType::f64};
    apply_here<double>(whole, whole);
    if (overlaps_ && symmetric_) {
      weigh();
      nodes_->add_home(all, size_ * columns);
    }
    move_own(z, stream, [](auto& of_vector, double& of_all) {
      of_vector = static_cast<std::remove_reference_t<decltype(of_vector)>>(of_all);
    });
  }

  /// Calls move(entry of the vector, entry of all_) for this rank's rows; on a GPU by way of a copy that goes there and
  /// back.
  template <class Move>
  void move_own(const Dense& vector, Stream& stream, const Move& move) const {
    const std::int64_t columns = options_.columns;
    const HostVector<std::int64_t>& places = matrix_.y_rows()->places();
    const auto each = [&](auto* const entries) {
      for (std::int64_t i = 0; i < vector.rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j)
          move(entries[i * columns + j], all_[at((places.empty() || !overlaps_ ? i : places[at(i)]) * columns + j)]);
    };
    if (is_on_host()) {
      dispatch(vector.type, [&]<class Tag>(Tag) { each(static_cast<typename Tag::type*>(vector.data)); });
      return;
    }
    matrix_.context().wait(stream, "a vector for the factors");
    ranks().run_agreed([&] {
      HostVector<double> mine = to_host(vector.data, vector.rows * columns, vector.type, stream);
      each(mine.data());
      to_device(vector.data, mine, vector.type, stream);
    });
  }

  DistributedMatrix& matrix_;
  const HeldRows* held_;
  PreconditionerOptions options_;
  bool symmetric_;
  int size_;
  bool overlaps_ = false;
  std::string order_;  ///< that was taken
  std::shared_ptr<const multigrid::Nodes> nodes_;
  HostVector<std::int64_t> start_;  ///< the pattern that the factors were made for
  HostVector<std::int32_t> column_;
  HostVector<std::int32_t> from_;  ///< where each unknown, in the order of elimination, lies in vectors
  HostVector<double> weight_;      ///< of the nodes of this rank and of its ghosts; empty: 1
  std::unique_ptr<incomplete::Factors> factors_;
  std::int64_t bytes_ = 0;  ///< of the values and columns of the factors
  std::optional<triangles::FactorSolve> on_gpu_;
  mutable HostVector<double> x_;    ///< in the order of elimination
  mutable HostVector<double> all_;  ///< in the order of the nodes, ghosts among them
  std::string text_;
};

}  // namespace

std::unique_ptr<Preconditioner> make_ilu(DistributedMatrix& matrix, const PreconditionerOptions& options) {
  matrix.context().communicator().run_agreed([&] {
    if (options.absolute)
      throw Error(ErrorKind::usage, "this solver needs a preconditioner that is positive definite, and ilu is not; take ic",
                  "preconditioner");
  });
  return std::make_unique<Incomplete>(matrix, options, false);
}

std::unique_ptr<Preconditioner> make_ic(DistributedMatrix& matrix, const PreconditionerOptions& options) {
  return std::make_unique<Incomplete>(matrix, options, true);
}

namespace {

/// Programs may also say clusters:N (incomplete::matching_of()).
SolverSetting factor_order() {
  const std::vector<std::string> choices{"auto", "natural", "rcm", "colours", "clusters"};
  return settings::word(
      "factor_order",
      "the order in which a rank eliminates its rows: natural, rcm (reverse Cuthill-McKee), colours (rows that are not "
      "coupled together: few steps on a GPU, more iterations), clusters (colours of small groups of strongly coupled rows: "
      "between both), or auto: colours on a GPU, else rcm where entries lie far from the diagonal",
      choices, [](const SolverOptions& o) { return o.preconditioning.factor.order; },
      [choices](SolverOptions& o, const std::string& text) {
        const bool known = std::find(choices.begin(), choices.end(), text) != choices.end();
        if (!known && !incomplete::matching_of(text)) settings::refuse("factor_order", join_choices(choices), text);
        o.preconditioning.factor.order = text;
      });
}

}  // namespace

std::vector<SolverSetting> incomplete_settings() {
  using namespace settings;
  using O = SolverOptions;
  return of_preconditioners(
      {"ilu", "ic", "auto"},
      {count("factor_levels", "levels of fill: 0 keeps the pattern of the matrix", 0, 20,
             [](O& o) -> int& { return o.preconditioning.factor.levels; }),
       number("drop_tolerance", "above 0: fill is kept, in place of levels, where it is above X times the norm of its row",
              0, [](O& o) -> double& { return o.preconditioning.factor.drop_tolerance; }),
       number_above("factor_fill", "with a drop tolerance: at most X times the entries of the matrix", 0,
                    [](O& o) -> double& { return o.preconditioning.factor.fill; }),
       factor_order(),
       count("factor_sweeps", "on a GPU: N Jacobi sweeps of each factor in place of an exact solve; 0: exact", 0, 100,
             [](O& o) -> int& { return o.preconditioning.factor.sweeps; }),
       count("asm_overlap", "1: each rank's factors reach into the rows next to its own", 0, 1,
             [](O& o) -> int& { return o.preconditioning.factor.overlap; })});
}

}  // namespace shardmat
