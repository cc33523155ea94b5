#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "runtime/c/handles.h"
#include "runtime/context/context_scope.h"
#include "runtime/solvers/eigen/eigenpairs.h"

namespace shardmat::c {
namespace {

enum class Solution { lanczos, lobpcg, shift_invert };

struct Asked {
  Solution method = Solution::lanczos;
  LanczosOptions lanczos;
  PairOptions pair;
};

Asked asked_for(const shardmat_eigen_options& given, bool has_mass) {
  Asked made;
  const bool shifted = given.has_shift != 0;
  const std::string method = text(given.method, "auto"),
                    which = text(given.which, has_mass || shifted ? "smallest" : "largest");
  require(given.count >= 0, "the number of eigenvalues is negative");
  if (method == "auto") made.method = shifted ? Solution::shift_invert : has_mass ? Solution::lobpcg : Solution::lanczos;
  else if (method == "lobpcg") made.method = Solution::lobpcg;
  else if (method == "shift_invert") made.method = Solution::shift_invert;
  else require(method == "lanczos", "the method of eigenvalues must be auto, lanczos, lobpcg or shift_invert");
  require(which == "smallest" || which == "largest" || which == "both",
          "which eigenvalues must be smallest, largest or both");
  if (made.method == Solution::lanczos) {
    require(!has_mass, "lanczos takes one matrix; take lobpcg or shift_invert for K x = lambda M x");
    LanczosOptions& o = made.lanczos;
    o.which = which == "smallest" ? Which::smallest : which == "both" ? Which::both : Which::largest;
    if (given.count != 0) o.count = given.count;
    if (given.tolerance != 0) o.tolerance = given.tolerance;
    if (given.max_iterations != 0) o.max_iterations = given.max_iterations;
    if (given.seed != 0) o.seed = static_cast<std::uint64_t>(given.seed);
    o.confirm = given.no_confirm == 0, o.assume_symmetric = given.assume_symmetric != 0;
  } else {
    require(which == "smallest", "lobpcg gives the smallest eigenvalues, and shift_invert those nearest to a shift");
    require(!shifted || made.method == Solution::shift_invert, "only the method shift_invert takes a shift");
  }
  PairOptions& o = made.pair;
  if (given.count != 0) o.count = given.count;
  else o.count = 1;
  if (given.tolerance != 0) o.tolerance = given.tolerance;
  if (given.max_iterations != 0) o.max_iterations = given.max_iterations;
  if (given.seed != 0) o.seed = static_cast<std::uint64_t>(given.seed);
  o.guard = given.guard, o.confirm = given.no_confirm == 0, o.assume_symmetric = given.assume_symmetric != 0;
  if (shifted) o.shift = given.shift;
  o.check_count = given.check_count != 0;
  o.inner = text(given.inner, "auto");
  require(o.inner == "auto" || o.inner == "factors" || o.inner == "minres", "inner must be auto, factors or minres");
  return made;
}

std::vector<Given> listed(const shardmat_eigen_options& o) {
  return {option("count", static_cast<double>(o.count)),
          option("tolerance", o.tolerance),
          option("max_iterations", static_cast<double>(o.max_iterations)),
          option("guard", static_cast<double>(o.guard)),
          option("seed", static_cast<double>(o.seed)),
          option("shift", o.shift),
          option("has_shift", o.has_shift),
          option("method", o.method),
          option("inner", o.inner),
          option("check_count", o.check_count),
          option("which", o.which),
          option("no_confirm", o.no_confirm),
          option("assume_symmetric", o.assume_symmetric),
          option("x0_columns", static_cast<double>(o.x0_columns)),
          option("dimensions", o.dimensions)};
}

Dense rows_of(double* memory, const DistributedVector& vector) {
  return {memory, vector.own_rows(), vector.columns(), vector.columns(), DenseOrder::row_major, ValueType::f64, Device{}};
}

/// What a run found, and the vectors, if they are wanted.
PairResult find(DistributedMatrix& k, DistributedMatrix* m, const Asked& asked, const DistributedVector* x0,
                Monitor& monitor, double* vectors) {
  Context& context = k.context();
  const EigenMonitor watch = [&](std::int64_t iterations, const std::vector<Eigenpair>& pairs) {
    std::vector<double> residuals;
    for (const Eigenpair& pair : pairs) residuals.push_back(pair.residual);
    monitor(iterations, residuals);
  };
  const auto stop = [&] { return monitor.ended; };
  std::optional<DistributedVector> found;
  PairResult result;
  if (asked.method == Solution::lanczos) {
    Lanczos lanczos(k, asked.lanczos);
    static_cast<EigenResult&>(result) = lanczos.run(watch, stop);
    for (Eigenpair& pair : result.pairs) pair.relative = result.norm > 0 ? pair.residual / result.norm : 0;
    if (vectors != nullptr) {
      found.emplace(k, VectorLayout::rows, sum_type(k.type()), lanczos.wanted());
      lanczos.copy_vectors(*found, context.stream());
    }
  } else {
    PairVectors of;
    result = solve_pair(asked.method == Solution::lobpcg ? PairMethod::lobpcg : PairMethod::shift_invert, k, m, asked.pair,
                        of, x0, watch, stop);
    if (vectors != nullptr) {
      found.emplace(k, VectorLayout::rows, ValueType::f64, of.count);
      copy_vectors(of, *found);
    }
  }
  if (found) found->own(rows_of(vectors, *found), context.stream());
  return result;
}

}  // namespace
}  // namespace shardmat::c

