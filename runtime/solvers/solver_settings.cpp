#include "runtime/solvers/solver_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "runtime/solvers/least_squares.h"
#include "runtime/solvers/loop/least_squares_method.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/named.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/method_choice.h"

namespace shardmat {
namespace {

using namespace settings;

std::vector<std::string> names(const auto& list, std::vector<std::string> all = {}) {
  for (const auto& entry : list) all.emplace_back(entry.name);
  return all;
}

/// None: as the type of the matrix says.
SolverSetting relative_tolerance() {
  SolverSetting s = number("rtol", "ends when the residual is at most X times the norm of b (default: 1e-8, in f32 1e-5)", 0,
                           [](SolverOptions& o) -> double& { return o.rtol ? *o.rtol : o.rtol.emplace(0); });
  s.unset = "auto";
  s.get = [](const SolverOptions& o) { return o.rtol ? fmt::format("{}", *o.rtol) : std::string("auto"); };
  s.set = [set = s.set](SolverOptions& o, const std::string& text) {
    if (text == "auto") o.rtol.reset();
    else set(o, text);
  };
  return s;
}

/// Also those of least squares, which `shardmat solve` takes.
std::vector<std::string> names_of_solvers() {
  std::vector<std::string> all = names(methods(), {std::string(kAutomaticMethod)});
  for (const LeastSquaresEntry& entry : least_squares_methods()) all.emplace_back(entry.name);
  return all;
}

/// Those that all methods look at, after the tolerances.
std::vector<SolverSetting> general_settings() {
  using O = SolverOptions;
  return {
      word(
          "residual_norm",
          "the norm of the residual r that decides: unpreconditioned |r|, preconditioned |Mr|, natural sqrt(r'Mr)",
          {"unpreconditioned", "preconditioned", "natural"}, [](const O& o) { return std::string(name(o.residual_norm)); },
          [](O& o, const std::string& text) { o.residual_norm = parse_residual_norm(text); }),
      word(
          "null_space",
          "what A maps to 0; it is removed from b and x. constant: constant vectors, as a Laplacian with Neumann conditions "
          "only does; rigid: motions of bodies without supports, found from the coordinates of the nodes; auto: either, "
          "where multigrid finds it",
          {"none", "constant", "rigid", "auto"}, [](const O& o) { return std::string(name(o.null_space)); },
          [](O& o, const std::string& text) { o.null_space = parse_null_space(text); }),
      word(
          "penalty_rows",
          "rows that state a known value by a diagonal above 1e8 times all else, as FreeFEM's tgv: auto takes x = b / "
          "diagonal there and solves for the other unknowns, if such rows matter little to others; known takes them all and "
          "refuses a matrix without any; keep takes them as rows like others",
          {"keep", "known", "auto"}, [](const O& o) { return std::string(name(o.penalty_rows)); },
          [](O& o, const std::string& text) { o.penalty_rows = parse_penalty_rows(text); }),
      flag("assume_symmetric", "do not check that the matrix is symmetric, for methods that need it",
           [](O& o) -> bool& { return o.assume_symmetric; }),
  };
}

std::vector<SolverSetting> make_settings() {
  using O = SolverOptions;
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
          "positive diagonal and block_jacobi for other symmetric ones, ilu on the host for others with a positive "
          "diagonal if the solver is auto or bicgstab, field_split on the host where the diagonal is 0 or negative in some "
          "rows, else jacobi, and falls back "
          "where these fail",
          names(preconditioners(), {std::string(kAutomaticPreconditioner)}), [](const O& o) { return o.preconditioner; },
          [](O& o, const std::string& text) {
            if (text != kAutomaticPreconditioner) find_preconditioner(text);
            o.preconditioner = text;
          }),
      relative_tolerance(),
      number("atol", "ends when the residual is at most X", 0, [](O& o) -> double& { return o.atol; }),
      number_above("divergence_tolerance",
                   "ends when the residual is above X times the norm of b (or the first residual, if that is larger)", 1,
                   [](O& o) -> double& { return o.divergence_tolerance; }),
      count("max_iterations", "ends after N iterations, of all that auto chooses one after the other", 0,
            std::numeric_limits<std::int64_t>::max(), [](O& o) -> std::int64_t& { return o.max_iterations; }),
  };
  const auto add = [&](const auto& list, const char* of) {
    for (const auto& entry : list) {
      if (entry.settings == nullptr) continue;
      for (SolverSetting& setting : entry.settings()) {
        if (setting.users.empty()) setting.of = of, setting.users = {std::string(entry.name)};
        all.push_back(std::move(setting));
      }
    }
  };
  add(preconditioners(), "preconditioner");
  add(methods(), "solver");
  for (SolverSetting& setting : general_settings()) all.push_back(std::move(setting));
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
    text += fmt::format(". {} {}", s.choices.empty() ? "Values:" : "One of", s.values);
    if (s.unset.empty()) text += fmt::format(". Default: {}", s.get(defaults));
    text += ".\n";
  }
  return text;
}

}  // namespace shardmat
