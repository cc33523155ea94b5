#include "runtime/solvers/solver_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "runtime/solvers/incomplete/order.h"
#include "runtime/solvers/least_squares.h"
#include "runtime/solvers/loop/least_squares_method.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/named.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/method_choice.h"
#include "runtime/solvers/multigrid/smoother.h"

namespace shardmat {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& wanted, const std::string& given) {
  throw Error(ErrorKind::usage, fmt::format("{} must be {}, not \"{}\"", name, wanted, given), name);
}

/// One of the names of an enumeration. `parse` refuses others.
template <class Get, class Parse>
SolverSetting word(std::string name, std::string help, std::vector<std::string> choices, Get get, Parse parse) {
  SolverSetting s{std::move(name), std::move(help), std::move(choices)};
  s.get = [get](const SolverOptions& o) { return std::string(get(o)); };
  s.set = [parse](SolverOptions& o, const std::string& text) { parse(o, text); };
  return s;
}

/// A word for which there is no enumeration. `in(options)`: the variable.
template <class In>
SolverSetting text_of(std::string name, std::string help, std::vector<std::string> choices, In in) {
  const auto parse = [in, choices, name](SolverOptions& o, const std::string& text) {
    if (std::find(choices.begin(), choices.end(), text) == choices.end()) refuse(name, join_choices(choices), text);
    in(o) = text;
  };
  return word(
      std::move(name), std::move(help), choices, [in](const SolverOptions& o) { return in(const_cast<SolverOptions&>(o)); },
      parse);
}

