// M for saddle points [F G; D C]: multigrid for F, and an approximation of the Schur complement S = C − D·F⁻¹·G.
//
// Block triangular (z₂ = S⁻¹·r₂, z₁ = F⁻¹·(r₁ − G·z₂)), or block diagonal with |S| where M must be positive definite:
// M. Murphy, G. Golub, A. Wathen, A note on preconditioning for indefinite linear systems, SIAM J. Sci. Comput. 21 (2000).
// For Stokes, the mass matrix of the pressure over the viscosity is good for S (H. Elman, D. Silvester, A. Wathen, Finite
// elements and fast iterative solvers). The diagonal of C − D·diag(F)⁻¹·G grows with the elements as that matrix does, so
// iterations do not grow with the mesh. Where F is a mass matrix, as in Darcy's law, C − D·diag(F)⁻¹·G is close to S itself,
// and a cycle of multigrid on it is taken.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/fields/split_rows.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/multigrid/hierarchy.h"
#include "runtime/solvers/multigrid/operator.h"
#include "runtime/solvers/multigrid/take_nodes.h"

namespace shardmat {
namespace {

using fields::Split;
using multigrid::at;
using multigrid::NodeRows;

/// A constant is mapped to 0 if no row has more left than this share of the largest sum of magnitudes.
constexpr double kNothing = 1e-12;

class FieldSplit final : public Preconditioner {
 public:
  FieldSplit(DistributedMatrix& matrix, const PreconditionerOptions& options)
      : matrix_(matrix), options_(options), rows_(matrix.y_rows()->rows_by_place()) {
    ranks().run_agreed([&] {
      if (matrix.context().device().backend != Backend::host)
        throw Error(ErrorKind::usage, "field_split runs on the host only; take the backend host, or direct",
                    "preconditioner");
    });
    refresh(matrix.context().stream());
  }

  void refresh(Stream& stream) override {
    ranks().run_guarded([&] { make(stream); });
  }

  void expect(double norm) const override {
    scale_ = norm > 0 && std::isfinite(norm) ? std::exp2(std::round(std::log2(norm))) : 1;
  }

  void apply(const Dense& r, const Dense& z, Stream& stream) const override {
    matrix_.context().wait(stream, "a vector for the fields");
    move(r, [&](auto& value, int field, std::size_t to) { (field == 0 ? r_ : rs_)[to] = static_cast<double>(value); });
    apply_schur(stream);
    if (!options_.absolute) {
      std::copy(zs_.begin(), zs_.end(), static_cast<double*>(g_->x()));
      g_->multiply(-1, 1, r_.data(), stream);
    }
    first_->apply(view(r_), view(z_), scale_, stream);
    stream.synchronize();
    move(z, [&](auto& value, int field, std::size_t from) {
      value = static_cast<std::remove_reference_t<decltype(value)>>((field == 0 ? z_ : zs_)[from]);
    });
  }

  bool varies() const override { return first_->varies() || (schur_ && schur_->varies()); }
  bool capturable() const override { return false; }
  std::int64_t usual_iterations() const override { return 40; }
  std::int64_t device_bytes() const override {
    return first_->device_bytes() + g_->device_bytes() + (schur_ ? schur_->device_bytes() : 0);
  }
  const MultigridReport* multigrid() const override { return &first_->report(); }
  std::string describe() const override {
    return fmt::format("block {}: multigrid on {}; {} on {}{}", options_.absolute ? "diagonal" : "triangular",
                       human_count(split_->all(0), "unknown"),
                       schur_ ? "multigrid of the Schur complement" : "the diagonal of the Schur complement",
                       human_count(split_->all(1), "unknown"), constant_ ? ", and their constant apart" : "");
  }

