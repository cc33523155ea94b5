/* Solves and preconditioners. */
#include "c_checks.h"

static int count_calls(void* user, int64_t iterations, const double* norms, int64_t columns) {
  if (iterations > 0 && norms != NULL && columns == 1) ++*(int*)user;
  return 0;
}

void solves(shardmat_context* context) {
  shardmat_matrix* a = make_matrix(context, NULL);
  const tridiagonal t = make_rows(48);
  double b[48], x[48] = {0}, norms[100];
  for (int64_t i = 0; i < t.rows; ++i) b[i] = ax_of(t.first + i);
  shardmat_solve_result result = {.size = sizeof result};
  OK(shardmat_solve(a, NULL, b, x, &result));
  CHECK(result.converged && result.iterations > 0 && result.iterations <= 48 &&
        strcmp(result.reason, "converged_rtol") == 0);
  for (int64_t i = 0; i < t.rows; ++i) CHECK(fabs(x[i] - x_of(t.first + i)) < 1e-6);

  int calls = 0;
  int64_t count = 0;
  shardmat_solver_options options = {.size = sizeof options,
                                     .preconditioner = "jacobi",
                                     .max_iterations = 3,
                                     .monitor = count_calls,
                                     .user = &calls,
                                     .variant = "single_reduction"};
  shardmat_solver* solver = NULL;
  OK(shardmat_solver_create(a, &options, &solver));
  memset(x, 0, sizeof x);
  const shardmat_dense of_b = {b, t.rows, 1, 1, 0, SHARDMAT_F64, 0}, of_x = {x, t.rows, 1, 1, 0, SHARDMAT_F64, 0};
  REFUSED(shardmat_solver_solve(solver, &of_b, &of_x, &result), SHARDMAT_NOT_CONVERGED, "most iterations");
  CHECK(!result.converged && result.iterations == 3 && calls > 0);
  OK(shardmat_solver_history(solver, 0, norms, 100, &count));
  CHECK(count == 4 && norms[0] > 0);
  shardmat_solver_destroy(solver);
  options.divergence_tolerance = 0.5;
  REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, "divergence_tolerance must be above 1");
  options.divergence_tolerance = 0;
  options.solver = "cg";
  options.settings = "rtol=1e-9 gram_schmidt=modified,restart=7";
  REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, "gram_schmidt is of no use with the solver cg");
  options.settings = "rtol=1e-9 gram_schmidt=modified,restart=7 solver=gmres";
  options.variant = NULL; /* of cg */
  OK(shardmat_solver_create(a, &options, &solver));
  shardmat_solver_destroy(solver);
  const char* const wrong[][2] = {{"restart=0", "restart must be a whole number from 1 to 100000, not \"0\""},
                                  {"restrat=5", "restart"},
                                  {"restart", "name=value"},
                                  {"restart=5 restart=6", "twice"},
                                  {"atol=nan", "atol must be 0 or more"},
                                  {"variant=fast", "fast"}};
  for (int i = 0; i < 6; ++i) {
    options.settings = wrong[i][0];
    REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, wrong[i][1]);
  }
  options.settings = NULL;
  CHECK(strstr(shardmat_solver_settings(), "\nrestart: ") != NULL);
  options.solver = "nonsense";
  REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, "nonsense");
  CHECK(strstr(shardmat_last_error(), "auto, cg, ") != NULL);
  CHECK(solver == NULL);
  options.solver = NULL, options.variant = "double";
  REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, "single_reduction");
  shardmat_matrix_destroy(a);
}

typedef struct {
  int applied, watched, fails; /* fails: on the last rank: 1: with a text, 2: with a number */
} calls_of_solve;

