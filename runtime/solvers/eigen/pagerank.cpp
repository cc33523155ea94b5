#include "runtime/solvers/eigen/pagerank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "comm/communicator.h"
#include "comm/exchange/sum_over_ranks.h"
#include "comm/same_on_all_ranks.h"
#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "kernels/krylov/preconditioner_steps.h"
#include "kernels/krylov/step.h"
#include "kernels/vector.h"
#include "runtime/context/context.h"
#include "runtime/context/context_scope.h"
#include "runtime/solvers/loop/stop_vote.h"

namespace shardmat {
namespace {

void require_sensible(const PageRankSettings& s, const DistributedMatrix& links) {
  const auto refuse = [](const std::string& text, const char* setting) { throw Error(ErrorKind::usage, text, setting); };
  if (links.rows() != links.cols())
    refuse(fmt::format("PageRank needs a square matrix; this one is {} × {}", links.rows(), links.cols()), "matrix");
  if (is_half(links.type()))
    refuse(fmt::format("PageRank needs values in f64 or f32, not in {}", name(links.type())), "type");
  if (!(s.damping >= 0 && s.damping < 1))
    refuse(fmt::format("the damping must be 0 or more and less than 1, not {:g}", s.damping), "damping");
  if (!(s.tolerance >= 0 && std::isfinite(s.tolerance)))
    refuse(fmt::format("the tolerance must be 0 or more and finite, not {:g}", s.tolerance), "tolerance");
  if (s.max_iterations < 0) refuse("the most iterations must be 0 or more", "max_iterations");
  constexpr std::int64_t kMostColumns = 1 << 20;
  if (s.columns < 1 || s.columns > kMostColumns)
    refuse(fmt::format("the number of restart distributions must be 1 … {}, not {}", kMostColumns, s.columns), "seeds");
}

}  // namespace

/// Sums of magnitudes of the columns of vectors.
class ColumnMagnitudes {
 public:
  /// Takes another vector's memory for more than one column. Collective.
  ColumnMagnitudes(const DistributedMatrix& matrix, ValueType type, std::int64_t columns);
  /// result[j] = Σ_i |x[i, j]| over all ranks, f64 in device memory, in stream order. Collective.
  void compute(const DistributedVector& x, double* result, Stream& stream);
  /// Throws Error(input) on a rank where an entry is less than 0, or no number. The host reads the vector piece by piece.
  void require_weights(const DistributedVector& x, Stream& stream);
  std::int64_t device_bytes() const { return static_cast<std::int64_t>(by_columns_.bytes()); }

 private:
  /// Column after column without gaps; in the other memory if there are several.
  const void* by_columns(const DistributedVector& x, Stream& stream);

  std::optional<krylov::Passes> pass_;
  Buffer by_columns_;
  SumOverRanks sum_;
};

bool PageRankResult::converged() const {
  return std::all_of(columns.begin(), columns.end(), [](const RankedColumn& c) { return c.converged; });
}

ColumnMagnitudes::ColumnMagnitudes(const DistributedMatrix& matrix, ValueType type, std::int64_t columns)
    : sum_(matrix.context().exchange_context(ValueType::f64, 1), static_cast<int>(columns)) {
  const Device device = matrix.context().device();
  matrix.context().communicator().run_agreed([&] {
    pass_.emplace(device, 1);
    if (columns == 1) return;
    const std::int64_t bytes = matrix.local_rows() * columns * static_cast<std::int64_t>(size_of(type));
    require_memory(device, bytes, "a vector by columns");
    by_columns_ = Buffer(device, static_cast<std::size_t>(bytes));
  });
}

const void* ColumnMagnitudes::by_columns(const DistributedVector& x, Stream& stream) {
  if (x.columns() == 1) return x.view().data;
  Dense by_columns = x.view();
  by_columns.data = by_columns_.data();
  by_columns.order = DenseOrder::column_major;
  by_columns.leading = std::max<std::int64_t>(1, x.local_rows());
  copy_matrix(x.view(), by_columns, stream);
  return by_columns.data;
}

void ColumnMagnitudes::compute(const DistributedVector& x, double* result, Stream& stream) {
  const std::int64_t rows = x.local_rows();
  const void* values = by_columns(x, stream);
  dispatch(x.type(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    for (std::int64_t j = 0; j < x.columns(); ++j)
      pass_->run(krylov::Magnitudes<T>{static_cast<const T*>(values) + j * rows, result + j}, rows, stream);
  });
  sum_(result, stream);
}

void ColumnMagnitudes::require_weights(const DistributedVector& x, Stream& stream) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;
  const std::int64_t entries = x.local_rows() * x.columns();
  const void* values = by_columns(x, stream);
  dispatch(x.type(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    std::vector<T> piece;
    for (std::int64_t first = 0; first < entries; first += kPiece) {
      piece.resize(static_cast<std::size_t>(std::min(kPiece, entries - first)));
      copy_to_host(piece.data(), static_cast<const T*>(values) + first, piece.size() * sizeof(T), stream);
      const auto wrong = std::find_if(piece.begin(), piece.end(), [](T value) { return !(value >= T(0)); });
      if (wrong == piece.end()) continue;
      throw Error(ErrorKind::input,
                  fmt::format("column {} of the restart distributions has the weight {:g}; give finite weights of 0 or more",
                              (first + (wrong - piece.begin())) / x.local_rows(), static_cast<double>(*wrong)),
                  "seeds");
    }
  });
}

