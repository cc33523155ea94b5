#include "runtime/solvers/loop/solver_options.h"

#include <array>
#include <cstddef>

#include "runtime/solvers/loop/named.h"

namespace shardmat {
namespace {

// In the order of the enumerations.
constexpr std::array<std::string_view, 4> kVariants{"auto", "classic", "single_reduction", "flexible"};
constexpr std::array<std::string_view, 2> kGramSchmidt{"classical", "modified"};
constexpr std::array<std::string_view, 3> kNorms{"unpreconditioned", "preconditioned", "natural"};
constexpr std::array<std::string_view, 4> kNullSpaces{"none", "constant", "rigid", "auto"};
constexpr std::array<std::string_view, 3> kPenaltyRows{"keep", "known", "auto"};

template <class E, std::size_t N>
E parse(const std::array<std::string_view, N>& names, std::string_view text, std::string_view what, const char* setting) {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == text) return static_cast<E>(i);
  refuse_name(what, text, {names.begin(), names.end()}, setting);
}

}  // namespace

std::string_view name(CgVariant variant) { return kVariants[static_cast<std::size_t>(variant)]; }
std::string_view name(GramSchmidt choice) { return kGramSchmidt[static_cast<std::size_t>(choice)]; }
std::string_view name(ResidualNorm norm) { return kNorms[static_cast<std::size_t>(norm)]; }
std::string_view name(NullSpace space) { return kNullSpaces[static_cast<std::size_t>(space)]; }
std::string_view name(PenaltyRows choice) { return kPenaltyRows[static_cast<std::size_t>(choice)]; }

CgVariant parse_cg_variant(std::string_view text) { return parse<CgVariant>(kVariants, text, "variant", "variant"); }

GramSchmidt parse_gram_schmidt(std::string_view text) {
  return parse<GramSchmidt>(kGramSchmidt, text, "variant of Gram-Schmidt", "gram_schmidt");
}

ResidualNorm parse_residual_norm(std::string_view text) {
  return parse<ResidualNorm>(kNorms, text, "norm of the residual", "residual_norm");
}

NullSpace parse_null_space(std::string_view text) { return parse<NullSpace>(kNullSpaces, text, "null space", "null_space"); }

PenaltyRows parse_penalty_rows(std::string_view text) {
  return parse<PenaltyRows>(kPenaltyRows, text, "choice for penalty rows", "penalty_rows");
}

double default_rtol(ValueType type) { return type == ValueType::f64 ? 1e-8 : 1e-5; }

}  // namespace shardmat
