/* Products, other matrices and new values, batches, and what is refused. */
#include "c_checks.h"

void multiplies(shardmat_context* context) {
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
void multiplies_the_transpose(shardmat_context* context) {
  const int64_t n = 53, first = n * rank / ranks, mine = n * (rank + 1) / ranks - first;
  int64_t row_ptr[54] = {0}, columns[106], ids[53];
  double values[106], x[53], y[53], wide[2 * 60], result[2 * 60];
  int64_t k = 0;
  for (int64_t i = 0; i < mine; ++i) {
    columns[k] = first + i, values[k++] = 3;
    if (first + i + 1 < n) columns[k] = first + i + 1, values[k++] = (double)(first + i + 1);
    row_ptr[i + 1] = k;
  }
  shardmat_rows rows = {.size = sizeof rows,
                        .first_row = first,
                        .rows = mine,
                        .cols = n,
                        .row_ptr = row_ptr,
                        .columns = columns,
                        .values = values,
                        .value_type = SHARDMAT_F64};
  shardmat_matrix_options options = {.size = sizeof options, .updatable = 1};
  shardmat_matrix* a = NULL;
  OK(shardmat_matrix_from_rows(context, &rows, &options, &a));
  OK(shardmat_matrix_row_ids(a, ids));
#define X_OF(i) (0.25 * (double)((i)*7 % 11) - 1)
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

void takes_triplets_and_new_values(shardmat_context* context) {
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
void types_of_all_ranks(shardmat_context* context) {
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

/* Symmetric within rounding: half is stored, with the means; more than this is refused. */
void stores_half(shardmat_context* context) {
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
void zeroes_rows_and_columns(shardmat_context* context) {
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

void refuses(shardmat_context* context) {
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

void refuses_kernels(shardmat_context* context) {
  refuses_kernels_of(context, "nonsense", 0);
  if (ranks > 1) refuses_kernels_of(context, rank + 1 == ranks ? "nonsense" : NULL, 1);
}

void multiplies_batches(shardmat_context* context) {
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