PageRank::PageRank(DistributedMatrix& links, const PageRankSettings& settings) : links_(links), settings_(settings) {
  Context& context = links.context();
  const ContextScope scope(context);
  context.communicator().run_agreed([&] { require_sensible(settings, links); });
  require_same_on_all_ranks(context.communicator(),
                            {given_number("damping", settings.damping), given_number("tolerance", settings.tolerance),
                             given_number("max_iterations", static_cast<double>(settings.max_iterations)),
                             given_number("columns", static_cast<double>(settings.columns))});
  settings_.product.columns = settings.columns;
  product_ = links.product(settings_.product);
  const ValueType type = sum_type(links.type());
  sums_.emplace(context, settings.columns);
  magnitudes_ = std::make_unique<ColumnMagnitudes>(links, type, settings.columns);
  ones_.emplace(links, VectorLayout::rows, type, settings.columns);
  ones_->fill(1, context.stream());
  other_.emplace(links, VectorLayout::rows, type, settings.columns);
  context.communicator().run_agreed(
      [&] { scalars_ = Buffer(context.device(), static_cast<std::size_t>(3 * settings.columns) * sizeof(double)); });
}

PageRank::~PageRank() = default;

std::int64_t PageRank::device_bytes() const {
  const std::int64_t vector =
      links_.local_rows() * settings_.columns * static_cast<std::int64_t>(size_of(sum_type(links_.type())));
  return product_->device_bytes() + 2 * vector + magnitudes_->device_bytes();
}

std::vector<double> PageRank::read(const double* values, Stream& stream) const {
  std::vector<double> host(static_cast<std::size_t>(settings_.columns));
  product_->wait(stream);
  copy_to_host(host.data(), values, host.size() * sizeof(double), stream);
  return host;
}

void PageRank::normalise_columns(DistributedVector& v, Stream& stream) {
  links_.context().communicator().run_agreed([&] { magnitudes_->require_weights(v, stream); });
  sums_->dot(v, *ones_, scalars(0), stream);
  const std::vector<double> sums = read(scalars(0), stream);
  std::vector<double> inverse;
  links_.context().communicator().run_agreed([&] {
    for (std::size_t j = 0; j < sums.size(); ++j) {
      if (!(sums[j] > 0 && std::isfinite(sums[j])))
        throw Error(ErrorKind::input,
                    fmt::format("column {} of the restart distributions sums to {:g}; give finite weights of 0 or more, at "
                                "least one of them positive",
                                j, sums[j]),
                    "seeds");
      inverse.push_back(1 / sums[j]);
    }
    copy_to_device(scalars(0), inverse.data(), inverse.size() * sizeof(double), stream);
  });
  scale({1, scalars(0)}, v, stream);
}

/// to = d·Pᵀ·from + (1 − Σ of that)·v; then from = from − to, and scalars(2) the L1 norm of this change.
void PageRank::step(const DistributedVector& v, double scale, DistributedVector& from, DistributedVector& to,
                    Stream& stream) {
  double *const sum = scalars(0), *const rest = scalars(1), *const change = scalars(2);
  product_->multiply(settings_.damping, from.view(), 0, to.view(), stream);
  sums_->dot(to, *ones_, sum, stream);
  fill_vector(ValueType::f64, settings_.columns, 1, rest, stream);
  combine(ValueType::f64, 1, settings_.columns, {-1}, sum, {1}, rest, stream);
  axpy({scale, rest}, v, to, stream);
  axpy({-1}, to, from, stream);
  magnitudes_->compute(from, change, stream);
}

PageRankResult PageRank::run(DistributedVector* v, DistributedVector& scores, const PageRankMonitor& monitor,
                             const std::function<bool()>& stop) {
  Context& context = links_.context();
  const ContextScope scope(context);
  Stream& stream = context.stream();
  const auto require = [&](const DistributedVector& vector, const char* what) {
    vector.require_like(*links_.y_rows(), settings_.columns, sum_type(links_.type()), what);
  };
  require(scores, "the scores");
  PageRankResult result;
  result.columns.resize(static_cast<std::size_t>(settings_.columns));
  if (links_.rows() == 0) {
    for (RankedColumn& column : result.columns) column.converged = true;
    return result;
  }
  if (v != nullptr) {
    require(*v, "the restart distributions");
    normalise_columns(*v, stream);
  }
  const DistributedVector& restarts = v != nullptr ? *v : *ones_;
  const double restart_scale = v != nullptr ? 1 : 1 / static_cast<double>(links_.rows());
  const Timer timer;
  copy(restarts, scores, stream);
  if (v == nullptr) scale({restart_scale}, scores, stream);
  StopVote vote(context.communicator(), stop);
  DistributedVector *now = &scores, *next = &*other_;
  while (result.iterations < settings_.max_iterations) {
    step(restarts, restart_scale, *now, *next, stream);
    std::swap(now, next);
    ++result.iterations;
    const std::vector<double> changes = read(scalars(2), stream);
    for (std::size_t j = 0; j < changes.size(); ++j) {
      RankedColumn& column = result.columns[j];
      const bool within = changes[j] <= settings_.tolerance;
      if (!within || !column.converged) column.iterations = result.iterations;
      column.converged = within;
      column.change = changes[j];
      column.history.push_back(changes[j]);
    }
    if (monitor) monitor(result.iterations, changes);
    if (result.converged() || result.iterations == settings_.max_iterations) break;
    result.interrupted = vote();
    if (result.interrupted) break;
  }
  if (now != &scores) copy(*now, scores, stream);
  product_->wait(stream);
  result.seconds = context.communicator().all_reduce(timer.seconds(), Reduction::max);
  return result;
}

}  // namespace shardmat
