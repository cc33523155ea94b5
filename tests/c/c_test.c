/* The C interface from C, on one process without MPI: c_test; or with MPI on any number of ranks: c_test_mpi. On the host,
 * or with TEST_BACKEND=cuda on GPUs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shardmat_mpi.h"

static int rank = 0, ranks = 1, failures = 0;
static int feeder = 0; /* in the context at hand */

static const char* backend(void) { return getenv("TEST_BACKEND") != NULL ? getenv("TEST_BACKEND") : "host"; }
static int on_host(void) { return strcmp(backend(), "host") == 0; }

#define CHECK(condition)                                                                                         \
  do {                                                                                                           \
    if (!(condition)) {                                                                                          \
      fprintf(stderr, "rank %d: %s:%d: %s (%s)\n", rank, __FILE__, __LINE__, #condition, shardmat_last_error()); \
      ++failures;                                                                                                \
    }                                                                                                            \
  } while (0)
#define OK(call) CHECK((call) == SHARDMAT_OK)
#define REFUSED(call, status, words)                       \
  do {                                                     \
    CHECK((call) == (status));                             \
    CHECK(strstr(shardmat_last_error(), (words)) != NULL); \
  } while (0)

/* This rank's rows of the matrix with 2 on the diagonal and -1 beside it. */
typedef struct {
  int64_t first, rows, n, row_ptr[65], columns[192];
  double values[192];
} tridiagonal;

static tridiagonal make_rows(int64_t n) {
  tridiagonal t = {.n = n};
  t.first = n * rank / ranks;
  t.rows = n * (rank + 1) / ranks - t.first;
  int64_t k = 0;
  for (int64_t i = 0; i < t.rows; ++i) {
    const int64_t row = t.first + i;
    t.row_ptr[i] = k;
    if (row > 0) t.columns[k] = row - 1, t.values[k++] = -1;
    t.columns[k] = row, t.values[k++] = 2;
    if (row + 1 < n) t.columns[k] = row + 1, t.values[k++] = -1;
  }
  t.row_ptr[t.rows] = k;
  return t;
}

static double x_of(int64_t i) { return i < 0 || i >= 48 ? 0 : (double)(i * i % 7) - 2; }
static double ax_of(int64_t i) { return 2 * x_of(i) - x_of(i - 1) - x_of(i + 1); }

static shardmat_rows rows_of(const tridiagonal* t) {
  return (shardmat_rows){.size = sizeof(shardmat_rows),
                         .first_row = t->first,
                         .rows = t->rows,
                         .cols = t->n,
                         .row_ptr = t->row_ptr,
                         .columns = t->columns,
                         .values = t->values,
                         .value_type = SHARDMAT_F64};
}

static shardmat_matrix* make_matrix(shardmat_context* context, const shardmat_matrix_options* options) {
  const tridiagonal t = make_rows(48);
  const shardmat_rows rows = rows_of(&t);
  shardmat_matrix* matrix = NULL;
  OK(shardmat_matrix_from_rows(context, &rows, options, &matrix));
  return matrix;
}

static void multiplies(shardmat_context* context) {
  shardmat_matrix* a = make_matrix(context, NULL);
  shardmat_matrix_info info = {.size = sizeof info};
  OK(shardmat_matrix_get_info(a, &info));
  CHECK(info.rows == 48 && info.nnz == 142 && info.type == SHARDMAT_F64 && info.own_rows == make_rows(48).rows);
  int64_t ids[48];
  OK(shardmat_matrix_row_ids(a, ids));
  double x[48 * 3], y[48 * 3];
  for (int64_t i = 0; i < info.own_rows; ++i) {
    CHECK(ids[i] == make_rows(48).first + i);
    x[i] = x_of(ids[i]), y[i] = 100;
  }
  OK(shardmat_spmv(a, 1, x, 0, y));
  for (int64_t i = 0; i < info.own_rows; ++i) CHECK(y[i] == ax_of(ids[i]));
  OK(shardmat_spmv(a, 2, x, -1, y));
  for (int64_t i = 0; i < info.own_rows; ++i) CHECK(y[i] == ax_of(ids[i]));
  for (int64_t i = 0; i < info.own_rows; ++i)
    for (int j = 0; j < 3; ++j) x[3 * i + j] = (j + 1) * x_of(ids[i]);
  OK(shardmat_spmm(a, 3, 1, x, 0, y));
  for (int64_t i = 0; i < info.own_rows; ++i)
    for (int j = 0; j < 3; ++j) CHECK(y[3 * i + j] == (j + 1) * ax_of(ids[i]));

  shardmat_product* product = NULL;
  OK(shardmat_product_create(a, 2, NULL, &product));
  shardmat_dense of_x = {x, info.own_cols, 2, 2, 0, SHARDMAT_F64, 0}, of_y = {y, info.own_rows, 2, 2, 0, SHARDMAT_F64, 0};
  for (int64_t i = 0; i < info.own_rows; ++i) x[2 * i] = x_of(ids[i]), x[2 * i + 1] = 1;
  OK(shardmat_product_multiply(product, 1, &of_x, 0, &of_y, NULL));
  for (int64_t i = 0; i < info.own_rows; ++i) CHECK(y[2 * i] == ax_of(ids[i]) && y[2 * i + 1] == (ids[i] % 47 == 0 ? 1 : 0));
  shardmat_product_info about = {.size = sizeof about};
  OK(shardmat_product_get_info(product, &about));
  CHECK(about.columns == 2 && strlen(about.kernel) > 0 && (ranks > 1 || strcmp(about.exchange, "none") == 0));
  /* X and Y by columns, with gaps that stay as they are. */
  double wide[2 * 50], result[2 * 50];
  for (int i = 0; i < 100; ++i) wide[i] = result[i] = -7;
  for (int64_t i = 0; i < info.own_rows; ++i) wide[i] = x_of(ids[i]), wide[50 + i] = 1;
  shardmat_product_options by_columns = {.size = sizeof by_columns, .column_major_y = 1};
  shardmat_product* other = NULL;
  OK(shardmat_product_create(a, 2, &by_columns, &other));
  shardmat_dense w = {wide, info.own_rows, 2, 50, 1, SHARDMAT_F64, 0},
                 r = {result, info.own_rows, 2, 50, 1, SHARDMAT_F64, 0};
  OK(shardmat_product_multiply(other, 1, &w, 0, &r, NULL));
  OK(shardmat_product_multiply(other, 1, &w, 2, &r, NULL));
  for (int64_t i = 0; i < 50; ++i) CHECK(result[i] == (i < info.own_rows ? 3 * ax_of(ids[i]) : -7));
  for (int64_t i = 0; i < 50; ++i) CHECK(result[50 + i] == (i >= info.own_rows ? -7 : ids[i] % 47 == 0 ? 3 : 0));
  shardmat_product_destroy(other);
  of_x.type = SHARDMAT_F32;
  REFUSED(shardmat_product_multiply(product, 1, &of_x, 0, &of_y, NULL), SHARDMAT_USAGE, "f32");
  of_x.type = SHARDMAT_F64, of_x.on_device = 1;
  if (on_host()) REFUSED(shardmat_product_multiply(product, 1, &of_x, 0, &of_y, NULL), SHARDMAT_USAGE, "works on the host");
  of_x.on_device = 0;
  shardmat_matrix_destroy(a); /* the product keeps what it needs */
  of_x.type = SHARDMAT_F64;
  OK(shardmat_product_multiply(product, 1, &of_x, 0, &of_y, NULL));
  shardmat_product_destroy(product);
}

/* 3 on the diagonal and row + 1 to the right of it: not symmetric. New values: twice as much. */
static void multiplies_the_transpose(shardmat_context* context) {
  const int64_t n = 53, first = n * rank / ranks, mine = n * (rank + 1) / ranks - first;
  int64_t row_ptr[54] = {0}, columns[106], ids[53];
  double values[106], x[53], y[53], wide[2 * 60], result[2 * 60];
  int64_t k = 0;
  for (int64_t i = 0; i < mine; ++i) {
    columns[k] = first + i, values[k++] = 3;
    if (first + i + 1 < n) columns[k] = first + i + 1, values[k++] = (double)(first + i + 1);
    row_ptr[i + 1] = k;
  }
  shardmat_rows rows = {.size = sizeof rows, .first_row = first, .rows = mine, .cols = n, .row_ptr = row_ptr,
                        .columns = columns, .values = values, .value_type = SHARDMAT_F64};
  shardmat_matrix_options options = {.size = sizeof options, .updatable = 1};
  shardmat_matrix* a = NULL;
  OK(shardmat_matrix_from_rows(context, &rows, &options, &a));
  OK(shardmat_matrix_row_ids(a, ids));
#define X_OF(i) (0.25 * (double)((i) * 7 % 11) - 1)
#define ATX_OF(j) (3 * X_OF(j) + ((j) > 0 ? (double)(j)*X_OF((j)-1) : 0))
  for (int64_t i = 0; i < mine; ++i) x[i] = X_OF(ids[i]), y[i] = -9;
  OK(shardmat_spmv_transposed(a, 1, x, 0, y));
  for (int64_t i = 0; i < mine; ++i) CHECK(y[i] == ATX_OF(ids[i]));
  OK(shardmat_spmv_transposed(a, 2, x, -1, y));
  for (int64_t i = 0; i < mine; ++i) CHECK(y[i] == ATX_OF(ids[i]));
  /* Two columns, column-major and with gaps. */
  for (int i = 0; i < 120; ++i) wide[i] = result[i] = -7;
  for (int64_t i = 0; i < mine; ++i) wide[i] = X_OF(ids[i]), wide[60 + i] = 2 * X_OF(ids[i]);
  shardmat_product_options turned = {.size = sizeof turned, .transposed = 1};
  shardmat_product* product = NULL;
  OK(shardmat_product_create(a, 2, &turned, &product));
  shardmat_dense w = {wide, mine, 2, 60, 1, SHARDMAT_F64, 0}, r = {result, mine, 2, 60, 1, SHARDMAT_F64, 0};
  OK(shardmat_product_multiply(product, 1, &w, 0, &r, NULL));
  for (int64_t i = 0; i < 60; ++i) CHECK(result[i] == (i < mine ? ATX_OF(ids[i]) : -7));
  for (int64_t i = 0; i < 60; ++i) CHECK(result[60 + i] == (i < mine ? 2 * ATX_OF(ids[i]) : -7));
  shardmat_product_info about = {.size = sizeof about};
  OK(shardmat_product_get_info(product, &about));
  CHECK(about.columns == 2 && strlen(about.kernel) > 0 && strlen(about.exchange) > 0);
  void* slot = &slot;
  OK(shardmat_product_x(product, &slot));
  CHECK(slot == NULL);
  for (int64_t i = 0; i < k; ++i) values[i] *= 2;
  OK(shardmat_matrix_update_values(a, values, k, SHARDMAT_F64, 0, NULL));
  OK(shardmat_spmm_transposed(a, 1, 1, x, 0, y));
  for (int64_t i = 0; i < mine; ++i) CHECK(y[i] == 2 * ATX_OF(ids[i]));
  OK(shardmat_product_multiply(product, 1, &w, 0, &r, NULL));
  for (int64_t i = 0; i < mine; ++i) CHECK(result[i] == 2 * ATX_OF(ids[i]));
  w.rows = mine + 1;
  REFUSED(shardmat_product_multiply(product, 1, &w, 0, &r, NULL), SHARDMAT_USAGE, "X is");
  shardmat_product_destroy(product);
  turned.kernel = "csr_host";
  REFUSED(shardmat_product_create(a, 2, &turned, &product), SHARDMAT_USAGE, "neither kernel nor exchange");
  shardmat_matrix_destroy(a);
}

static void takes_triplets_and_new_values(shardmat_context* context) {
  /* Every rank gives all entries of the diagonal, which are summed over the ranks. */
  int64_t row[48];
  double values[48], x[48], y[48];
  for (int64_t i = 0; i < 48; ++i) row[i] = i, values[i] = 1 + (double)i, x[i] = 1;
  const tridiagonal t = make_rows(48);
  shardmat_triplets triplets = {.size = sizeof triplets,
                                .first_row = t.first,
                                .rows = t.rows,
                                .cols = 48,
                                .count = 48,
                                .row = row,
                                .column = row,
                                .values = values,
                                .value_type = SHARDMAT_F64};
  shardmat_matrix_options options = {.size = sizeof options, .updatable = 1};
  shardmat_matrix* a = NULL;
  OK(shardmat_matrix_from_triplets(context, &triplets, &options, &a));
  OK(shardmat_spmv(a, 1, x, 0, y));
  for (int64_t i = 0; i < t.rows; ++i) CHECK(y[i] == ranks * (1 + (double)(t.first + i)));
  for (int64_t i = 0; i < 48; ++i) values[i] = 3;
  OK(shardmat_matrix_update_values(a, values, 48, SHARDMAT_F64, 0, NULL));
  OK(shardmat_spmv(a, 1, x, 0, y));
  for (int64_t i = 0; i < t.rows; ++i) CHECK(y[i] == 3 * ranks);
  REFUSED(shardmat_matrix_update_values(a, values, 7, SHARDMAT_F64, 0, NULL), SHARDMAT_USAGE, "7");
  values[5] = rank + 1 == ranks ? NAN : 3; /* wrong on one rank, refused on all */
  REFUSED(shardmat_matrix_update_values(a, values, 48, SHARDMAT_F64, 0, NULL), SHARDMAT_INPUT, "is NaN or infinity");
  shardmat_matrix_destroy(a);
}

/* The last rank has no rows, and nothing to say of their type. Then it has some, of another type. */
static void types_of_all_ranks(shardmat_context* context) {
  if (ranks == 1) return;
  const int last = rank + 1 == ranks;
  const int64_t own = last ? 0 : 2, first = 2 * rank, row_ptr[] = {0, 1, 2}, columns[] = {first, first + 1};
  const double values[] = {2, 3};
  shardmat_rows rows = {.size = sizeof rows,
                        .first_row = first,
                        .rows = own,
                        .cols = 2 * (ranks - 1),
                        .row_ptr = row_ptr,
                        .columns = columns,
                        .values = values,
                        .value_type = last ? SHARDMAT_F32 : SHARDMAT_F64};
  shardmat_matrix* a = NULL;
  OK(shardmat_matrix_from_rows(context, &rows, NULL, &a));
  shardmat_matrix_info info = {.size = sizeof info};
  OK(shardmat_matrix_get_info(a, &info));
  CHECK(info.type == SHARDMAT_F64);
  const double x[] = {1, 10};
  double y[2] = {0, 0};
  OK(shardmat_spmv(a, 1, x, 0, y));
  CHECK(last || (y[0] == 2 && y[1] == 30));
  shardmat_product* product = NULL;
  REFUSED(shardmat_product_create(a, last ? 3 : 2, NULL, &product), SHARDMAT_USAGE, "columns");
  CHECK(product == NULL);
  shardmat_matrix_destroy(a);
  rows.rows = 2, rows.cols = 2 * ranks;
  REFUSED(shardmat_matrix_from_rows(context, &rows, NULL, &a), SHARDMAT_USAGE, "type");
}

static int count_calls(void* user, int64_t iterations, const double* norms, int64_t columns) {
  if (iterations > 0 && norms != NULL && columns == 1) ++*(int*)user;
  return 0;
}

static void solves(shardmat_context* context) {
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
static void takes_a_preconditioner(shardmat_context* context, int feeders) {
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
static void keeps_nodes_whole(shardmat_context* context) {
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
static void solves_in_f32(shardmat_context* context) {
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
static void takes_penalty_rows(shardmat_context* context) {
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

/* Symmetric within rounding: half is stored, with the means; more than this is refused. */
static void stores_half(shardmat_context* context) {
  const shardmat_matrix_options half = {.size = sizeof half, .storage = "symmetric"};
  double x[48], y[48], expected = 0;
  for (int more = 0; more < 2; ++more) {
    tridiagonal t = make_rows(48);
    for (int64_t i = 0; i < t.rows; ++i)
      for (int64_t k = t.row_ptr[i]; k < t.row_ptr[i + 1]; ++k)
        if (t.columns[k] == t.first + i + 1) t.values[k] *= 1 + (more ? 1e-6 : 4e-12);
    const shardmat_rows rows = rows_of(&t);
    shardmat_matrix* a = NULL;
    if (more || !on_host()) {
      REFUSED(shardmat_matrix_from_rows(context, &rows, &half, &a), on_host() ? SHARDMAT_INPUT : SHARDMAT_USAGE,
              on_host() ? "entry (0, 1) is -1.000001, but entry (1, 0) is -1 " : "for the host");
      continue;
    }
    OK(shardmat_matrix_from_rows(context, &rows, &half, &a));
    for (int64_t i = 0; i < t.rows; ++i) x[i] = x_of(t.first + i);
    OK(shardmat_spmv(a, 1, x, 0, y));
    for (int64_t i = 0; i < t.rows; ++i) {
      const int64_t row = t.first + i;
      expected = 2 * x_of(row) - (1 + 2e-12) * (x_of(row - 1) + x_of(row + 1));
      CHECK(fabs(y[i] - expected) < 1e-14);
    }
    shardmat_matrix_destroy(a);
  }
}

/* Known values in the rows 5 (named by every rank) and 40 (by the last): the other rows follow, with the same solution. */
static void zeroes_rows_and_columns(shardmat_context* context) {
  shardmat_matrix_options options = {.size = sizeof options, .updatable = 1};
  shardmat_matrix* a = make_matrix(context, &options);
  const tridiagonal t = make_rows(48);
  const int64_t rows[] = {5, 40, 5};
  double x[48], b[48], y[48];
  for (int64_t i = 0; i < t.rows; ++i) x[i] = x_of(t.first + i), b[i] = ax_of(t.first + i);
  OK(shardmat_matrix_zero_rows_columns(a, rows, rank + 1 == ranks ? 3 : 1, 4, x, b));
  OK(shardmat_spmv(a, 1, x, 0, y));
  for (int64_t i = 0; i < t.rows; ++i) {
    const int64_t row = t.first + i;
    const int zeroed = row == 5 || row == 40;
    double expected = 4 * x_of(row);
    if (!zeroed)
      expected = 2 * x_of(row) - (row == 6 || row == 41 ? 0 : x_of(row - 1)) - (row == 4 || row == 39 ? 0 : x_of(row + 1));
    CHECK(y[i] == expected); /* the new matrix */
    CHECK(b[i] == expected); /* and the new right-hand side, which has the same solution */
  }
  const int64_t beyond = 48;
  REFUSED(shardmat_matrix_zero_rows_columns(a, &beyond, rank == 0 ? 1 : 0, 1, NULL, NULL), SHARDMAT_USAGE, "row 48");
  REFUSED(shardmat_matrix_zero_rows_columns(a, rows, 1, NAN, NULL, NULL), SHARDMAT_INPUT, "diagonal is NaN");
  shardmat_matrix_destroy(a);
  a = make_matrix(context, NULL);
  REFUSED(shardmat_matrix_zero_rows_columns(a, rows, 1, 1, NULL, NULL), SHARDMAT_USAGE, "updatable");
  shardmat_matrix_destroy(a);
}

static void refuses(shardmat_context* context) {
  const tridiagonal t = make_rows(48);
  shardmat_matrix* a = NULL;
  shardmat_rows rows = {.size = sizeof rows,
                        .first_row = t.first,
                        .rows = t.rows,
                        .cols = 3,
                        .row_ptr = t.row_ptr,
                        .columns = t.columns,
                        .values = t.values,
                        .value_type = SHARDMAT_F64};
  REFUSED(shardmat_matrix_from_rows(context, &rows, NULL, &a), SHARDMAT_INPUT, "column");
  CHECK(a == NULL);
  rows.size = 3;
  REFUSED(shardmat_matrix_from_rows(context, &rows, NULL, &a), SHARDMAT_USAGE, "sizeof(shardmat_rows)");
  struct {
    shardmat_matrix_options known;
    int64_t later;
  } newer;
  memset(&newer, 0, sizeof newer);
  newer.known.size = sizeof newer;
  a = make_matrix(context, &newer.known); /* a later header, nothing new asked for */
  shardmat_matrix_destroy(a);
  newer.later = 1;
  rows.size = sizeof rows, rows.cols = 48;
  REFUSED(shardmat_matrix_from_rows(context, &rows, &newer.known, &a), SHARDMAT_USAGE, "later libshardmat");
  REFUSED(shardmat_matrix_from_file(context, "/nonexistent/a.mtx", NULL, &a), SHARDMAT_INPUT, "/nonexistent/a.mtx");
  REFUSED(shardmat_spmv(NULL, 1, NULL, 0, NULL), SHARDMAT_USAGE, "NULL");
  shardmat_matrix_options wrong = {.size = sizeof wrong, .columns = -1};
  REFUSED(shardmat_matrix_from_rows(context, &rows, &wrong, &a), SHARDMAT_USAGE, "columns");
  wrong.columns = 0, wrong.products = NAN;
  REFUSED(shardmat_matrix_from_rows(context, &rows, &wrong, &a), SHARDMAT_USAGE, "products");
  wrong.products = 0, wrong.transposed = 1;
  REFUSED(shardmat_matrix_from_rows(context, &rows, &wrong, &a), SHARDMAT_USAGE, "transposed");
  shardmat_matrix_destroy(NULL);
}

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
static void takes_null_vectors(shardmat_context* context) {
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
static void takes_coordinates(shardmat_context* context, int feeders) {
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

/* A restart that no memory holds. */
static void refuses_restarts(shardmat_context* context) {
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

/* A kernel that does not exist is refused where it is named, with the names that exist. If one rank alone names it, all
 * ranks are told that their options differ. */
static void refuses_kernels_of(shardmat_context* context, const char* some, int differ) {
  const char* const known = differ ? "on this rank kernel is" : on_host() ? "csr_host" : "csr_vector";
  const tridiagonal t = make_rows(48);
  shardmat_matrix_options options = {.size = sizeof options, .kernel = some};
  const shardmat_rows rows = rows_of(&t);
  shardmat_matrix* a = NULL;
  REFUSED(shardmat_matrix_from_rows(context, &rows, &options, &a), SHARDMAT_USAGE, "nonsense");
  CHECK(a == NULL && strstr(shardmat_last_error(), known) != NULL);
  REFUSED(shardmat_matrix_from_file(context, "/nonexistent/a.mtx", &options, &a), SHARDMAT_USAGE, known);
  a = make_matrix(context, NULL);
  const shardmat_product_options of_product = {.size = sizeof of_product, .kernel = some};
  shardmat_product* product = NULL;
  for (int64_t columns = 1; columns < 3; ++columns) {
    REFUSED(shardmat_product_create(a, columns, &of_product, &product), SHARDMAT_USAGE, "nonsense");
    CHECK(product == NULL && strstr(shardmat_last_error(), differ ? "on this rank kernel is" : "there are ") != NULL);
  }
  OK(shardmat_product_create(a, 1, NULL, &product)); /* everything stays usable */
  shardmat_product_destroy(product);
  shardmat_matrix_destroy(a);
}
static void refuses_kernels(shardmat_context* context) {
  refuses_kernels_of(context, "nonsense", 0);
  if (ranks > 1) refuses_kernels_of(context, rank + 1 == ranks ? "nonsense" : NULL, 1);
}

static void multiplies_batches(shardmat_context* context) {
  const int64_t first_row[] = {0, 2, 3}, first_col[] = {0, 2, 3}, first_entry[] = {0, 2, 3};
  const int32_t row_ptr[] = {0, 1, 2, 3}, col_idx[] = {1, 0, 0};
  const float values[] = {2, 3, 4};
  float x[] = {1, 2, 10, 20, 100, 200}, y[6];
  const shardmat_batch batch = {7, SHARDMAT_F32, 2, first_row, first_col, first_entry, row_ptr, NULL, col_idx, values};
  shardmat_batch_product* product = NULL;
  if (feeder) {
    REFUSED(shardmat_batch_product_create(context, &batch, 2, NULL, &product), SHARDMAT_USAGE, "no device of its own");
    return;
  }
  OK(shardmat_batch_product_create(context, &batch, 2, NULL, &product));
  CHECK(strlen(shardmat_batch_product_kernel(product)) > 0);
  shardmat_dense of_x = {x, 3, 2, 2, 0, SHARDMAT_F32, 0}, of_y = {y, 3, 2, 2, 0, SHARDMAT_F32, 0};
  OK(shardmat_batch_product_multiply(product, 1, &of_x, 0, &of_y, NULL));
  CHECK(y[0] == 20 && y[1] == 40 && y[2] == 3 && y[3] == 6 && y[4] == 400 && y[5] == 800);
  of_x.rows = 2;
  REFUSED(shardmat_batch_product_multiply(product, 1, &of_x, 0, &of_y, NULL), SHARDMAT_USAGE, "3 × 2");
  shardmat_batch_product_destroy(product);
  const int32_t beyond[] = {2, 0, 0};
  const shardmat_batch wrong = {7, SHARDMAT_F32, 2, first_row, first_col, first_entry, row_ptr, NULL, beyond, values};
  REFUSED(shardmat_batch_product_create(context, &wrong, 2, NULL, &product), SHARDMAT_INPUT, "matrix 0");
  CHECK(product == NULL);
}

static void ranks_vertices(shardmat_context* context) {
  double scores[64], seeds[64] = {1}, sum = 0;
  int64_t rows = 0, cols = 0;
  OK(shardmat_file_shape(context, "poisson7:n=4", &rows, &cols));
  CHECK(rows == 64 && cols == 64);
  shardmat_pagerank_result result = {.size = sizeof result};
  shardmat_pagerank_options options = {.size = sizeof options, .unweighted = 1};
  OK(shardmat_pagerank_of_file(context, "poisson7:n=4", &options, NULL, rank == 0 ? scores : NULL, &result));
  CHECK(result.converged && result.dangling == 0 && result.iterations > 1);
  for (int i = 0; i < 64 && rank == 0; ++i) sum += scores[i];
  CHECK(rank != 0 || fabs(sum - 1) < 1e-9);
  OK(shardmat_pagerank_of_file(context, "poisson7:n=4", &options, rank == 0 ? seeds : NULL, rank == 0 ? scores : NULL,
                               NULL));
  CHECK(rank != 0 || scores[0] > 4 * scores[63]);
  options.max_iterations = 1;
  REFUSED(shardmat_pagerank_of_file(context, "poisson7:n=4", &options, rank == 0 ? seeds : NULL, rank == 0 ? scores : NULL,
                                    &result),
          SHARDMAT_NOT_CONVERGED, "change");
  CHECK(result.converged == 0 && result.iterations == 1);
}

static void finds_eigenvalues(shardmat_context* context, int feeders) {
  shardmat_matrix *k = NULL, *m = NULL;
  OK(shardmat_matrix_from_file(context, "elasticity:n=4", NULL, &k));
  OK(shardmat_matrix_from_file(context, "mass:n=4", NULL, &m));
  shardmat_matrix_info info = {.size = sizeof info};
  OK(shardmat_matrix_get_info(k, &info));
  double values[9], again[9], *vectors = calloc((size_t)info.own_rows * 9 + 1, sizeof *vectors);
  shardmat_eigen_result result = {.size = sizeof result};
  shardmat_eigen_options options = {.size = sizeof options, .count = 9, .method = "lobpcg"};
  if (feeders) {
    REFUSED(shardmat_eigen(k, m, &options, values, vectors, &result), SHARDMAT_USAGE, "no feeders");
    free(vectors);
    shardmat_matrix_destroy(m), shardmat_matrix_destroy(k);
    return;
  }
  OK(shardmat_eigen(k, m, &options, values, vectors, &result));
  CHECK(result.converged && result.count == 9 && result.zero_modes == 6 && result.orthogonality < 1e-10);
  CHECK(fabs(values[5]) < 1e-9 * values[6] && values[6] > 0 && values[8] >= values[7] && values[7] >= values[6]);
  options.x0 = vectors, options.x0_columns = 9;
  int64_t iterations = result.iterations;
  OK(shardmat_eigen(k, m, &options, again, NULL, &result));
  CHECK(result.iterations < iterations && fabs(again[8] - values[8]) < 1e-9 * values[8]);
  shardmat_eigen_options near = {.size = sizeof near, .count = 3, .shift = values[7] * 1.001, .has_shift = 1};
  OK(shardmat_eigen(k, m, &near, again, NULL, &result)); /* MUMPS on several ranks wants MPI_THREAD_MULTIPLE: else MINRES */
  CHECK(result.missing <= 0 && fabs(again[1] - values[7]) < 1e-8 * values[7] && again[2] >= again[1]);
  near.inner = "minres";
  OK(shardmat_eigen(k, m, &near, again, NULL, &result));
  CHECK(result.missing < 0 && fabs(again[1] - values[7]) < 1e-8 * values[7]);
  near.inner = "qr";
  REFUSED(shardmat_eigen(k, m, &near, again, NULL, &result), SHARDMAT_USAGE, "inner must be");
  if (ranks > 1) {
    near.inner = "factors";
    REFUSED(shardmat_eigen(k, m, &near, again, NULL, &result), SHARDMAT_RESOURCES, "MPI_THREAD_MULTIPLE");
  }
  const shardmat_eigen_options large = {.size = sizeof large, .count = 2, .which = "largest"};
  OK(shardmat_eigen(k, NULL, &large, again, NULL, NULL));
  CHECK(again[1] >= again[0] && again[0] > 0);
  options.max_iterations = 1, options.x0 = NULL, options.x0_columns = 0, options.tolerance = 1e-13;
  REFUSED(shardmat_eigen(k, m, &options, again, NULL, &result), SHARDMAT_NOT_CONVERGED, "tolerance");
  options.which = "both";
  REFUSED(shardmat_eigen(k, m, &options, again, NULL, &result), SHARDMAT_USAGE, "smallest");
  REFUSED(shardmat_eigen(k, m, NULL, NULL, NULL, NULL), SHARDMAT_USAGE, "eigenvalues");
  shardmat_matrix* small = NULL;
  OK(shardmat_matrix_from_file(context, "mass:n=3", NULL, &small));
  REFUSED(shardmat_eigen(k, small, NULL, again, NULL, NULL), SHARDMAT_USAGE, "one size");
  free(vectors);
  shardmat_matrix_destroy(small), shardmat_matrix_destroy(m), shardmat_matrix_destroy(k);
}

static void gives_memory(shardmat_context* context) {
  void* memory = NULL;
  OK(shardmat_context_allocate(context, 1000, &memory));
  CHECK(memory != NULL && (uintptr_t)memory % 256 == 0);
  OK(shardmat_context_free(context, memory));
  void* none = NULL;
  REFUSED(shardmat_context_allocate(context, SIZE_MAX, &none), SHARDMAT_RESOURCES, "cannot allocate");
  REFUSED(shardmat_context_free(context, memory), SHARDMAT_USAGE, "shardmat_context_allocate");
}

static void reads_files(shardmat_context* context) {
  shardmat_matrix* a = NULL;
  OK(shardmat_matrix_from_file(context, "poisson7:n=4", NULL, &a));
  shardmat_matrix_info info = {.size = sizeof info};
  OK(shardmat_matrix_get_info(a, &info));
  CHECK(info.rows == 64 && info.cols == 64 && (info.own_rows == 0) == feeder);
  double x[64], y[64];
  for (int i = 0; i < 64; ++i) x[i] = 1;
  OK(shardmat_spmv(a, 1, x, 0, y));
  shardmat_matrix_destroy(a);
}

static void does_everything(shardmat_context* context, int feeders) {
  shardmat_context_info info = {.size = sizeof info};
  OK(shardmat_context_get_info(context, &info));
  feeder = info.feeder;
  CHECK(info.rank == rank && info.ranks == ranks && strcmp(info.backend, backend()) == 0 &&
        (info.device == -1) == on_host() && strlen(info.name) > 0);
  multiplies(context);
  multiplies_the_transpose(context);
  takes_triplets_and_new_values(context);
  types_of_all_ranks(context);
  solves(context);
  keeps_nodes_whole(context);
  takes_coordinates(context, feeders);
  takes_null_vectors(context);
  takes_a_preconditioner(context, feeders);
  solves_in_f32(context);
  zeroes_rows_and_columns(context);
  takes_penalty_rows(context);
  stores_half(context);
  refuses(context);
  refuses_restarts(context);
  refuses_kernels(context);
  reads_files(context);
  multiplies_batches(context);
  ranks_vertices(context);
  finds_eigenvalues(context, feeders);
  gives_memory(context);
}

#ifdef WITH_MPI
/* All of it again, with fewer owners than ranks: the same results, and the same errors on all ranks. */
static void feeds_owners(int owners) {
  shardmat_context* context = NULL;
  shardmat_context_options options = {.size = sizeof options, .backend = "host", .threads = 1, .owners = owners};
  OK(shardmat_context_create_mpi(MPI_COMM_WORLD, &options, &context));
  if (context == NULL) return;
  does_everything(context, 1);
  int owner = 0;
  for (int group = 0; group < owners; ++group) owner = owner || rank == ranks * group / owners;
  CHECK(feeder == !owner);
  /* Wrong on one rank, refused on all. */
  shardmat_matrix* a = make_matrix(context, NULL);
  const double ones[48] = {1};
  double y[48];
  REFUSED(shardmat_spmv(a, 1, rank + 1 == ranks ? NULL : ones, 0, y), SHARDMAT_USAGE, "X or Y is NULL");
  OK(shardmat_spmv(a, 1, ones, 0, y));
  shardmat_context_destroy(context);
  shardmat_matrix_destroy(a);
}
#endif

#ifndef WITH_MPI
/* What a child does after fork(): 0 if Shardmat refuses it. */
static int child(shardmat_context* context) {
  shardmat_context* own = NULL;
  shardmat_matrix* a = NULL;
  int wrong = shardmat_matrix_from_file(context, "poisson7:n=4", NULL, &a) != SHARDMAT_USAGE;
  wrong += strstr(shardmat_last_error(), "forked") == NULL;
  shardmat_context_destroy(context);
  const shardmat_context_options one_thread = {.size = sizeof one_thread, .threads = 1};
  const int status = shardmat_context_create(&one_thread, &own);
  if (getenv("FORKED_AFTER_THREADS") != NULL || !on_host()) {
    wrong += status != SHARDMAT_USAGE || strstr(shardmat_last_error(), "exec") == NULL;
  } else {
    wrong += status != SHARDMAT_OK;
    shardmat_context_destroy(own);
  }
  return wrong;
}

static void refuses_children(shardmat_context* context) {
  const pid_t pid = fork();
  if (pid == 0) _exit(child(context));
  int status = 1;
  waitpid(pid, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

int main(int argc, char** argv) {
  shardmat_context* context = NULL;
  shardmat_context_options options = {.size = sizeof options, .backend = backend(), .threads = 1};
#ifdef WITH_MPI
  int provided;
  REFUSED(shardmat_context_create_mpi(MPI_COMM_WORLD, NULL, &context), SHARDMAT_USAGE, "MPI_Init_thread");
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  OK(shardmat_context_create_fortran(MPI_Comm_c2f(MPI_COMM_WORLD), &options, &context));
  shardmat_context_destroy(context);
  options.backend = rank == 0 ? "nonsense" : backend(); /* wrong on one rank, refused on all */
  REFUSED(shardmat_context_create_mpi(MPI_COMM_WORLD, &options, &context), SHARDMAT_USAGE, "nonsense");
  options.backend = backend();
  OK(shardmat_context_create_mpi(MPI_COMM_WORLD, &options, &context));
#else
  (void)argc, (void)argv;
  if (getenv("FORKED_AFTER_THREADS") != NULL) options.threads = 2;
  OK(shardmat_context_create(&options, &context));
#endif
  if (context == NULL) return 1;
  does_everything(context, 0);
#ifdef WITH_MPI
  shardmat_context_destroy(context);
  for (int owners = 1; on_host() && owners < ranks; ++owners) feeds_owners(owners);
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
#else
  refuses_children(context);
  shardmat_context_destroy(context);
  int started = 1;
  MPI_Initialized(&started);
  CHECK(started == 0); /* MPI was never started */
#endif
  return failures != 0;
}
