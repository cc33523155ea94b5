/* Every function of the C interface with sizes of 0, -1 and more than can be, NULL, and handles of other kinds: each call returns a
 * status and a message, and what was made before stays usable. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shardmat.h"

#define CHECK(condition)                                                                     \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      fprintf(stderr, "%s:%d: %s; %s\n", __FILE__, __LINE__, #condition, shardmat_last_error()); \
      exit(1);                                                                               \
    }                                                                                        \
  } while (0)

static int calls = 0, refused = 0;

/* A call that must be refused with a message that no library of C++ wrote. */
static void refuse(int status, const char* what, int line) {
  ++calls, ++refused;
  const char* const message = shardmat_last_error();
  if (status == SHARDMAT_OK || status == SHARDMAT_INTERNAL || strlen(message) < 5 || strstr(message, "vector::") != NULL ||
      strstr(message, "basic_string") != NULL || strstr(message, "bad_alloc") != NULL) {
    fprintf(stderr, "%s:%d: %s: status %d, %s\n", __FILE__, line, what, status, message);
    exit(1);
  }
}
#define REFUSE(call) refuse(call, #call, __LINE__)
static const int64_t wrong_sizes[] = {-1, INT64_MIN, INT64_MAX, INT64_C(1) << 62, (INT64_C(1) << 62) + 1, INT64_C(1) << 50};
enum { wrong = sizeof wrong_sizes / sizeof *wrong_sizes, n = 4 };

static int64_t row_ptr[] = {0, 1, 2, 3, 4}, columns[] = {0, 1, 2, 3};
static double values[] = {2, 3, 4, 5}, x[8 * n], y[8 * n];

static shardmat_rows good_rows(void) {
  shardmat_rows rows = {.size = sizeof rows, .rows = n, .cols = n, .row_ptr = row_ptr, .columns = columns, .values = values, .value_type = SHARDMAT_F64};
  return rows;
}
static shardmat_triplets good_triplets(void) {
  shardmat_triplets all = {.size = sizeof all, .rows = n, .cols = n, .count = n, .row = columns, .column = columns, .values = values, .value_type = SHARDMAT_F64};
  return all;
}

static void rows_and_triplets(shardmat_context* context) {
  shardmat_matrix* made = NULL;
  for (int i = 0; i < wrong; ++i) {
    const int64_t size = wrong_sizes[i];
    int64_t shardmat_rows_fields[3] = {offsetof(shardmat_rows, rows), offsetof(shardmat_rows, cols), offsetof(shardmat_rows, first_row)};
    for (int f = 0; f < 3; ++f) {
      shardmat_rows rows = good_rows();
      memcpy((char*)&rows + shardmat_rows_fields[f], &size, sizeof size);
      REFUSE(shardmat_matrix_from_rows(context, &rows, NULL, &made));
      CHECK(made == NULL);
    }
    int64_t fields[4] = {offsetof(shardmat_triplets, rows), offsetof(shardmat_triplets, cols), offsetof(shardmat_triplets, first_row),
                         offsetof(shardmat_triplets, count)};
    for (int f = 0; f < 4; ++f) {
      shardmat_triplets all = good_triplets();
      memcpy((char*)&all + fields[f], &size, sizeof size);
      REFUSE(shardmat_matrix_from_triplets(context, &all, NULL, &made));
    }
    shardmat_matrix_options options = {.size = sizeof options, .columns = size};
    shardmat_rows rows = good_rows();
    REFUSE(shardmat_matrix_from_rows(context, &rows, &options, &made));
  }
  for (int type = -1; type <= 100; type += 101) {
    shardmat_rows rows = good_rows();
    rows.value_type = type == -1 ? -1 : 99;
    REFUSE(shardmat_matrix_from_rows(context, &rows, NULL, &made));
    shardmat_triplets all = good_triplets();
    all.value_type = rows.value_type;
    REFUSE(shardmat_matrix_from_triplets(context, &all, NULL, &made));
  }
  shardmat_rows rows = good_rows();
  rows.row_ptr = NULL;
  REFUSE(shardmat_matrix_from_rows(context, &rows, NULL, &made));
  rows = good_rows(), rows.columns = NULL;
  REFUSE(shardmat_matrix_from_rows(context, &rows, NULL, &made));
  rows = good_rows(), rows.values = NULL;
  REFUSE(shardmat_matrix_from_rows(context, &rows, NULL, &made));
  rows = good_rows(), rows.size = 0;
  REFUSE(shardmat_matrix_from_rows(context, &rows, NULL, &made));
  REFUSE(shardmat_matrix_from_rows(context, NULL, NULL, &made));
  rows = good_rows();
  REFUSE(shardmat_matrix_from_rows(context, &rows, NULL, NULL));
  REFUSE(shardmat_matrix_from_triplets(context, NULL, NULL, &made));
  REFUSE(shardmat_matrix_from_file(context, NULL, NULL, &made));
  REFUSE(shardmat_matrix_from_file(context, "", NULL, &made));
  int64_t cols = 0;
  REFUSE(shardmat_file_shape(context, NULL, &cols, &cols));
  REFUSE(shardmat_file_shape(context, "no such file", NULL, NULL));
  for (size_t bytes = SIZE_MAX; bytes > (size_t)1 << 60; bytes >>= 1) {
    void* memory = NULL;
    REFUSE(shardmat_context_allocate(context, bytes, &memory));
  }
  REFUSE(shardmat_context_allocate(context, 8, NULL));
}

