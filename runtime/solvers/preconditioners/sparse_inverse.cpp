// M = Gᵀ·G, a factorised sparse approximate inverse (incomplete/sparse_inverse.h). G and Gᵀ are two distributed matrices, so
// applying M is two products, on GPUs as on the host, with no triangular solve; the rows of other ranks count.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "comm/communicator.h"
#include "comm/exchange/exchange.h"
#include "kernels/base/error.h"
#include "kernels/base/kept_arrays.h"
#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "kernels/krylov/multigrid_steps.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/held_rows.h"
#include "runtime/matrix/own_rows.h"
#include "runtime/matrix/product.h"
#include "runtime/solvers/incomplete/sparse_inverse.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/multigrid/asymmetry.h"
#include "runtime/solvers/multigrid/take_nodes.h"

namespace shardmat {
namespace {

using multigrid::at;
using multigrid::NodeRows;

constexpr double kLargestAsymmetry = 1e-8;  ///< of ‖A − Aᵀ‖ / ‖A‖

class SparseInverse final : public Preconditioner {
 public:
  SparseInverse(DistributedMatrix& matrix, const PreconditionerOptions& options)
      : matrix_(matrix), options_(options), size_(static_cast<int>(block_jacobi_size(matrix))) {
    Context& context = matrix.context();
    context.communicator().run_agreed([&] {
      if (options.factor.levels > 1)
        throw Error(
            ErrorKind::usage,
            fmt::format("fsai takes the pattern of A or of A·A: factor levels of 0 or 1, not {}", options.factor.levels),
            "factor_levels");
      passes_.emplace(context.device(), options.columns);
      if (matrix.y_rows()->in_source_order()) return;
      const HostVector<std::int64_t> rows = matrix.y_rows()->rows_by_place();
      places_ = Buffer(context.device(), rows.size() * sizeof(std::int64_t));
      copy_to_device(places_.data(), rows.data(), places_.bytes(), context.stream());
      context.stream().synchronize();
    });
    refresh(context.stream());
  }

  void refresh(Stream& stream) override {
    const Timer timer;
    const KeptArrays reuse;
    NodeRows g;
    {
      const NodeRows a = multigrid::take_nodes(matrix_, size_, options_.held, stream);
      require_symmetric(a);
      g = incomplete::sparse_inverse(a, {1 + options_.factor.levels, options_.factor.drop_tolerance});
    }
    const std::int64_t entries = ranks().all_reduce(g.blocks() * size_ * size_, Reduction::sum);
    lower_.emplace(matrix_, g, options_);
    const NodeRows upper = multigrid::brought_home(multigrid::transposed(g, multigrid::by_column(g)), true);
    upper_.emplace(matrix_, upper, options_);
    ranks().run_agreed([&] { between_ = Buffer(matrix_.context().device(), lower_->product->y_bytes()); });
    text_ = fmt::format(
        "G with the pattern of A{}{}, {} entries; two products; made in {:.2f} ms", options_.factor.levels > 0 ? "·A" : "",
        options_.factor.drop_tolerance > 0 ? fmt::format(" without couplings below {:g}", options_.factor.drop_tolerance)
                                           : "",
        human_count(entries), ranks().all_reduce(timer.seconds(), Reduction::max) * 1e3);
  }

  void apply(const Dense& r, const Dense& z, Stream& stream) const override {
    move(r.data, lower_->product->x().data, r.type, true, stream);
    const Dense between = lower_->product->y_view(between_.data());
    lower_->product->multiply(1, 0, between, stream);
    if (places_.bytes() == 0) {
      upper_->product->multiply(1, between, 0, upper_->product->y_view(z.data), stream);
    } else {
      copy_on_device(upper_->product->x().data, between.data, between_.bytes(), stream);
      upper_->product->multiply(1, 0, between, stream);
      move(between.data, z.data, r.type, false, stream);
    }
    if (options_.held != nullptr) options_.held->clear(z, stream);
  }