/* Half of r, and a little of the row before: not quite symmetric. */
static int apply_half(void* user, const shardmat_dense* r, const shardmat_dense* z, char* problem) {
  calls_of_solve* const calls = user;
  const double* const from = r->data;
  double* const to = z->data;
  CHECK(r->columns == 1 && r->type == SHARDMAT_F64 && !r->on_device && problem[0] == 0);
  for (int64_t i = 0; i < r->rows; ++i) to[i] = from[i] / 2 + (i > 0 ? 0.1 * from[i - 1] : 0);
  ++calls->applied;
  if (rank + 1 < ranks || !calls->fails) return SHARDMAT_OK;
  if (calls->fails == 1) strcpy(problem, "no coarse grid");
  return calls->fails == 1 ? SHARDMAT_RESOURCES : 99;
}

static int watch_x(void* user, int64_t iterations, const shardmat_dense* x) {
  calls_of_solve* const calls = user;
  CHECK(iterations == ++calls->watched && x->rows == make_rows(48).rows);
  return 0;
}

/* The program's own preconditioner, with the iterations watched. */
void takes_a_preconditioner(shardmat_context* context, int feeders) {
  shardmat_matrix* a = make_matrix(context, NULL);
  const tridiagonal t = make_rows(48);
  double b[48], x[48] = {0}, z[48];
  for (int64_t i = 0; i < t.rows; ++i) b[i] = ax_of(t.first + i);
  calls_of_solve calls = {0};
  shardmat_solver_options options = {.size = sizeof options,
                                     .solver = "cg",
                                     .rtol = 1e-11,
                                     .apply = apply_half,
                                     .apply_user = &calls,
                                     .watch = watch_x,
                                     .user = &calls};
  shardmat_solve_result result = {.size = sizeof result};
  shardmat_solver* solver = NULL;
  if (feeders) {
    REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE, "Refuse feeders");
    shardmat_matrix_destroy(a);
    return;
  }
  OK(shardmat_solver_create(a, &options, &solver));
  const shardmat_dense of_b = {b, t.rows, 1, 1, 0, SHARDMAT_F64, 0}, of_x = {x, t.rows, 1, 1, 0, SHARDMAT_F64, 0},
                       of_z = {z, t.rows, 1, 1, 0, SHARDMAT_F64, 0};
  OK(shardmat_solver_solve(solver, &of_b, &of_x, &result));
  for (int64_t i = 0; i < t.rows; ++i) CHECK(fabs(x[i] - x_of(t.first + i)) < 1e-6);
  CHECK(calls.applied >= result.iterations && calls.watched == result.iterations);
  OK(shardmat_solver_precondition(solver, &of_b, &of_z));
  for (int64_t i = 0; i < t.rows; ++i) CHECK(fabs(z[i] - b[i] / 2 - (i > 0 ? 0.1 * b[i - 1] : 0)) < 1e-14);
  calls.fails = 1;
  memset(x, 0, sizeof x);
  REFUSED(shardmat_solver_solve(solver, &of_b, &of_x, &result), SHARDMAT_RESOURCES, "no coarse grid");
  calls.fails = 2;
  REFUSED(shardmat_solver_precondition(solver, &of_b, &of_z), SHARDMAT_INTERNAL, "returned 99");
  shardmat_solver_destroy(solver);
  calls.fails = 0;
  options.solver = "bicgstab", options.watch = NULL;
  REFUSED(shardmat_solve(a, &options, b, x, &result), SHARDMAT_USAGE, "linear");
  options.apply_is_linear = 1;
  OK(shardmat_solve(a, &options, b, x, &result));
  options.preconditioner = "jacobi";
  REFUSED(shardmat_solve(a, &options, b, x, &result), SHARDMAT_USAGE, "both jacobi and");
  options.preconditioner = NULL;
  if (rank == 0) options.apply = NULL;
  if (ranks > 1) REFUSED(shardmat_solve(a, &options, b, x, &result), SHARDMAT_USAGE, "apply is");
  shardmat_matrix_destroy(a);
}

