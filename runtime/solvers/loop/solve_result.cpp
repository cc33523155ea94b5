#include "runtime/solvers/loop/solve_result.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

namespace shardmat {
namespace {

struct Text {
  std::string_view name, explanation;
};
constexpr std::array<Text, 12> kTexts{{
    {"converged_rtol", "the true residual meets the relative tolerance"},
    {"converged_atol", "the true residual meets the absolute tolerance"},
    {"converged_attainable",
     "the tolerance was not met, but the residual is as small as rounding errors allow: x solves a system whose entries "
     "differ from those of A in the last digits"},
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
     "rounding errors of the method keep the true residual above the tolerance: ask for less, or take a stronger "
     "preconditioner or another method"},
    {"interrupted", "the solver was told to end; x is as far as it came"},
    {"least_squares",
     "no x solves the system: A is singular, or nearly so, and b is not consistent with it. x is a least-squares solution: "
     "no x makes the residual smaller (in the norm that the preconditioner makes)"},
}};

/// The texts for all circumstances.
class Explanations {
 public:
  Explanations() {
    for (std::size_t i = 0; i < kTexts.size(); ++i)
      for (const bool f32 : {false, true})
        for (const Singular singular : {Singular::no, Singular::constants, Singular::more}) {
          const auto reason = static_cast<SolveReason>(i);
          std::string text(kTexts[i].explanation);
          if (f32 && reason == SolveReason::diverged_attainable_accuracy) text += ", or compute in f64";
          if (f32 && reason == SolveReason::diverged_indefinite_matrix)
            text += ". Rounding its values to f32 may have made it so: compute in f64";
          if (singular != Singular::no && !converged(reason))
            text += std::string(text.back() == '?' ? "" : ".") +
                    (singular == Singular::constants
                         ? " The matrix maps constant vectors to 0, so it is singular: set the null space to constant"
                         : " The matrix is singular, and constant vectors are a part of its null space only, as of a "
                           "structure without supports: hold some unknowns, or set the null space to rigid");
          texts_[place(reason, f32, singular)] = std::move(text);
        }
  }
  const std::string& of(SolveReason reason, const SolveCircumstances& circumstances) const {
    const Singular singular = circumstances.maps_more_to_zero        ? Singular::more
                              : circumstances.maps_constants_to_zero ? Singular::constants
                                                                     : Singular::no;
    return texts_[place(reason, circumstances.f32, singular)];
  }

 private:
  enum class Singular { no, constants, more };
  static std::size_t place(SolveReason reason, bool f32, Singular singular) {
    return 6 * static_cast<std::size_t>(reason) + (f32 ? 3 : 0) + static_cast<std::size_t>(singular);
  }
  std::array<std::string, 6 * kTexts.size()> texts_;
};

}  // namespace

std::string_view name(SolveReason reason) { return kTexts[static_cast<std::size_t>(reason)].name; }

std::string_view explain(SolveReason reason, const SolveCircumstances& circumstances) {
  static const Explanations all;
  return all.of(reason, circumstances);
}

bool SolveResult::converged() const {
  return std::all_of(columns.begin(), columns.end(), [](const SolvedColumn& c) { return shardmat::converged(c.reason); });
}

std::string_view SolveResult::explanation(const SolvedColumn& column) const {
  return explain(column.reason, {f32, maps_constants_to_zero, maps_more_to_zero});
}

}  // namespace shardmat
