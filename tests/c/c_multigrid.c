/* Multigrid with coordinates and vectors; null vectors of a free body. */
#include "c_checks.h"

enum { kEdge = 8, kUnknowns = 3 * kEdge * kEdge * kEdge };

static int64_t cycles_of(shardmat_matrix* a, const shardmat_solver_options* options) {
  static double b[kUnknowns], x[kUnknowns];
  for (int i = 0; i < kUnknowns; ++i) b[i] = 1 + i % 5, x[i] = 0;
  shardmat_solve_result result = {.size = sizeof result};
  OK(shardmat_solve(a, options, b, x, &result));
  return result.iterations;
}

/* Where the nodes of some rows lie, and their six motions. */
static void find_motions(const int64_t* ids, int64_t rows, double* xyz, double* modes) {
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t node = ids[i] / 3, along[] = {node % kEdge, node / kEdge % kEdge, node / kEdge / kEdge};
    const int c = (int)(ids[i] % 3), next = (c + 1) % 3, last = (c + 2) % 3;
    xyz[i] = (double)along[c];
    for (int m = 0; m < 3; ++m) modes[6 * i + m] = m == c;
    modes[6 * i + 3 + c] = 0, modes[6 * i + 3 + next] = (double)along[last], modes[6 * i + 3 + last] = -(double)along[next];
  }
}

/* A body that nothing holds: its motions are removed from b and x. */
void takes_null_vectors(shardmat_context* context) {
  shardmat_matrix* a = NULL;
  shardmat_matrix_info info = {.size = sizeof info};
  OK(shardmat_matrix_from_file(context, "elasticity:n=8,uniform", NULL, &a));
  OK(shardmat_matrix_get_info(a, &info));
  static int64_t ids[kUnknowns];
  static double xyz[kUnknowns], modes[6 * kUnknowns], b[kUnknowns], x[kUnknowns];
  OK(shardmat_matrix_row_ids(a, ids));
  find_motions(ids, info.own_rows, xyz, modes);
  shardmat_solver_options options = {.size = sizeof options,
                                     .solver = "cg",
                                     .preconditioner = "jacobi",
                                     .rtol = 1e-9,
                                     .null_vectors = modes,
                                     .null_count = 6};
  double sums[6] = {0}, largest = 0;
  for (int64_t i = 0; i < info.own_rows; ++i) b[i] = (double)(1 + ids[i] % 7), x[i] = 1;
  shardmat_solve_result result = {.size = sizeof result};
  OK(shardmat_solve(a, &options, b, x, &result));
  CHECK(result.removed_from_b > 1 && result.true_residual <= 1e-9 * result.norm_of_b);
  for (int64_t i = 0; i < info.own_rows; ++i)
    for (int m = 0; m < 6; ++m) sums[m] += modes[6 * i + m] * x[i], largest = fmax(largest, fabs(x[i]));
#ifdef WITH_MPI
  MPI_Allreduce(MPI_IN_PLACE, sums, 6, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
#endif
  for (int m = 0; m < 6; ++m) CHECK(fabs(sums[m]) <= 1e-8 * kUnknowns * largest);
  shardmat_solver* solver = NULL;
  options.null_space = "constant";
  REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, "null_space is constant");
  options.null_space = NULL, options.null_count = 25;
  REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, "number of null_vectors must be 1 to 24");
  options.null_count = 0;
  REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, "null_vectors are given, but their number is 0");
  options.null_count = 6;
  for (int64_t i = 0; i < info.own_rows; ++i) modes[6 * i + 4] = (double)(ids[i] % 5);
  REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, "does not map to 0");
  if (ranks > 1) {
    options.null_count = rank == 0 ? 5 : 6;
    REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, "on this rank null_count is");
  }
  shardmat_matrix_destroy(a);
}