template <class T>
std::optional<T> value_in(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> names(const auto& list, std::vector<std::string> all = {}) {
  for (const auto& entry : list) all.emplace_back(entry.name);
  return all;
}

/// `in(options)`: the variable. `least`: itself allowed, unless `above`; then infinity is, too.
template <class In>
SolverSetting number(std::string name, std::string help, double least, bool above, In in) {
  SolverSetting s{std::move(name), std::move(help)};
  const std::string wanted = above ? fmt::format("above {:g}", least) : fmt::format("{:g} or more", least);
  s.get = [in](const SolverOptions& o) { return fmt::format("{}", in(const_cast<SolverOptions&>(o))); };
  s.set = [in, least, above, wanted, label = s.name](SolverOptions& o, const std::string& text) {
    const std::optional<double> value = value_in<double>(text);
    if (!value || (above ? !(*value > least) : !(*value >= least) || std::isinf(*value))) refuse(label, wanted, text);
    in(o) = *value;
  };
  return s;
}

template <class In>
SolverSetting count(std::string name, std::string help, std::int64_t least, std::int64_t most, In in) {
  SolverSetting s{std::move(name), std::move(help)};
  s.whole = true;
  s.get = [in](const SolverOptions& o) { return fmt::format("{}", in(const_cast<SolverOptions&>(o))); };
  s.set = [in, least, most, label = s.name](SolverOptions& o, const std::string& text) {
    const std::optional<std::int64_t> value = value_in<std::int64_t>(text);
    if (!value || *value < least || *value > most)
      refuse(label, fmt::format("a whole number from {} to {}", least, most), text);
    in(o) = static_cast<std::remove_reference_t<decltype(in(o))>>(*value);
  };
  return s;
}

template <class In>
SolverSetting flag(std::string name, std::string help, In in) {
  SolverSetting s{std::move(name), std::move(help)};
  s.flag = true;
  s.get = [in](const SolverOptions& o) { return in(const_cast<SolverOptions&>(o)) ? "1" : "0"; };
  s.set = [in, label = s.name](SolverOptions& o, const std::string& text) {
    const bool yes = text == "1" || text == "true" || text == "True";
    if (!yes && text != "0" && text != "false" && text != "False") refuse(label, "0 or 1", text);
    in(o) = yes;
  };
  return s;
}

/// "auto", or a 0 or a 1 for each of some things, both of which occur.
template <class In>
SolverSetting digits(std::string name, std::string help, In in) {
  SolverSetting s{std::move(name), std::move(help)};
  s.text = true;
  s.get = [in](const SolverOptions& o) { return in(const_cast<SolverOptions&>(o)); };
  s.set = [in, label = s.name](SolverOptions& o, const std::string& text) {
    const bool good = text.find_first_not_of("01") == std::string::npos && text.find('0') != std::string::npos &&
                      text.find('1') != std::string::npos;
    if (text != "auto" && !good) refuse(label, "auto, or digits 0 and 1, as 001", text);
    in(o) = text;
  };
  return s;
}

SolverSetting used_by(SolverSetting setting, std::string of, std::vector<std::string> users) {
  setting.of = std::move(of), setting.users = std::move(users);
  return setting;
}

/// None: as the type of the matrix says.
SolverSetting relative_tolerance() {
  SolverSetting s = number("rtol", "ends when the residual is at most X times the norm of b (default: 1e-8, in f32 1e-5)", 0,
                           false, [](SolverOptions& o) -> double& { return o.rtol ? *o.rtol : o.rtol.emplace(0); });
  s.unset = "auto";
  s.get = [](const SolverOptions& o) { return o.rtol ? fmt::format("{}", *o.rtol) : std::string("auto"); };
  s.set = [set = s.set](SolverOptions& o, const std::string& text) {
    if (text == "auto") o.rtol.reset();
    else set(o, text);
  };
  return s;
}

/// Programs may also say clusters:N (incomplete::matching_of()).
SolverSetting factor_order() {
  const std::vector<std::string> choices{"auto", "natural", "rcm", "colours", "clusters"};
  return word(
      "factor_order",
      "the order in which a rank eliminates its rows: natural, rcm (reverse Cuthill-McKee), colours (rows that are not "
      "coupled together: few steps on a GPU, more iterations), clusters (colours of small groups of strongly coupled rows: "
      "between both), or auto: colours on a GPU, else rcm where entries lie far from the diagonal",
      choices, [](const SolverOptions& o) { return o.preconditioning.factor.order; },
      [choices](SolverOptions& o, const std::string& text) {
        const bool known = std::find(choices.begin(), choices.end(), text) != choices.end();
        if (!known && !incomplete::matching_of(text)) refuse("factor_order", join_choices(choices), text);
        o.preconditioning.factor.order = text;
      });
}

/// Also those of least squares, which `shardmat solve` takes.
std::vector<std::string> names_of_solvers() {
  std::vector<std::string> all = names(methods(), {std::string(kAutomaticMethod)});
  for (const LeastSquaresEntry& entry : least_squares_methods()) all.emplace_back(entry.name);
  return all;
}

std::vector<SolverSetting> make_settings() {
  using O = SolverOptions;
  const std::string kAuto(kAutomaticPreconditioner);
  const std::vector<std::string> factors{"ilu", "ic", kAuto};
  const std::vector<std::string> restarting{"gmres", "fgmres", std::string(kAutomaticMethod)};
  const std::vector<std::string> users_of_multigrid{"multigrid", "field_split", kAuto};
  std::vector<SolverSetting> all{
      word(
          "solver",
          "the method; auto takes cg if the matrix is symmetric and its diagonal positive, minres if it is symmetric, else "
          "bicgstab with ilu, fgmres with multigrid, or gmres. lsqr and cgls solve least squares, of a matrix of any shape",
          names_of_solvers(), [](const O& o) { return o.solver; },
          [](O& o, const std::string& text) {
            if (text != kAutomaticMethod && !is_least_squares_method(text)) find_method(text);
            o.solver = text;
          }),
      word(
          "preconditioner",
          "what is applied to the residual; auto takes multigrid for symmetric matrices of 5,000 rows or more with a "
          "positive "
          "diagonal and block_jacobi for other symmetric ones, ilu on the host for others with a positive diagonal, else "
          "jacobi, and falls back where these fail",
          names(preconditioners(), {kAuto}), [](const O& o) { return o.preconditioner; },
          [](O& o, const std::string& text) {
            if (text != kAutomaticPreconditioner) find_preconditioner(text);
            o.preconditioner = text;
          }),
      relative_tolerance(),
      number("atol", "ends when the residual is at most X", 0, false, [](O& o) -> double& { return o.atol; }),
      number("divergence_tolerance",
             "ends when the residual is above X times the norm of b (or the first residual, if that is larger)", 1, true,
             [](O& o) -> double& { return o.divergence_tolerance; }),
      count("max_iterations", "ends after N iterations, of all that auto chooses one after the other", 0,
            std::numeric_limits<std::int64_t>::max(), [](O& o) -> std::int64_t& { return o.max_iterations; }),
      used_by(count("degree", "products an application", 1, 100, [](O& o) -> int& { return o.preconditioning.degree; }),
              "preconditioner", {"chebyshev"}),
      used_by(count("node_block_size", "unknowns a node; 0: as the matrix has them", 0, 1 << 20,
                    [](O& o) -> int& { return o.preconditioning.node_block_size; }),
              "preconditioner", {"block_jacobi", "ilu", "ic", kAuto}),
      used_by(count("factor_levels", "levels of fill: 0 keeps the pattern of the matrix", 0, 20,
                    [](O& o) -> int& { return o.preconditioning.factor.levels; }),
              "preconditioner", factors),
      used_by(number("drop_tolerance",
                     "above 0: fill is kept, in place of levels, where it is above X times the norm of its row", 0, false,
                     [](O& o) -> double& { return o.preconditioning.factor.drop_tolerance; }),
              "preconditioner", factors),
      used_by(number("factor_fill", "with a drop tolerance: at most X times the entries of the matrix", 0, true,
                     [](O& o) -> double& { return o.preconditioning.factor.fill; }),
              "preconditioner", factors),
      used_by(factor_order(), "preconditioner", factors),
      used_by(count("factor_sweeps", "on a GPU: N Jacobi sweeps of each factor in place of an exact solve; 0: exact", 0, 100,
                    [](O& o) -> int& { return o.preconditioning.factor.sweeps; }),
              "preconditioner", factors),
      used_by(count("asm_overlap", "1: each rank's factors reach into the rows next to its own", 0, 1,
                    [](O& o) -> int& { return o.preconditioning.factor.overlap; }),
              "preconditioner", factors),
      used_by(
          word(
              "near_null_space",
              "vectors that A maps to almost 0: rigid (rigid-body modes, which need coordinates), constants (one for each "
              "unknown of a node), adaptive (the constants, and for symmetric matrices vectors that cycles from random ones "
              "find: "
              "no coordinates are needed, and the set-up takes longer), or auto: rigid where the coordinates are known and "
              "A "
              "maps the modes to almost 0, else constants",
              {"auto", "rigid", "constants", "adaptive"},
              [](const O& o) { return o.preconditioning.multigrid.near_null_space; },
              [](O& o, const std::string& text) { o.preconditioning.multigrid.near_null_space = text; }),
          "preconditioner", users_of_multigrid),
      used_by(number("strength", "couplings of X and more form aggregates", 0, false,
                     [](O& o) -> double& { return o.preconditioning.multigrid.strength; }),
              "preconditioner", users_of_multigrid),
      used_by(word(
                  "smoother",
                  "what reduces errors on each level: chebyshev and ic (for symmetric matrices), l1_jacobi and ilu (for "
                  "any), or auto: "
                  "chebyshev if the matrix is symmetric, else l1_jacobi",
                  names(multigrid::smoothers(), {"auto"}), [](const O& o) { return o.preconditioning.multigrid.smoother; },
                  [](O& o, const std::string& text) {
                    if (text != "auto") multigrid::find_smoother(text);
                    o.preconditioning.multigrid.smoother = text;
                  }),
              "preconditioner", users_of_multigrid),
      used_by(text_of("cycle",
                      "V: each level once; W: coarse levels twice; K: twice, with the best combination of both, for fgmres "
                      "and cg; auto: "
                      "V if the matrix is symmetric, else K with fgmres and W with other methods",
                      {"auto", "V", "W", "K"}, [](O& o) -> std::string& { return o.preconditioning.multigrid.cycle; }),
              "preconditioner", users_of_multigrid),
      used_by(count("smoother_degree", "steps of the smoother before and after the coarse correction", 1, 10,
                    [](O& o) -> int& { return o.preconditioning.multigrid.smoother_degree; }),
              "preconditioner", users_of_multigrid),
      used_by(count("coarse_size", "a level of at most N unknowns is solved exactly", 1, 10'000,
                    [](O& o) -> std::int64_t& { return o.preconditioning.multigrid.coarse_size; }),
              "preconditioner", users_of_multigrid),
      used_by(count("rank_size",
                    "coarse levels with fewer than N unknowns a rank, or than a quarter of the first level's, move to fewer "
                    "ranks; 0: none does",
                    0, 1'000'000'000, [](O& o) -> std::int64_t& { return o.preconditioning.multigrid.rank_size; }),
              "preconditioner", users_of_multigrid),
      used_by(count("levels", "levels at most", 1, 100, [](O& o) -> int& { return o.preconditioning.multigrid.levels; }),
              "preconditioner", users_of_multigrid),
      used_by(word(
                  "inner",
                  "type of the values inside: f32 is as good as f64 in most systems, and faster; f16: matrices of multigrid "
                  "that is set up on a GPU, of 2, 3 or 6 unknowns a node, the rest in f32",
                  {"f64", "f32", "f16"}, [](const O& o) { return std::string(name(o.preconditioning.multigrid.inner)); },
                  [](O& o, const std::string& text) { o.preconditioning.multigrid.inner = parse_value_type(text); }),
              "preconditioner", {"multigrid", "field_split", "ilu", "ic", kAuto}),
      used_by(
          text_of(
              "refresh",
              "what new values of the matrix change: keep (the matrices of all levels), smooth (also the prolongations), "
              "or anew (the aggregates, too)",
              {"keep", "smooth", "anew"}, [](O& o) -> std::string& { return o.preconditioning.multigrid.refresh; }),
          "preconditioner", users_of_multigrid),
      used_by(digits("fields",
                     "which of two fields an unknown belongs to: a digit for each unknown of a node, as 001 for u, v and p; "
                     "auto: rows with a negative diagonal, or one that is small beside their other entries, are the second",
                     [](O& o) -> std::string& { return o.preconditioning.fields; }),
              "preconditioner", {"field_split", kAuto}),
      used_by(
          text_of(
              "schur",
              "what the Schur complement of the second field becomes: diagonal (good for Stokes), commutator (two "
              "cycles of multigrid; good for flows with a strong wind, as of Oseen), multigrid (good where the first block "
              "is a mass matrix, as of Darcy), or auto: multigrid unless the first block maps constants to almost 0, else "
              "diagonal",
              {"auto", "diagonal", "commutator", "multigrid"}, [](O& o) -> std::string& { return o.preconditioning.schur; }),
          "preconditioner", {"field_split", kAuto}),
      used_by(count("restart", "steps until the method begins anew; N vectors are kept", 1, 100'000,
                    [](O& o) -> std::int64_t& { return o.restart; }),
              "solver", restarting),
      used_by(word(
                  "gram_schmidt",
                  "classical: with one sum over the ranks a step, or two where the first is not enough; modified: with a "
                  "sum for each vector kept",
                  {"classical", "modified"}, [](const O& o) { return name(o.gram_schmidt); },
                  [](O& o, const std::string& text) { o.gram_schmidt = parse_gram_schmidt(text); }),
              "solver", restarting),
      used_by(
          word(
              "variant",
              "classic: two sums over the ranks an iteration; single_reduction: one, for the price of a further vector to "
              "read and write; flexible: two, for a preconditioner that is a little unsymmetric or changes; auto takes "
              "flexible with a preconditioner of the program and with the cycle K, else it measures which of the others is "
              "faster (if results must be reproducible, the size of the vectors decides)",
              {"auto", "classic", "single_reduction", "flexible"}, [](const O& o) { return name(o.variant); },
              [](O& o, const std::string& text) { o.variant = parse_cg_variant(text); }),
          "solver", {"cg", std::string(kAutomaticMethod)}),
      word(
          "residual_norm",
          "the norm of the residual r that decides: unpreconditioned |r|, preconditioned |Mr|, natural sqrt(r'Mr)",
          {"unpreconditioned", "preconditioned", "natural"}, [](const O& o) { return name(o.residual_norm); },
          [](O& o, const std::string& text) { o.residual_norm = parse_residual_norm(text); }),
      word(
          "null_space",
          "what A maps to 0; it is removed from b and x. constant: constant vectors, as a Laplacian with Neumann conditions "
          "only does; rigid: motions of bodies without supports, found from the coordinates of the nodes; auto: either, "
          "where multigrid finds it",
          {"none", "constant", "rigid", "auto"}, [](const O& o) { return name(o.null_space); },
          [](O& o, const std::string& text) { o.null_space = parse_null_space(text); }),
      word(
          "penalty_rows",
          "rows that state a known value by a diagonal above 1e8 times all else, as FreeFEM's tgv: auto takes x = b / "
          "diagonal there and solves for the other unknowns, if such rows matter little to others; known takes them all and "
          "refuses a matrix without any; keep takes them as rows like others",
          {"keep", "known", "auto"}, [](const O& o) { return name(o.penalty_rows); },
          [](O& o, const std::string& text) { o.penalty_rows = parse_penalty_rows(text); }),
      flag("assume_symmetric", "do not check that the matrix is symmetric, for methods that need it",
           [](O& o) -> bool& { return o.assume_symmetric; }),
  };
  return all;
}

}  // namespace

const std::vector<SolverSetting>& solver_settings() {
  static const std::vector<SolverSetting> all = make_settings();
  return all;
}

const SolverSetting& find_solver_setting(const std::string& name) {
  return find_named(solver_settings(), "option of a solver", name, "settings");
}

bool SolverSetting::is_used(const SolverOptions& options) const {
  const std::string& chosen = of == "solver" ? options.solver : options.preconditioner;
  return users.empty() || std::find(users.begin(), users.end(), chosen) != users.end();
}

void require_used(const std::vector<const SolverSetting*>& given, const SolverOptions& options) {
  for (const SolverSetting* const setting : given)
    if (!setting->is_used(options))
      throw Error(
          ErrorKind::usage,
          fmt::format("{} is of no use with the {} {}; leave it out, or take {}", setting->name, setting->of,
                      setting->of == "solver" ? options.solver : options.preconditioner, join_choices(setting->users)),
          setting->name);
}

void take_settings(const std::string& text, SolverOptions& options) {
  std::vector<const SolverSetting*> given;
  for (std::size_t at = text.find_first_not_of(" ,"); at != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(" ,", at), text.size());
    const std::string entry = text.substr(at, end - at);
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos)
      throw Error(ErrorKind::usage, fmt::format("\"{}\" among the settings is not of the form name=value", entry),
                  "settings");
    const std::string before = entry.substr(0, equals);
    const SolverSetting& setting = find_solver_setting(before);
    if (std::find(given.begin(), given.end(), &setting) != given.end())
      throw Error(ErrorKind::usage, fmt::format("{} comes twice among the settings", setting.name), "settings");
    given.push_back(&setting);
    setting.set(options, entry.substr(equals + 1));
    at = text.find_first_not_of(" ,", end);
  }
  require_used(given, options);
}