static void products(shardmat_matrix* matrix) {
  shardmat_product* product = NULL;
  for (int i = 0; i < wrong; ++i) {
    REFUSE(shardmat_product_create(matrix, wrong_sizes[i], NULL, &product));
    REFUSE(shardmat_spmm(matrix, wrong_sizes[i], 1, x, 0, y));
  }
  REFUSE(shardmat_product_create(matrix, 0, NULL, &product));
  REFUSE(shardmat_product_create(matrix, 1, NULL, NULL));
  REFUSE(shardmat_spmm(matrix, 0, 1, x, 0, y));
  REFUSE(shardmat_spmv(matrix, 1, NULL, 0, y));
  REFUSE(shardmat_spmv(matrix, 1, x, 0, NULL));
  shardmat_product_options options = {.size = sizeof options, .kernel = "no such kernel"};
  REFUSE(shardmat_product_create(matrix, 1, &options, &product));
  CHECK(shardmat_product_create(matrix, 2, NULL, &product) == SHARDMAT_OK);
  const shardmat_dense good = {.data = x, .rows = n, .columns = 2, .leading = 2, .type = SHARDMAT_F64};
  const shardmat_dense to = {.data = y, .rows = n, .columns = 2, .leading = 2, .type = SHARDMAT_F64};
  CHECK(shardmat_product_multiply(product, 1, &good, 0, &to, NULL) == SHARDMAT_OK);
  for (int i = 0; i < wrong; ++i) {
    shardmat_dense bad = good;
    bad.rows = wrong_sizes[i];
    REFUSE(shardmat_product_multiply(product, 1, &bad, 0, &to, NULL));
    REFUSE(shardmat_product_multiply(product, 1, &good, 0, &bad, NULL));
    bad = good, bad.columns = wrong_sizes[i];
    REFUSE(shardmat_product_multiply(product, 1, &bad, 0, &to, NULL));
    bad = good, bad.leading = wrong_sizes[i];
    REFUSE(shardmat_product_multiply(product, 1, &bad, 0, &to, NULL));
  }
  shardmat_dense bad = good;
  bad.type = 77;
  REFUSE(shardmat_product_multiply(product, 1, &bad, 0, &to, NULL));
  bad = good, bad.data = NULL;
  REFUSE(shardmat_product_multiply(product, 1, &bad, 0, &to, NULL));
  bad = good, bad.on_device = 1;
  REFUSE(shardmat_product_multiply(product, 1, &bad, 0, &to, NULL));
  REFUSE(shardmat_product_multiply(product, 1, NULL, 0, &to, NULL));
  REFUSE(shardmat_product_multiply(product, 1, &good, 0, NULL, NULL));
  REFUSE(shardmat_product_x(product, NULL));
  REFUSE(shardmat_product_get_info(product, NULL));
  CHECK(shardmat_product_multiply(product, 1, &good, 0, &to, NULL) == SHARDMAT_OK);
  shardmat_product_destroy(product);
}

