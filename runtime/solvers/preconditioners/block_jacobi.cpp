// M = the inverses of the blocks around A's diagonal: one block for the unknowns of a node.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/known_size.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"
#include "kernels/krylov/preconditioner_steps.h"
#include "partition/source/partitioner.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/held_rows.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/loop/setting.h"
#include "runtime/solvers/loop/symmetric_eigen.h"

namespace shardmat {
namespace {

constexpr std::int64_t kMostUnknowns = 6;

class BlockJacobi final : public Preconditioner {
 public:
  BlockJacobi(DistributedMatrix& matrix, const PreconditionerOptions& options)
      : matrix_(matrix),
        held_(options.held),
        absolute_(options.absolute),
        size_(options.node_block_size > 0 ? options.node_block_size : block_jacobi_size(matrix)) {
    Context& context = matrix.context();
    context.communicator().run_agreed([&] {
      const bool of_matrix = options.node_block_size == 0 && matrix.node_block_origin() == "given";
      if (const std::int64_t asked = of_matrix ? matrix.node_block_size() : size_; asked > kMostUnknowns)
        throw Error(ErrorKind::usage, fmt::format("blocks of {}; they have 1 to {} unknowns", asked, kMostUnknowns),
                    "node_block_size");
      require_node_block_size(size_, matrix.rows());
      if (options.node_block_size == 0) why_ = why_blocks_of_1();
      one_column_.emplace(context.device(), 1);
      all_columns_.emplace(context.device(), options.columns);
      place_rows();
    });
    refresh(context.stream());
  }

  void refresh(Stream& stream) override {
    blocks_ = matrix_.block_diagonal(size_, stream);
    if (held_ != nullptr && held_->count() > 0) matrix_.context().communicator().run_agreed([&] { separate_held(stream); });
    if (absolute_) matrix_.context().communicator().run_agreed([&] { take_magnitudes(stream); });
    double singular = 0;
    matrix_.context().communicator().run_agreed([&] {
      const Buffer on_device(matrix_.context().device(), sizeof singular);
      dispatch(blocks_.type, [&]<class Tag>(Tag) {
        with_known_size<kMostUnknowns>(size_, [&]<int kSize>(std::integral_constant<int, kSize>) {
          using T = typename Tag::type;
          one_column_->run(
              krylov::InvertBlocks<T, kSize>{blocks_.values.as<T>(), matrix_.local_rows(), on_device.as<double>()},
              blocks_.count, stream);
        });
      });
      copy_to_host(&singular, on_device.data(), sizeof singular, stream);
    });
    singular_ = static_cast<std::int64_t>(matrix_.context().communicator().all_reduce(singular, Reduction::sum));
  }

  void apply(const Dense& r, const Dense& z, Stream& stream) const override {
    dispatch(r.type, [&]<class Tag>(Tag) {
      with_known_size<kMostUnknowns>(size_, [&]<int kSize>(std::integral_constant<int, kSize>) {
        using T = typename Tag::type;
        all_columns_->run(
            krylov::MultiplyBlocks<T, kSize>{blocks_.values.as<T>(), static_cast<const T*>(r.data), static_cast<T*>(z.data),
                                             places_.as<std::int64_t>(), r.rows, all_columns_->columns()},
            blocks_.count, stream);
      });
    });
  }

  std::int64_t apply_bytes() const override {
    const std::int64_t entries = matrix_.local_rows() * all_columns_->columns();
    return device_bytes() + 2 * entries * static_cast<std::int64_t>(size_of(blocks_.type));
  }
  std::int64_t device_bytes() const override { return static_cast<std::int64_t>(blocks_.values.bytes() + places_.bytes()); }

  std::string describe() const override {
    return fmt::format(
        "blocks of {}{}{}", size_, why_.empty() ? "" : ": " + why_,
        singular_ == 0 ? "" : fmt::format(", {} singular ones count as the identity", human_count(singular_)));
  }

