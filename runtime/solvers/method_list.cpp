#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/base/error.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/least_squares.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/named.h"
#include "runtime/solvers/method_choice.h"

namespace shardmat {

// One for each file of methods/ that can be chosen.
std::unique_ptr<Method> make_bicgstab(const MethodInputs& inputs);
std::unique_ptr<Method> make_chebyshev(const MethodInputs& inputs);
std::unique_ptr<Method> make_cg(const MethodInputs& inputs);
std::unique_ptr<Method> make_direct_method(const MethodInputs& inputs);
std::unique_ptr<Method> make_fgmres(const MethodInputs& inputs);
std::unique_ptr<Method> make_gmres(const MethodInputs& inputs);
std::unique_ptr<Method> make_minres(const MethodInputs& inputs);

std::vector<SolverSetting> cg_settings();
std::vector<SolverSetting> gmres_settings();

namespace {

constexpr std::array kAllNorms{ResidualNorm::unpreconditioned, ResidualNorm::preconditioned, ResidualNorm::natural};
constexpr std::array kUnpreconditioned{ResidualNorm::unpreconditioned};
constexpr std::array kNoPreconditioned{ResidualNorm::unpreconditioned, ResidualNorm::natural};

/// A step keeps so many vectors.
template <int kVectors>
std::int64_t steps_until_restart(const SolverOptions& options, std::int64_t rows) {
  return kVectors * std::min(options.restart, rows);
}

constexpr auto kMethods = std::to_array<MethodEntry>({
    {.name = "cg",
     .help = "conjugate gradients, for symmetric positive definite matrices",
     .demands = Demands::positive_definite,
     .vectors = 4,
     .norms = kAllNorms,
     .coefficients = Coefficients::of_conjugate_gradients,
     .variants = true,
     .make = make_cg,
     .settings = cg_settings},
    {.name = "minres",
     .help = "minimal residuals, for symmetric matrices, indefinite ones too",
     .demands = Demands::symmetric,
     .vectors = 7,
     .norms = kNoPreconditioned,
     .coefficients = Coefficients::of_lanczos,
     .make = make_minres},
    {.name = "gmres",
     .help = "generalised minimal residuals, restarted, preconditioned from the right; for any matrix",
     .demands = Demands::nothing,
     .vectors = 1,
     .basis = steps_until_restart<1>,
     .norms = kUnpreconditioned,
     .make = make_gmres,
     .settings = gmres_settings},
    {.name = "fgmres",
     .help = "the same for a preconditioner that changes from step to step; takes the memory of twice as many vectors",
     .demands = Demands::nothing,
     .vectors = 1,
     .basis = steps_until_restart<2>,
     .norms = kUnpreconditioned,
     .flexible = true,
     .make = make_fgmres},
    {.name = "bicgstab",
     .help = "stabilised bi-conjugate gradients, preconditioned from the right; for any matrix, little memory",
     .demands = Demands::nothing,
     .vectors = 6,
     .norms = kUnpreconditioned,
     .factors_first = true,
     .make = make_bicgstab},
    {.name = "chebyshev",
     .help = "Chebyshev iteration, for positive definite matrices: needs no sums but for the norm of the residual",
     .demands = Demands::positive_definite,
     .vectors = 3,
     .norms = kAllNorms,
     .make = make_chebyshev},
    {.name = "direct",
     .help = "the factors of the matrix and iterative refinement, for any matrix; takes the preconditioner direct",
     .demands = Demands::nothing,
     .vectors = 3,
     .norms = kUnpreconditioned,
     .preconditioner = "direct",
     .make = make_direct_method},
});

}  // namespace

std::span<const MethodEntry> methods() { return kMethods; }

const MethodEntry& find_method(std::string_view name) {
  if (is_least_squares_method(name))
    throw Error(
        ErrorKind::usage,
        fmt::format("{} solves least squares, which is not done here: `shardmat solve` does it, programs in C++ call "
                    "solve_least_squares(), those in Python SciPy's lsqr with the matrix as its operator",
                    name),
        "solver");
  return find_named(kMethods, "solver", name, "solver", {std::string(kAutomaticMethod)});
}

Context& MethodInputs::context() const { return matrix().context(); }
std::int64_t MethodInputs::rows() const { return matrix().local_rows(); }
ValueType MethodInputs::type() const { return sum_type(matrix().type()); }

void MethodInputs::residual(const void* b, const void* x, Guess guess, void* r, Stream& stream) const {
  if (guess == Guess::zero) return copy_on_device(r, b, vector_bytes(), stream);
  if (exact == nullptr || !exact->ready()) return residual_by_product(b, x, r, stream);
  (*exact)(b, x, r, stream);
  product.clear_held(view(r), stream);
}

void MethodInputs::residual_by_product(const void* b, const void* x, void* r, Stream& stream) const {
  copy_on_device(r, b, vector_bytes(), stream);
  product.multiply(-1, view(const_cast<void*>(x)), 1, view(r), stream);
}

}  // namespace shardmat