static void new_values(shardmat_matrix* matrix) {
  for (int i = 0; i < wrong; ++i) {
    REFUSE(shardmat_matrix_update_values(matrix, values, wrong_sizes[i], SHARDMAT_F64, 0, NULL));
    REFUSE(shardmat_matrix_zero_rows_columns(matrix, columns, wrong_sizes[i], 1, NULL, NULL));
  }
  REFUSE(shardmat_matrix_update_values(matrix, NULL, n, SHARDMAT_F64, 0, NULL));
  REFUSE(shardmat_matrix_update_values(matrix, values, n, 55, 0, NULL));
  REFUSE(shardmat_matrix_update_values(matrix, values, n, -1, 0, NULL));
  REFUSE(shardmat_matrix_update_values(matrix, values, n, SHARDMAT_F64, 1, NULL));
  REFUSE(shardmat_matrix_zero_rows_columns(matrix, NULL, 1, 1, NULL, NULL));
  REFUSE(shardmat_matrix_zero_rows_columns(matrix, columns, 1, NAN, NULL, NULL));
  REFUSE(shardmat_matrix_zero_rows_columns(matrix, columns, 1, 1, x, NULL));
  for (int i = 0; i < wrong; ++i) REFUSE(shardmat_matrix_zero_rows_columns(matrix, &wrong_sizes[i], 1, 1, NULL, NULL));
  REFUSE(shardmat_matrix_get_info(matrix, NULL));
  REFUSE(shardmat_matrix_row_ids(matrix, NULL));
  REFUSE(shardmat_matrix_col_ids(matrix, NULL));
}