/* Rigid-body modes take fewer iterations than constants, whether they come from coordinates or as vectors. */
void takes_coordinates(shardmat_context* context, int feeders) {
  if (!on_host()) return;
  shardmat_matrix* a = NULL;
  shardmat_matrix_info info = {.size = sizeof info};
  OK(shardmat_matrix_from_file(context, "elasticity:n=8,uniform,clamp=0.1", NULL, &a));
  OK(shardmat_matrix_get_info(a, &info));
  CHECK(info.rows == kUnknowns && info.node_block_size == 3);
  static int64_t ids[kUnknowns];
  static double xyz[kUnknowns], modes[6 * kUnknowns];
  OK(shardmat_matrix_row_ids(a, ids));
  find_motions(ids, info.own_rows, xyz, modes);
  shardmat_solver_options options = {.size = sizeof options,
                                     .preconditioner = "multigrid",
                                     .settings = "coarse_size=100 inner=f64 near_null_space=constants"};
  const int64_t without = cycles_of(a, &options);
  options.settings = "coarse_size=100 inner=f64";
  const int64_t known = cycles_of(a, &options); /* the source says where its nodes lie */
  options.coordinates = xyz, options.nodes = info.own_rows / 3, options.dimensions = 3;
  const int64_t with = cycles_of(a, &options);
  CHECK(with < without && known < without && llabs(known - with) <= 1);
  shardmat_solver* solver = NULL;
  OK(shardmat_solver_create(a, &options, &solver));
  shardmat_multigrid_info about = {.size = sizeof about};
  OK(shardmat_solver_get_multigrid(solver, &about));
  CHECK(about.levels >= 2 && strcmp(about.near_null_space, "6 rigid-body modes") == 0 && about.operator_complexity > 1);
  CHECK(strcmp(about.cycle, "V") == 0 && strcmp(about.smoother, "chebyshev") == 0);
  CHECK(about.memory_bytes > 4 * info.nnz && about.setup_seconds > 0);
  for (int64_t l = 0; l < about.levels; ++l) {
    shardmat_multigrid_level level = {.size = sizeof level};
    OK(shardmat_solver_get_level(solver, l, &level));
    CHECK((level.unknowns == kUnknowns) == (l == 0) && level.nonzeros >= level.unknowns);
    CHECK((level.radius > 1) == (l + 1 < about.levels));
  }
  /* A cycle alone reduces the residual. */
  static double r[kUnknowns], z[kUnknowns], value[40 * kUnknowns];
  static int64_t start[kUnknowns + 1], column[40 * kUnknowns];
  for (int i = 0; i < kUnknowns; ++i) r[i] = 1 + i % 5, z[i] = -1;
  const shardmat_dense of_r = {r, info.own_rows, 1, 1, 0, SHARDMAT_F64, 0},
                       of_z = {z, info.own_rows, 1, 1, 0, SHARDMAT_F64, 0};
  OK(shardmat_solver_precondition(solver, &of_r, &of_z));
  OK(shardmat_spmv(a, -1, z, 1, r));
  double sums[2] = {0};
  for (int64_t i = 0; i < info.own_rows; ++i) sums[0] += r[i] * r[i], sums[1] += (1 + i % 5) * (1 + i % 5);
#ifdef WITH_MPI
  MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
#endif
  CHECK(sums[0] < 0.5 * sums[1]);
  shardmat_multigrid_level first = {.size = sizeof first}, second = first;
  OK(shardmat_solver_get_level(solver, 0, &first));
  OK(shardmat_solver_get_level(solver, 1, &second));
  if (feeders) {
    REFUSED(shardmat_solver_get_prolongation(solver, 0, start, column, value), SHARDMAT_USAGE, "feeders");
  } else {
    CHECK(first.prolongation_rows == info.own_rows && first.prolongation_entries <= 40 * kUnknowns);
    OK(shardmat_solver_get_prolongation(solver, 0, start, column, value));
    CHECK(start[0] == 0 && start[info.own_rows] == first.prolongation_entries);
    for (int64_t k = 0; k < first.prolongation_entries; ++k) CHECK(column[k] >= 0 && column[k] < second.unknowns);
  }
  REFUSED(shardmat_solver_get_prolongation(solver, about.levels - 1, start, column, value), SHARDMAT_USAGE,
          "no prolongation");
  shardmat_multigrid_level none = {.size = sizeof none};
  REFUSED(shardmat_solver_get_level(solver, about.levels, &none), SHARDMAT_USAGE, "no such level");
  shardmat_solver_destroy(solver);
  options.nodes += 1;
  REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, "nodes of 3 unknowns");
  options.nodes -= 1, options.dimensions = 4;
  REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, "dimensions must be 2 or 3");
  options.dimensions = 0;
  REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, "dimensions is 0");
  options.dimensions = 3, options.coordinates = NULL;
  REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, "coordinates is NULL");
  options.coordinates = xyz, options.preconditioner = "jacobi", options.settings = NULL;
  REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, "coordinates are of no use");
  options.preconditioner = "multigrid", options.settings = "coarse_size=100 inner=f64";
  if (ranks > 1) {
    options.dimensions = rank + 1 == ranks ? 0 : 3, options.coordinates = rank + 1 == ranks ? NULL : xyz;
    REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, "on this rank dimensions is");
  }

  options.coordinates = NULL, options.dimensions = 0;
  options.near_null_vectors = modes, options.near_null_count = 6;
  CHECK(llabs(cycles_of(a, &options) - with) <= 1);
  options.near_null_count = 13;
  REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, "number of near_null_vectors must be 1 to 12");
  options.near_null_count = 0;
  REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE,
          "near_null_vectors are given, but their number is 0");
  options.near_null_count = 6, options.near_null_vectors = NULL;
  REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, "near_null_vectors is NULL");
  options.near_null_vectors = modes;
  for (int64_t i = 0; i < info.own_rows; ++i) modes[6 * i + 4] = 0;
  REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_INPUT, "vector 5 of 6 is 0");
  if (info.own_rows > 0) modes[0] = NAN;
  REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_INPUT, "NaN");
  const shardmat_solver_options plain = {.size = sizeof plain};
  OK(shardmat_solver_create(a, &plain, &solver));
  OK(shardmat_solver_get_multigrid(solver, &about));
  CHECK(about.levels == 0 && about.near_null_space == NULL);
  shardmat_solver_destroy(solver);
  shardmat_matrix_destroy(a);
}
