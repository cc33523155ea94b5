// M for saddle points [F G; D C]: multigrid for F, and an approximation of the Schur complement S = C − D·F⁻¹·G.
//
// Block triangular (z₂ = S⁻¹·r₂, z₁ = F⁻¹·(r₁ − G·z₂)), or block diagonal with |S| where M must be positive definite:
// M. Murphy, G. Golub, A. Wathen, A note on preconditioning for indefinite linear systems, SIAM J. Sci. Comput. 21 (2000).
// With what fields/schur.h takes for S, iterations do not grow with the mesh.
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
#include "runtime/solvers/fields/schur.h"
#include "runtime/solvers/fields/split_rows.h"
#include "runtime/solvers/loop/null_vectors.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/loop/setting.h"
#include "runtime/solvers/multigrid/hierarchy.h"
#include "runtime/solvers/multigrid/operator.h"
#include "runtime/solvers/multigrid/take_nodes.h"

namespace shardmat {
namespace {

using fields::Split;
using multigrid::NodeRows;

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
    schur_->apply(rs_, zs_, scale_, stream);
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

  bool varies() const override { return first_->varies() || schur_->varies(); }
  bool capturable() const override { return false; }
  std::int64_t usual_iterations() const override { return 40; }
  std::int64_t device_bytes() const override { return first_->device_bytes() + g_->device_bytes() + schur_->device_bytes(); }
  const MultigridReport* multigrid() const override { return &first_->report(); }
  std::string describe() const override {
    return fmt::format("block {}: multigrid on {}; {} on {}{}", options_.absolute ? "diagonal" : "triangular",
                       human_count(split_->all(0), "unknown"), schur_->describe(), human_count(split_->all(1), "unknown"),
                       schur_->keeps_constant_apart() ? ", and their constant apart" : "");
  }
  const NullVectors* null_vectors() const override { return &null_vectors_; }

 private:
  Communicator& ranks() const { return matrix_.context().communicator(); }
  Dense view(HostVector<double>& v) const {
    return {v.data(),       std::ssize(v) / options_.columns, options_.columns, options_.columns, DenseOrder::row_major,
            ValueType::f64, matrix_.context().device()};
  }
  void make(Stream& stream) {
    const NodeRows a = multigrid::take_nodes(matrix_, 1, options_.held, stream);
    split_.emplace(fields::split_rows(a, options_.fields));
    const fields::SaddlePoint blocks{fields::block(a, *split_, 0, 0), fields::block(a, *split_, 0, 1),
                                     fields::block(a, *split_, 1, 0), fields::block(a, *split_, 1, 1)};
    schur_.reset(), first_.reset();
    g_.emplace(blocks.g, matrix_.context(), ValueType::f64, options_.columns);
    schur_.emplace(blocks, *g_, fields::SchurInverse::Options{options_.schur, options_.absolute, options_.columns, simple()},
                   matrix_.context());
    first_.emplace(matrix_.context(), fields::by_nodes(blocks.f), simple(), options_.columns);
    null_vectors_ = schur_->is_singular() ? fields::constant_of_second(*split_) : NullVectors();
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

  DistributedMatrix& matrix_;
  PreconditionerOptions options_;
  HostVector<std::int64_t> rows_;  ///< of the matrix, in the order of the source
  std::optional<Split> split_;
  std::optional<multigrid::Hierarchy> first_;
  std::optional<multigrid::Operator> g_;
  std::optional<fields::SchurInverse> schur_;
  NullVectors null_vectors_;
  mutable HostVector<double> r_, z_, rs_, zs_;  ///< of the fields, row-major
  mutable double scale_ = 1;
};

}  // namespace

std::unique_ptr<Preconditioner> make_field_split(DistributedMatrix& matrix, const PreconditionerOptions& options) {
  return std::make_unique<FieldSplit>(matrix, options);
}

std::vector<SolverSetting> field_split_settings() {
  using O = SolverOptions;
  return settings::of_preconditioners(
      {"field_split", "auto"},
      {settings::digits("fields",
                        "which of two fields an unknown belongs to: a digit for each unknown of a node, as 001 for u, v and "
                        "p; auto: rows with a negative diagonal, or one that is small beside their other entries, are the "
                        "second",
                        [](O& o) -> std::string& { return o.preconditioning.fields; }),
       settings::word("schur",
                      "what the Schur complement of the second field becomes: diagonal (good for Stokes), commutator (two "
                      "cycles of multigrid; good for flows with a strong wind, as of Oseen), multigrid (good where the "
                      "first block is a mass matrix, as of Darcy), or auto: multigrid unless the first block maps constants "
                      "to almost 0, else diagonal",
                      {"auto", "diagonal", "commutator", "multigrid"},
                      [](O& o) -> std::string& { return o.preconditioning.schur; })});
}

}  // namespace shardmat