static void solvers(shardmat_matrix* matrix) {
  shardmat_solver* solver = NULL;
  const size_t counts[] = {offsetof(shardmat_solver_options, max_iterations), offsetof(shardmat_solver_options, restart),
                           offsetof(shardmat_solver_options, columns)};
  for (int i = 0; i < wrong; ++i)
    for (int f = 0; f < 3; ++f) {
      shardmat_solver_options options = {.size = sizeof options, .solver = "gmres"};
      memcpy((char*)&options + counts[f], &wrong_sizes[i], sizeof *wrong_sizes);
      if (f < 2 && wrong_sizes[i] > 0) continue; /* no more iterations and vectors than the rows need are taken */
      REFUSE(shardmat_solver_create(matrix, &options, &solver));
    }
  const size_t small[] = {offsetof(shardmat_solver_options, node_block_size), offsetof(shardmat_solver_options, degree)};
  const int wrong_small[] = {-1, INT32_MIN, INT32_MAX};
  for (int i = 0; i < 3; ++i)
    for (int f = 0; f < 2; ++f)
      for (int p = 0; p < 3; ++p) {
        shardmat_solver_options options = {.size = sizeof options, .solver = "gmres",
                                           .preconditioner = p == 0 ? "block_jacobi" : p == 1 ? "chebyshev" : "none"};
        memcpy((char*)&options + small[f], &wrong_small[i], sizeof *wrong_small);
        if (wrong_small[i] < 0 || (f == 0 && p == 0) || (f == 1 && p == 1)) REFUSE(shardmat_solver_create(matrix, &options, &solver));
      }
  const double wrong_numbers[] = {NAN, INFINITY, -INFINITY};
  for (int i = 0; i < 3; ++i) {
    shardmat_solver_options options = {.size = sizeof options, .rtol = wrong_numbers[i]};
    REFUSE(shardmat_solver_create(matrix, &options, &solver));
    options.rtol = 0, options.atol = wrong_numbers[i];
    REFUSE(shardmat_solver_create(matrix, &options, &solver));
  }
  shardmat_solver_options options = {.size = sizeof options, .divergence_tolerance = -1};
  REFUSE(shardmat_solver_create(matrix, &options, &solver));
  const size_t words[] = {offsetof(shardmat_solver_options, solver), offsetof(shardmat_solver_options, preconditioner),
                          offsetof(shardmat_solver_options, null_space), offsetof(shardmat_solver_options, residual_norm),
                          offsetof(shardmat_solver_options, variant)};
  for (size_t f = 0; f < sizeof words / sizeof *words; ++f)
    for (int w = 0; w < 2; ++w) {
      const char* const word = w == 0 ? "" : "nothing of this name";
      shardmat_solver_options named = {.size = sizeof named};
      memcpy((char*)&named + words[f], &word, sizeof word);
      REFUSE(shardmat_solver_create(matrix, &named, &solver));
    }
  REFUSE(shardmat_solver_create(matrix, NULL, NULL));
  options = (shardmat_solver_options){.size = 3};
  REFUSE(shardmat_solver_create(matrix, &options, &solver));
  CHECK(shardmat_solver_create(matrix, NULL, &solver) == SHARDMAT_OK);
  const shardmat_dense b = {.data = y, .rows = n, .columns = 1, .leading = 1, .type = SHARDMAT_F64};
  shardmat_dense bad = b;
  int64_t count = 0;
  for (int i = 0; i < wrong; ++i) {
    bad = b, bad.rows = wrong_sizes[i];
    REFUSE(shardmat_solver_solve(solver, &bad, &b, NULL));
    REFUSE(shardmat_solver_solve(solver, &b, &bad, NULL));
    REFUSE(shardmat_solver_history(solver, wrong_sizes[i], NULL, 0, &count));
  }
  REFUSE(shardmat_solver_history(solver, 0, NULL, 5, &count));
  REFUSE(shardmat_solver_history(solver, 0, NULL, 0, NULL));
  REFUSE(shardmat_solver_solve(solver, NULL, &b, NULL));
  REFUSE(shardmat_solver_solve(solver, &b, NULL, NULL));
  shardmat_solve_result result = {.size = 0};
  REFUSE(shardmat_solver_solve(solver, &b, &b, &result));
  REFUSE(shardmat_solve(matrix, NULL, NULL, x, NULL));
  REFUSE(shardmat_solve(matrix, NULL, y, NULL, NULL));
  CHECK(shardmat_solve(matrix, NULL, y, x, NULL) == SHARDMAT_OK);
  shardmat_solver_destroy(solver);
}