static int64_t iterations_of(shardmat_matrix* a, const char* preconditioner, int node_block_size) {
  const tridiagonal t = make_rows(48);
  double b[48] = {0}, x[48] = {0};
  for (int64_t i = 0; i < t.rows; ++i) b[i] = ax_of(t.first + i);
  const shardmat_solver_options options = {
      .size = sizeof options, .preconditioner = preconditioner, .node_block_size = node_block_size};
  shardmat_solve_result result = {.size = sizeof result};
  OK(shardmat_solve(a, &options, b, x, &result));
  for (int64_t i = 0; i < t.rows; ++i) CHECK(fabs(x[i] - x_of(t.first + i)) < 1e-6);
  return result.iterations;
}

static int64_t node_block_size_of(shardmat_matrix* a) {
  shardmat_matrix_info info = {.size = sizeof info};
  OK(shardmat_matrix_get_info(a, &info));
  return info.node_block_size;
}

/* The unknowns of a node are given with the matrix, whose rows stay or are spread anew. */
void keeps_nodes_whole(shardmat_context* context) {
  const char* const methods[] = {NULL, "nnz", "rows"};
  for (int i = 0; i < 3; ++i) {
    shardmat_matrix_options options = {.size = sizeof options, .method = methods[i], .node_block_size = 4};
    shardmat_matrix* a = make_matrix(context, &options);
    CHECK(node_block_size_of(a) == 4);
    const int64_t of_blocks = iterations_of(a, "block_jacobi", 0), of_one = iterations_of(a, "block_jacobi", 1);
    CHECK(of_blocks == iterations_of(a, "block_jacobi", 4) && of_one == iterations_of(a, "jacobi", 0));
    CHECK(of_blocks < of_one);
    const shardmat_solver_options no = {.size = sizeof no, .preconditioner = "block_jacobi", .node_block_size = 5};
    shardmat_solver* solver = NULL;
    REFUSED(shardmat_solver_create(a, &no, &solver), SHARDMAT_USAGE, "48 rows are no whole number of nodes of 5");
    shardmat_matrix_destroy(a);
    const tridiagonal t = make_rows(48);
    const shardmat_rows rows = rows_of(&t);
    options.node_block_size = 5;
    REFUSED(shardmat_matrix_from_rows(context, &rows, &options, &a), SHARDMAT_USAGE,
            "48 rows are no whole number of nodes of 5");
    options.node_block_size = -1;
    REFUSED(shardmat_matrix_from_rows(context, &rows, &options, &a), SHARDMAT_USAGE, "node_block_size");
    options.node_block_size = 0; /* a line has none: found in the pattern */
    a = make_matrix(context, &options);
    CHECK(iterations_of(a, "block_jacobi", 0) == of_one && node_block_size_of(a) == 1);
    shardmat_matrix_destroy(a);
  }
  const shardmat_matrix_options of_file = {.size = sizeof of_file, .node_block_size = 5};
  shardmat_matrix* a = NULL;
  REFUSED(shardmat_matrix_from_file(context, "poisson7:n=4", &of_file, &a), SHARDMAT_USAGE, "64 rows are no whole number");
  OK(shardmat_matrix_from_file(context, "elasticity:n=3", NULL, &a)); /* found */
  CHECK(node_block_size_of(a) == 3);
  shardmat_matrix_destroy(a);
}

/* A tolerance of 0 means one that the type of the matrix can reach. */
void solves_in_f32(shardmat_context* context) {
  shardmat_matrix_options in_f32 = {.size = sizeof in_f32, .type = "f32"};
  shardmat_matrix* a = make_matrix(context, &in_f32);
  float b[48], x[48] = {0};
  for (int i = 0; i < 48; ++i) b[i] = (float)((i % 2 == 0 ? 1 : -1) * (1 + i % 5));
  shardmat_solve_result result = {.size = sizeof result};
  OK(shardmat_solve(a, NULL, b, x, &result));
  CHECK(result.converged && result.true_residual <= 1e-5 * result.norm_of_b);
  shardmat_solver_options options = {.size = sizeof options, .rtol = 1e-12};
  OK(shardmat_solve(a, &options, b, x, &result)); /* as near as rounding errors allow */
  CHECK(result.converged && strcmp(result.reason, "converged_attainable") == 0 && result.true_residual <= result.floor);
  options.rtol = -1; /* none */
  options.max_iterations = 2;
  CHECK(shardmat_solve(a, &options, b, x, &result) == SHARDMAT_NOT_CONVERGED && !result.converged);
  shardmat_matrix_destroy(a);
}