 private:
  Communicator& ranks() const { return matrix_.context().communicator(); }
  Dense view(HostVector<double>& v) const {
    return {v.data(),       std::ssize(v) / options_.columns, options_.columns, options_.columns, DenseOrder::row_major,
            ValueType::f64, matrix_.context().device()};
  }
  void make(Stream& stream) {
    const NodeRows a = multigrid::take_nodes(matrix_, 1, options_.held, stream);
    split_.emplace(fields::split_rows(a, options_.fields));
    const NodeRows f = fields::block(a, *split_, 0, 0), g = fields::block(a, *split_, 0, 1),
                   d = fields::block(a, *split_, 1, 0), c = fields::block(a, *split_, 1, 1);
    NodeRows s = fields::schur_complement(f, g, d, c);
    take_schur_diagonal(s);
    take_constant(g, c);
    schur_.reset(), first_.reset();
    if (options_.schur == "multigrid" || (options_.schur == "auto" && !maps_constants_to_zero(f))) {
      for (double& value : s.value) value *= sign_;
      schur_.emplace(matrix_.context(), std::move(s), simple(), options_.columns);
    }
    first_.emplace(matrix_.context(), fields::by_nodes(f), simple(), options_.columns);
    g_.emplace(g, matrix_.context(), ValueType::f64, options_.columns);
    for (HostVector<double>* const of_first : {&r_, &z_}) of_first->resize(at(split_->own(0) * options_.columns));
    for (HostVector<double>* const of_second : {&rs_, &zs_}) of_second->resize(at(split_->own(1) * options_.columns));
  }

  /// Calls use(entry, field, place in the field's vector) for each entry of a vector of the matrix.
  template <class Use>
  void move(const Dense& vector, const Use& use) const {
    const std::int64_t columns = options_.columns;
    dispatch(vector.type, [&]<class Tag>(Tag) {
      auto* const entries = static_cast<typename Tag::type*>(vector.data);
      parallel_ranges(std::ssize(rows_), 1 << 12, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          for (std::int64_t j = 0; j < columns; ++j)
            use(entries[rows_[at(i)] * columns + j], split_->field(i), at(split_->place(i) * columns + j));
      });
    });
  }
  /// Of a block, whose nodes are not those of the matrix.
  MultigridOptions simple() const {
    MultigridOptions of_block = options_.multigrid;
    of_block.coordinates = nullptr, of_block.near_null_vectors = nullptr, of_block.mid_edges = nullptr;
    return of_block;
  }

  void take_schur_diagonal(const NodeRows& s) {
    inverse_.resize(at(s.count()));
    double signs[2] = {};
    for (std::int64_t i = 0; i < s.count(); ++i) {
      const std::int64_t k = s.find(i, static_cast<std::int32_t>(i));
      const double value = k < 0 ? 0 : s.value[at(k)];
      inverse_[at(i)] = value == 0 ? 0 : 1 / value;
      signs[value > 0 ? 1 : 0] += value == 0 ? 0 : 1;
    }
    ranks().all_reduce(std::span<double>(signs), Reduction::sum);
    sign_ = signs[1] > signs[0] ? 1 : -1;
    ranks().run_agreed([&] {
      if (signs[0] > 0 && signs[1] > 0)
        throw Error(
            ErrorKind::usage,
            fmt::format("this is no saddle point: the Schur complement is positive in {:.0f} rows and negative in {:.0f}",
                        signs[1], signs[0]),
            "preconditioner");
    });
    const auto zero = std::find(inverse_.begin(), inverse_.end(), 0.0);
    ranks().run_agreed([&] {
      if (zero != inverse_.end())
        throw Error(
            ErrorKind::input,
            fmt::format("row {} of the second field is coupled with no unknown of the first, and its diagonal is 0: the "
                        "matrix is singular",
                        s.rows->first() + (zero - inverse_.begin())),
            "matrix");
    });
    if (options_.absolute)
      for (double& value : inverse_) value = std::abs(value);
  }