  bool capturable() const override {
    return lower_->product->exchange().capturable() && upper_->product->exchange().capturable();
  }
  std::int64_t apply_bytes() const override {
    return lower_->product->compulsory_bytes(0) + upper_->product->compulsory_bytes(0) +
           2 * static_cast<std::int64_t>(between_.bytes());
  }
  std::int64_t device_bytes() const override {
    return lower_->bytes() + upper_->bytes() + static_cast<std::int64_t>(between_.bytes() + places_.bytes());
  }
  std::string describe() const override { return text_; }

 private:
  /// A matrix in the order of the source, and its product.
  struct Factor {
    std::unique_ptr<DistributedMatrix> matrix;
    std::unique_ptr<Product> product;

    Factor(const DistributedMatrix& like, const NodeRows& rows, const PreconditionerOptions& options) {
      Context& context = like.context();
      const std::int64_t s = rows.row_size;
      HostVector<std::int64_t> start{0}, columns;
      HostVector<double> values;
      context.communicator().run_agreed([&] {
        start.reserve(at(rows.count() * s + 1)), columns.reserve(rows.value.size()), values.reserve(rows.value.size());
        for (std::int64_t i = 0; i < rows.count(); ++i)
          for (std::int64_t r = 0; r < s; ++r) {
            for (std::int64_t k = rows.start[at(i)]; k < rows.start[at(i + 1)]; ++k)
              for (std::int64_t c = 0; c < s; ++c) {
                columns.push_back(rows.cols->global(rows.column[at(k)]) * s + c);
                values.push_back(rows.block(k)[r * s + c]);
              }
            start.push_back(std::ssize(columns));
          }
      });
      OwnRows own{{rows.rows->first() * s, rows.count() * s}, like.cols(), start, columns, values.data()};
      MatrixOptions wanted;
      wanted.type = like.type(), wanted.right_hand_sides = options.columns, wanted.natural_order = true;
      wanted.plan.reproducible =
          options.product.plan ? options.product.plan->reproducible : like.options().plan.reproducible;
      wanted.cache_directory = like.options().cache_directory;
      matrix = std::make_unique<DistributedMatrix>(take_rows(own, context, like.type(), "", s), context, wanted);
      product = matrix->product(options.columns);
      matrix->drop_host_rows();
    }
    std::int64_t bytes() const { return matrix->device_bytes() + product->device_bytes(); }
  };

  Communicator& ranks() const { return matrix_.context().communicator(); }

  void require_symmetric(const NodeRows& rows) {
    const double asymmetry = multigrid::asymmetry(rows);
    ranks().run_agreed([&] {
      if (asymmetry > kLargestAsymmetry)
        throw Error(
            ErrorKind::usage,
            fmt::format("fsai is for symmetric matrices, and of this one A − Aᵀ has {:.2g} times the norm of A; take ilu",
                        asymmetry),
            "preconditioner");
    });
  }

  /// From the order of the matrix to that of the source, or back.
  void move(const void* from, void* to, ValueType type, bool to_source, Stream& stream) const {
    dispatch(type, [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      const std::int64_t* const places = places_.bytes() > 0 ? places_.as<std::int64_t>() : nullptr;
      passes_->run(
          krylov::ConvertVector<T, T>{static_cast<const T*>(from), static_cast<T*>(to), 1, to_source ? places : nullptr,
                                      to_source ? nullptr : places, passes_->columns()},
          matrix_.local_rows(), stream);
    });
  }

  DistributedMatrix& matrix_;
  PreconditionerOptions options_;
  int size_;
  Buffer places_;  ///< the row in each place; empty: rows lie in the order of the source
  std::optional<krylov::Passes> passes_;
  std::optional<Factor> lower_, upper_;
  Buffer between_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Preconditioner> make_fsai(DistributedMatrix& matrix, const PreconditionerOptions& options) {
  return std::make_unique<SparseInverse>(matrix, options);
}

}  // namespace shardmat