/* Rows 5 and 40 state known values by huge diagonals. The other rows follow: x_of() solves all of them. */
void takes_penalty_rows(shardmat_context* context) {
  tridiagonal t = make_rows(48);
  double b[48], x[48] = {0};
  for (int64_t i = 0; i < t.rows; ++i) {
    const int64_t row = t.first + i;
    b[i] = ax_of(row);
    if (row != 5 && row != 40) continue;
    for (int64_t k = t.row_ptr[i]; k < t.row_ptr[i + 1]; ++k)
      if (t.columns[k] == row) t.values[k] = row == 5 ? 1e30 : 3e30;
    b[i] = (row == 5 ? 1e30 : 3e30) * x_of(row);
  }
  const shardmat_rows rows = rows_of(&t);
  shardmat_matrix_options half = {.size = sizeof half, .storage = on_host() ? "symmetric" : "general"};
  shardmat_matrix *a = NULL, *none = make_matrix(context, NULL);
  shardmat_solve_result result = {.size = sizeof result};
  const char* const choices[] = {NULL, "auto", "known"};
  for (int choice = 0; choice < 6; ++choice) {
    OK(shardmat_matrix_from_rows(context, &rows, choice < 3 ? NULL : &half, &a));
    shardmat_solver_options options = {.size = sizeof options, .rtol = 1e-12, .penalty_rows = choices[choice % 3]};
    memset(x, 0, sizeof x);
    OK(shardmat_solve(a, &options, b, x, &result));
    CHECK(result.penalty_rows == 2 && result.penalty_ratio >= 1e29 && result.iterations > 5);
    for (int64_t i = 0; i < t.rows; ++i) CHECK(fabs(x[i] - x_of(t.first + i)) < 1e-9);
    options.penalty_rows = "keep"; /* the norm of b hides the other rows: nothing is left to do after one iteration */
    memset(x, 0, sizeof x);
    shardmat_solve(a, &options, b, x, &result);
    CHECK(result.penalty_rows == 0 && result.iterations < 5);
    shardmat_matrix_destroy(a);
  }
  shardmat_solver_options options = {.size = sizeof options, .penalty_rows = "known"};
  shardmat_solver* solver = NULL;
  REFUSED(shardmat_solver_create(none, &options, &solver), SHARDMAT_USAGE, "no penalty rows");
  options.penalty_rows = "perhaps";
  REFUSED(shardmat_solver_create(none, &options, &solver), SHARDMAT_USAGE, "choose among keep, known, auto");
  CHECK(solver == NULL);
  shardmat_matrix_destroy(none);
}

/* A restart that no memory holds. */
void refuses_restarts(shardmat_context* context) {
  shardmat_matrix* a = make_matrix(context, NULL);
  const int64_t restarts[] = {100001, INT64_C(1) << 32, INT64_C(1) << 61, INT64_MAX};
  const char* const solvers[] = {"gmres", "fgmres"};
  shardmat_solver* solver = NULL;
  for (int i = 0; i < 4; ++i)
    for (int s = 0; s < 2; ++s) {
      const shardmat_solver_options options = {.size = sizeof options, .solver = solvers[s], .restart = restarts[i]};
      REFUSED(shardmat_solver_create(a, &options, &solver), SHARDMAT_USAGE,
              "restart must be a whole number from 1 to 100000");
      CHECK(solver == NULL);
    }
  shardmat_matrix_destroy(a);
}