using namespace shardmat;
using namespace shardmat::c;

int shardmat_eigen(shardmat_matrix* k, shardmat_matrix* m, const shardmat_eigen_options* given, double* values,
                   double* vectors, shardmat_eigen_result* result) {
  if (!is_handle(k)) return no_handle(k, "the matrix");
  if (m != nullptr && !is_handle(m)) return no_handle(m, "the mass matrix");
  bool converged = false;
  const int status = in_context(k->state->context, [&] {
    ContextState& state = *k->state->context;
    require_same(state, [&] { return listed(read_struct(given, "shardmat_eigen_options")); });
    Communicator& ranks = state.communicator;
    shardmat_eigen_options known{};
    Asked asked;
    ranks.run_agreed([&] {
      known = read_struct(given, "shardmat_eigen_options");
      require(!state.context.has_feeders(), "eigenvalues need a context in which every rank owns its rows: no feeders");
      require(m == nullptr || m->state->context == k->state->context, "K and M belong to two contexts");
      asked = asked_for(known, m != nullptr);
      require(values != nullptr, "there is nowhere to put the eigenvalues");
      require(result == nullptr || result->size >= sizeof result->size, "shardmat_eigen_result.size is not set");
      require(known.x0_columns >= 0 && known.x0_columns <= 4096, "x0_columns must be 0 to 4096");
      require(known.x0_columns == 0 || known.x0 != nullptr || k->state->matrix->own_rows() == 0, "x0 is NULL");
      require(known.dimensions == 0 || NodeCoordinates::allows(known.dimensions),
              "dimensions must be 2 or 3, 12 with the axes of each node, or 0: no coordinates");
      require(known.dimensions == 0 || known.coordinates != nullptr || known.nodes == 0, "coordinates is NULL");
      if (known.dimensions != 0)
        asked.pair.multigrid.coordinates = std::make_shared<const NodeCoordinates>(
            NodeCoordinates{known.dimensions, {known.coordinates, known.coordinates + known.nodes * known.dimensions}});
    });
    const ContextScope scope(state.own());
    DistributedMatrix& matrix = k->state->matrix->matrix();
    std::optional<DistributedVector> x0;
    if (known.x0_columns > 0) {
      x0.emplace(matrix, VectorLayout::rows, ValueType::f64, known.x0_columns);
      x0->set_own(rows_of(const_cast<double*>(known.x0), *x0), matrix.context().stream());
    }
    Monitor monitor{known.monitor, known.user};
    const PairResult found =
        find(matrix, m == nullptr ? nullptr : &m->state->matrix->matrix(), asked, x0 ? &*x0 : nullptr, monitor, vectors);
    double worst = 0;
    for (std::size_t i = 0; i < found.pairs.size(); ++i)
      values[i] = found.pairs[i].value, worst = std::max(worst, found.pairs[i].zero ? 0 : found.pairs[i].relative);
    converged = found.converged() && found.missing <= 0;
    if (result != nullptr)
      write_struct(result,
                   {0, converged ? 1 : 0, found.confirmed ? 1 : 0, std::ssize(found.pairs), found.iterations,
                    found.zero_modes, found.missing, worst, found.orthogonality, found.setup_seconds, found.seconds},
                   "");
  });
  if (status != SHARDMAT_OK || converged) return status;
  return keep_message(SHARDMAT_NOT_CONVERGED,
                      "some eigenvalues did not meet the tolerance, or some are missing; allow more iterations, or take the "
                      "method shift_invert");
}