 private:
  /// Empty if blocks are larger, or if that was asked for.
  std::string why_blocks_of_1() const {
    const std::int64_t size = matrix_.node_block_size();
    if (size_ > 1 || (size == 1 && matrix_.node_block_origin() == "given")) return {};
    if (size == 1) return "the pattern shows no nodes of several unknowns";
    if (size > kMostUnknowns) return fmt::format("nodes have {} unknowns, and blocks at most {}", size, kMostUnknowns);
    return fmt::format("nodes have {} unknowns, and parts begin within nodes", size);
  }

  /// Held rows and columns become those of the identity: the other entries of a block are inverted without them.
  void separate_held(Stream& stream) {
    const std::int64_t entries = blocks_.count * size_ * size_;
    HostVector<double> values = to_host(blocks_.values.data(), entries, blocks_.type, stream);
    for (const std::int64_t row : held_->rows()) {
      const std::int64_t place = matrix_.y_rows()->place(static_cast<std::size_t>(row)), at = place % size_;
      double* const block = values.data() + place / size_ * size_ * size_;
      for (std::int64_t k = 0; k < size_; ++k) block[at * size_ + k] = 0, block[k * size_ + at] = 0;
      block[at * size_ + at] = 1;
    }
    to_device(blocks_.values.data(), values, blocks_.type, stream);
  }

  /// Symmetric blocks B become |B|, which has the same eigenvectors and the magnitudes of the eigenvalues.
  void take_magnitudes(Stream& stream) {
    const auto n = static_cast<std::size_t>(size_);
    HostVector<double> values = to_host(blocks_.values.data(), blocks_.count * size_ * size_, blocks_.type, stream);
    parallel_ranges(blocks_.count, 1 << 10, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        double* const block = values.data() + i * size_ * size_;
        const SymmetricEigen eigen = symmetric_eigen({block, block + n * n}, n);
        if (eigen.values.front() >= 0) continue;
        std::fill_n(block, n * n, 0.0);
        for (std::size_t k = 0; k < n; ++k)
          for (std::size_t r = 0; r < n; ++r)
            for (std::size_t c = 0; c < n; ++c)
              block[r * n + c] += std::abs(eigen.values[k]) * eigen.vectors[k * n + r] * eigen.vectors[k * n + c];
      }
    });
    to_device(blocks_.values.data(), values, blocks_.type, stream);
  }

  /// Where the rows of blocks, which are in the order of the source, lie in vectors.
  void place_rows() {
    if (matrix_.y_rows()->in_source_order()) return;
    const HostVector<std::int64_t> places = matrix_.y_rows()->rows_by_place();
    Context& context = matrix_.context();
    places_ = Buffer(context.device(), places.size() * sizeof(std::int64_t));
    copy_to_device(places_.data(), places.data(), places_.bytes(), context.stream());
  }

  DistributedMatrix& matrix_;
  const HeldRows* held_;
  bool absolute_;
  std::int64_t size_;
  std::string why_;  ///< why blocks have size 1
  DiagonalBlocks blocks_;
  Buffer places_;  ///< empty: rows lie in the order of the source
  std::optional<krylov::Passes> one_column_, all_columns_;
  std::int64_t singular_ = 0;
};

}  // namespace

std::int64_t block_jacobi_size(const DistributedMatrix& matrix) {
  return matrix.nodes_are_whole() && matrix.node_block_size() <= kMostUnknowns ? matrix.node_block_size() : 1;
}

std::unique_ptr<Preconditioner> make_block_jacobi(DistributedMatrix& matrix, const PreconditionerOptions& options) {
  return std::make_unique<BlockJacobi>(matrix, options);
}

std::vector<SolverSetting> node_block_settings() {
  return settings::of_preconditioners(
      {"block_jacobi", "ilu", "ic", "auto"},
      {settings::count("node_block_size", "unknowns a node; 0: as the matrix has them", 0, 1 << 20,
                       [](SolverOptions& o) -> int& { return o.preconditioning.node_block_size; })});
}

}  // namespace shardmat