bool may_use_coordinates(const SolverOptions& options) {
  return options.preconditioner == "multigrid" || options.preconditioner == "direct" ||
         options.preconditioner == kAutomaticPreconditioner || options.null_space == NullSpace::rigid;
}

void require_good_settings(const SolverOptions& options) {
  SolverOptions copy;
  for (const SolverSetting& setting : solver_settings()) setting.set(copy, setting.get(options));
  const MultigridOptions& multigrid = options.preconditioning.multigrid;
  if (may_use_coordinates(options) || (!multigrid.coordinates && !multigrid.near_null_vectors)) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} are of no use with the preconditioner {}; leave them out, or take multigrid",
                          multigrid.coordinates ? "coordinates" : "near-null vectors", options.preconditioner),
              multigrid.coordinates ? "coordinates" : "near_null_vectors");
}

std::vector<Given> all_settings(const SolverOptions& options) {
  std::vector<Given> all;
  for (const SolverSetting& setting : solver_settings()) all.push_back({setting.name, setting.get(options), {}});
  return all;
}

std::string describe_settings() {
  std::string text;
  const SolverOptions defaults;
  for (const SolverSetting& s : solver_settings()) {
    text += s.name + ": ";
    if (!s.users.empty()) text += fmt::format("of the {} {}: ", s.of, join_choices(s.users));
    text += s.help;
    if (!s.choices.empty()) text += fmt::format(". One of {}", join_choices(s.choices));
    if (s.unset.empty()) text += fmt::format(". Default: {}", s.get(defaults));
    text += ".\n";
  }
  return text;
}

}  // namespace shardmat
