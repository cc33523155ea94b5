#include <array>

#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/loop/named.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/method_choice.h"

namespace shardmat {
namespace {

constexpr std::array<PreconditionerEntry, 9> kPreconditioners{{
    {"none", "no preconditioner", make_no_preconditioner},
    {"jacobi", "the diagonal of the matrix", make_jacobi},
    {"block_jacobi", "blocks around the diagonal, of the unknowns of a node", make_block_jacobi},
    {"chebyshev", "a Chebyshev polynomial of the matrix scaled by its diagonal, for positive definite matrices",
     make_chebyshev_polynomial},
    {"ilu", "incomplete factors L·U of each rank's rows, made by the host", make_ilu},
    {"ic", "incomplete factors L·D·Lᵀ of each rank's rows, made by the host, for symmetric matrices", make_ic},
    {"multigrid", "a cycle of smoothed aggregation, for positive definite matrices", make_multigrid},
    {"field_split", "for saddle points as of Stokes: multigrid for one field, the Schur complement for the other",
     make_field_split},
    {"direct", "the factors of the matrix, by MUMPS or Eigen in host memory: exact but for rounding", make_direct},
}};

class Identity final : public Preconditioner {
 public:
  void refresh(Stream&) override {}
  bool identity() const override { return true; }
  void apply(const Dense& r, const Dense& z, Stream& stream) const override {
    copy_on_device(z.data, r.data, static_cast<std::size_t>(r.rows * r.columns) * size_of(r.type), stream);
  }
  std::int64_t device_bytes() const override { return 0; }
};

}  // namespace

std::span<const PreconditionerEntry> preconditioners() { return kPreconditioners; }

const PreconditionerEntry& find_preconditioner(std::string_view name) {
  return find_named(kPreconditioners, "preconditioner", name, "preconditioner", {std::string(kAutomaticPreconditioner)});
}

std::unique_ptr<Preconditioner> make_no_preconditioner(DistributedMatrix&, const PreconditionerOptions&) {
  return std::make_unique<Identity>();
}

}  // namespace shardmat