  /// G·1 = 0: then S·1 is C·1, as small as that may be, and no diagonal tells it.
  void take_constant(const NodeRows& g, const NodeRows& c) {
    const fields::RowSums of_g = fields::row_sums(g);
    fields::RowSums of_c = fields::row_sums(c);
    double largest[2] = {}, sum = 0;
    for (std::size_t i = 0; i < of_g.sum.size(); ++i) {
      largest[0] = std::max(largest[0], std::abs(of_g.sum[i]));
      largest[1] = std::max(largest[1], of_g.magnitude[i]);
    }
    for (const double value : of_c.sum) sum += value;
    ranks().all_reduce(std::span<double>(largest), Reduction::max);
    sum = ranks().all_reduce(sum, Reduction::sum);
    constant_ = largest[0] <= kNothing * largest[1] && sum != 0;
    constant_sum_ = sum;
    c_of_constant_ = constant_ ? std::move(of_c.sum) : HostVector<double>();
  }

  /// As operators of second order do, in most rows, and mass matrices do not.
  bool maps_constants_to_zero(const NodeRows& f) const {
    constexpr double kSmall = 1e-6;
    const fields::RowSums sums = fields::row_sums(f);
    double counts[2] = {};
    for (std::size_t i = 0; i < sums.sum.size(); ++i)
      counts[std::abs(sums.sum[i]) <= kSmall * sums.magnitude[i] ? 1 : 0] += 1;
    ranks().all_reduce(std::span<double>(counts), Reduction::sum);
    return counts[1] >= counts[0];
  }

  /// zs = about S⁻¹·rs; |S|⁻¹ if M must be positive definite.
  void apply_schur(Stream& stream) const {
    const auto columns = at(options_.columns);
    HostVector<double> part = share_of_constant([&](std::size_t i) { return rs_[i]; });
    if (constant_)
      for (std::size_t i = 0; i < rs_.size(); ++i) rs_[i] -= c_of_constant_[i / columns] * part[i % columns];
    if (schur_) {
      schur_->apply(view(rs_), view(zs_), scale_, stream);
      stream.synchronize();
      if (sign_ < 0 && !options_.absolute)
        for (double& value : zs_) value = -value;
    } else {
      for (std::size_t i = 0; i < rs_.size(); ++i) zs_[i] = inverse_[i / columns] * rs_[i];
    }
    if (!constant_) return;
    if (options_.absolute && constant_sum_ < 0)
      for (double& value : part) value = -value;
    const HostVector<double> left = share_of_constant([&](std::size_t i) { return c_of_constant_[i / columns] * zs_[i]; });
    for (std::size_t i = 0; i < zs_.size(); ++i) zs_[i] += part[i % columns] - left[i % columns];
  }

  /// Sums of each column over 1ᵀ·C·1; nothing if the constant is not apart. Collective.
  template <class Value>
  HostVector<double> share_of_constant(const Value& value) const {
    if (!constant_) return {};
    HostVector<double> sums(at(options_.columns), 0.0);
    for (std::size_t i = 0; i < rs_.size(); ++i) sums[i % sums.size()] += value(i);
    ranks().all_reduce(std::span<double>(sums), Reduction::sum);
    for (double& sum : sums) sum /= constant_sum_;
    return sums;
  }

  DistributedMatrix& matrix_;
  PreconditionerOptions options_;
  HostVector<std::int64_t> rows_;  ///< of the matrix, in the order of the source
  std::optional<Split> split_;
  std::optional<multigrid::Hierarchy> first_, schur_;
  std::optional<multigrid::Operator> g_;
  HostVector<double> inverse_;  ///< of the diagonal of S
  double sign_ = -1;            ///< of S
  bool constant_ = false;       ///< G maps the constant to 0, and C does not
  double constant_sum_ = 0;     ///< 1ᵀ·C·1
  HostVector<double> c_of_constant_;
  mutable HostVector<double> r_, z_, rs_, zs_;  ///< of the fields, row-major
  mutable double scale_ = 1;
};

}  // namespace

std::unique_ptr<Preconditioner> make_field_split(DistributedMatrix& matrix, const PreconditionerOptions& options) {
  return std::make_unique<FieldSplit>(matrix, options);
}

}  // namespace shardmat
