#include <array>

#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/loop/named.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/method_choice.h"

namespace shardmat {

// Of files of preconditioners/.
std::vector<SolverSetting> node_block_settings();
std::vector<SolverSetting> chebyshev_polynomial_settings();
std::vector<SolverSetting> incomplete_settings();
std::vector<SolverSetting> multigrid_settings();
std::vector<SolverSetting> field_split_settings();

namespace {

constexpr auto kPreconditioners = std::to_array<PreconditionerEntry>({
    {.name = "none", .help = "no preconditioner", .make = make_no_preconditioner},
    {.name = "jacobi", .help = "the diagonal of the matrix", .make = make_jacobi, .reads_upload = true},
    {.name = "block_jacobi",
     .help = "blocks around the diagonal, of the unknowns of a node",
     .make = make_block_jacobi,
     .settings = node_block_settings},
    {.name = "chebyshev",
     .help = "a Chebyshev polynomial of the matrix scaled by its diagonal, for positive definite matrices",
     .make = make_chebyshev_polynomial,
     .settings = chebyshev_polynomial_settings,
     .reads_upload = true},
    {.name = "ilu",
     .help = "incomplete factors L·U of each rank's rows, made by the host",
     .make = make_ilu,
     .settings = incomplete_settings},
    {.name = "ic",
     .help = "incomplete factors L·D·Lᵀ of each rank's rows, made by the host, for symmetric matrices",
     .make = make_ic},
    {.name = "multigrid",
     .help = "a cycle of smoothed aggregation, for positive definite matrices",
     .make = make_multigrid,
     .settings = multigrid_settings,
     .reads_upload = true},
    {.name = "field_split",
     .help = "for saddle points as of Stokes: multigrid for one field, the Schur complement for the other",
     .make = make_field_split,
     .settings = field_split_settings},
    {.name = "direct",
     .help = "the factors of the matrix, by MUMPS or Eigen in host memory: exact but for rounding",
     .make = make_direct},
});

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