static void graphs_and_batches(shardmat_context* context) {
  double scores[n] = {0};
  shardmat_rows graph = good_rows();
  for (int i = 0; i < wrong; ++i) {
    shardmat_pagerank_options options = {.size = sizeof options, .columns = wrong_sizes[i]};
    REFUSE(shardmat_pagerank_of_rows(context, &graph, &options, NULL, scores, NULL));
    options.columns = 1, options.max_iterations = wrong_sizes[i];
    if (wrong_sizes[i] < 0) REFUSE(shardmat_pagerank_of_rows(context, &graph, &options, NULL, scores, NULL));
    shardmat_rows bad = graph;
    bad.rows = wrong_sizes[i];
    REFUSE(shardmat_pagerank_of_rows(context, &bad, NULL, NULL, scores, NULL));
    bad = graph, bad.cols = wrong_sizes[i];
    REFUSE(shardmat_pagerank_of_rows(context, &bad, NULL, NULL, scores, NULL));
  }
  const double wrong_numbers[] = {NAN, INFINITY, -1, 2};
  for (int i = 0; i < 4; ++i) {
    shardmat_pagerank_options options = {.size = sizeof options, .damping = wrong_numbers[i]};
    REFUSE(shardmat_pagerank_of_rows(context, &graph, &options, NULL, scores, NULL));
    options.damping = 0, options.tolerance = wrong_numbers[i];
    if (i < 3) REFUSE(shardmat_pagerank_of_rows(context, &graph, &options, NULL, scores, NULL));
  }
  REFUSE(shardmat_pagerank_of_rows(context, NULL, NULL, NULL, scores, NULL));
  REFUSE(shardmat_pagerank_of_rows(context, &graph, NULL, NULL, NULL, NULL));
  REFUSE(shardmat_pagerank_of_file(context, NULL, NULL, NULL, scores, NULL));

  const int64_t first_row[] = {0, 2, 4}, first_entry[] = {0, 2, 4};
  const int32_t batch_row_ptr[] = {0, 1, 2, 3, 4}, batch_columns[] = {0, 1, 0, 1};
  shardmat_batch batch = {.count = 2, .first_row = first_row, .first_col = first_row, .first_entry = first_entry, .row_ptr = batch_row_ptr,
                          .col_idx = batch_columns, .values = values, .type = SHARDMAT_F64, .device = -1};
  shardmat_batch_product* product = NULL;
  for (int i = 0; i < wrong; ++i) {
    shardmat_batch bad = batch;
    bad.count = wrong_sizes[i];
    REFUSE(shardmat_batch_product_create(context, &bad, 1, NULL, &product));
    REFUSE(shardmat_batch_product_create(context, &batch, wrong_sizes[i], NULL, &product));
  }
  shardmat_batch bad = batch;
  bad.type = 44;
  REFUSE(shardmat_batch_product_create(context, &bad, 1, NULL, &product));
  bad = batch, bad.col_idx = NULL;
  REFUSE(shardmat_batch_product_create(context, &bad, 1, NULL, &product));
  bad = batch, bad.first_row = NULL;
  REFUSE(shardmat_batch_product_create(context, &bad, 1, NULL, &product));
  REFUSE(shardmat_batch_product_create(context, NULL, 1, NULL, &product));
  REFUSE(shardmat_batch_product_create(context, &batch, 0, NULL, &product));
  REFUSE(shardmat_batch_product_create(context, &batch, 1, "no such kernel", &product));
  REFUSE(shardmat_batch_product_create(context, &batch, 1, NULL, NULL));
  CHECK(shardmat_batch_product_create(context, &batch, 1, NULL, &product) == SHARDMAT_OK);
  const shardmat_dense good = {.data = x, .rows = n, .columns = 1, .leading = 1, .type = SHARDMAT_F64};
  const shardmat_dense to = {.data = y, .rows = n, .columns = 1, .leading = 1, .type = SHARDMAT_F64};
  CHECK(shardmat_batch_product_multiply(product, 1, &good, 0, &to, NULL) == SHARDMAT_OK);
  for (int i = 0; i < wrong; ++i) {
    shardmat_dense other = good;
    other.rows = wrong_sizes[i];
    REFUSE(shardmat_batch_product_multiply(product, 1, &other, 0, &to, NULL));
    REFUSE(shardmat_batch_product_multiply(product, 1, &good, 0, &other, NULL));
  }
  REFUSE(shardmat_batch_product_multiply(product, 1, NULL, 0, &to, NULL));
  shardmat_batch_product_destroy(product);
}

