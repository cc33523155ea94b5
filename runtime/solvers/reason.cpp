#include "runtime/solvers/reason.h"

#include <array>

namespace shardmat {
namespace {

struct Text {
  std::string_view name, explanation;
};
constexpr std::array<Text, 10> kTexts{{
    {"converged_rtol", "the true residual meets the relative tolerance"},
    {"converged_atol", "the true residual meets the absolute tolerance"},
    {"diverged_iterations",
     "the most iterations were done before the residual met the tolerance; allow more, or take a "
     "stronger preconditioner"},
    {"diverged_tolerance",
     "the residual grew beyond the divergence tolerance: take another method or preconditioner, or is the matrix singular?"},
    {"diverged_breakdown",
     "the method divided by zero: take another method, or begin with another x; a singular matrix does this, too"},
    {"diverged_indefinite_matrix", "the matrix is not positive definite; take minres, or gmres"},
    {"diverged_indefinite_preconditioner",
     "the preconditioner is not positive definite (a zero or negative diagonal?); "
     "take another one"},
    {"diverged_nan", "NaN or infinity came up: look at the values of the matrix and of b, or scale them"},
    {"diverged_attainable_accuracy",
     "rounding errors keep the true residual above the tolerance; ask for less, or compute "
     "in f64"},
    {"interrupted", "the solver was told to end; x is as far as it came"},
}};

}  // namespace

std::string_view name(SolveReason reason) { return kTexts[static_cast<std::size_t>(reason)].name; }
std::string_view explain(SolveReason reason) { return kTexts[static_cast<std::size_t>(reason)].explanation; }

}  // namespace shardmat