/* `other`: a handle of another kind than the function takes, or NULL. */
static void handles(void* context, void* matrix, void* product, void* solver) {
  void* const all[] = {NULL, context, matrix, product, solver};
  shardmat_rows rows = good_rows();
  shardmat_triplets triplets = good_triplets();
  const shardmat_dense b = {.data = y, .rows = n, .columns = 1, .leading = 1, .type = SHARDMAT_F64};
  for (int i = 0; i < 5; ++i) {
    void *other = all[i], *made = NULL;
    if (other != context) {
      shardmat_context_info info = {.size = sizeof info};
      REFUSE(shardmat_context_get_info(other, &info));
      REFUSE(shardmat_context_allocate(other, 8, &made));
      REFUSE(shardmat_context_free(other, NULL));
      REFUSE(shardmat_context_stream(other, &made));
      REFUSE(shardmat_matrix_from_rows(other, &rows, NULL, (shardmat_matrix**)&made));
      REFUSE(shardmat_matrix_from_triplets(other, &triplets, NULL, (shardmat_matrix**)&made));
      REFUSE(shardmat_matrix_from_file(other, "a.mtx", NULL, (shardmat_matrix**)&made));
      REFUSE(shardmat_pagerank_of_rows(other, &rows, NULL, NULL, x, NULL));
      REFUSE(shardmat_pagerank_of_file(other, "a.mtx", NULL, NULL, x, NULL));
      shardmat_context_destroy(other);
    }
    if (other != matrix) {
      shardmat_matrix_info info = {.size = sizeof info};
      REFUSE(shardmat_matrix_get_info(other, &info));
      REFUSE(shardmat_spmv(other, 1, x, 0, y));
      REFUSE(shardmat_spmm(other, 2, 1, x, 0, y));
      REFUSE(shardmat_product_create(other, 1, NULL, (shardmat_product**)&made));
      REFUSE(shardmat_solver_create(other, NULL, (shardmat_solver**)&made));
      REFUSE(shardmat_solve(other, NULL, y, x, NULL));
      REFUSE(shardmat_matrix_update_values(other, values, n, SHARDMAT_F64, 0, NULL));
      REFUSE(shardmat_matrix_zero_rows_columns(other, columns, 1, 1, NULL, NULL));
      REFUSE(shardmat_matrix_row_ids(other, columns));
      shardmat_matrix_destroy(other);
    }
    if (other != product) {
      shardmat_product_info info = {.size = sizeof info};
      REFUSE(shardmat_product_get_info(other, &info));
      REFUSE(shardmat_product_multiply(other, 1, &b, 0, &b, NULL));
      REFUSE(shardmat_product_x(other, &made));
      shardmat_product_destroy(other);
    }
    if (other != solver) {
      int64_t count = 0;
      REFUSE(shardmat_solver_refresh(other));
      REFUSE(shardmat_solver_solve(other, &b, &b, NULL));
      REFUSE(shardmat_solver_history(other, 0, NULL, 0, &count));
      shardmat_solver_destroy(other);
    }
    REFUSE(shardmat_batch_product_multiply(other, 1, &b, 0, &b, NULL));
    CHECK(strcmp(shardmat_batch_product_kernel(other), "") == 0);
    shardmat_batch_product_destroy(other);
  }
}

int main(void) {
  shardmat_context_options wrong_options = {.size = sizeof wrong_options, .threads = -1};
  shardmat_context* context = NULL;
  REFUSE(shardmat_context_create(&wrong_options, &context));
  wrong_options.threads = 0, wrong_options.timeout_seconds = -1;
  REFUSE(shardmat_context_create(&wrong_options, &context));
  wrong_options.timeout_seconds = 0, wrong_options.owners = -1;
  REFUSE(shardmat_context_create(&wrong_options, &context));
  wrong_options.owners = 0, wrong_options.backend = "quantum";
  REFUSE(shardmat_context_create(&wrong_options, &context));
  REFUSE(shardmat_context_create(NULL, NULL));
  const shardmat_context_options options = {.size = sizeof options, .backend = "host", .threads = 1};
  CHECK(shardmat_context_create(&options, &context) == SHARDMAT_OK);
  for (int i = 0; i < 8 * n; ++i) x[i] = y[i] = i + 1;
  rows_and_triplets(context);
  graphs_and_batches(context);
  shardmat_rows rows = good_rows();
  shardmat_matrix_options updatable = {.size = sizeof updatable, .updatable = 1};
  shardmat_matrix* matrix = NULL;
  CHECK(shardmat_matrix_from_rows(context, &rows, &updatable, &matrix) == SHARDMAT_OK);
  products(matrix);
  new_values(matrix);
  solvers(matrix);
  shardmat_product* product = NULL;
  shardmat_solver* solver = NULL;
  CHECK(shardmat_product_create(matrix, 1, NULL, &product) == SHARDMAT_OK);
  CHECK(shardmat_solver_create(matrix, NULL, &solver) == SHARDMAT_OK);
  handles(context, matrix, product, solver);
  CHECK(shardmat_spmv(matrix, 1, x, 0, y) == SHARDMAT_OK);
  for (int i = 0; i < n; ++i) CHECK(y[i] == values[i] * x[i]);
  shardmat_solver_destroy(solver);
  shardmat_product_destroy(product);
  shardmat_matrix_destroy(matrix);
  shardmat_context_destroy(context);
  printf("%d calls, %d refused\n", calls, refused);
  return 0;
}
