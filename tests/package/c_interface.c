/* A C program with the installed C interface: no MPI, no C++. */
#include <shardmat.h>
#include <stdio.h>

int main(void) {
  const int64_t row_ptr[] = {0, 2, 4}, columns[] = {0, 1, 0, 1};
  const double values[] = {2, 1, 1, 3}, x[] = {1, 10};
  double y[2] = {0, 0}, z[2] = {0, 0};
  shardmat_context_options host = {.size = sizeof host, .backend = "host"};
  shardmat_rows rows = {.size = sizeof rows,
                        .rows = 2,
                        .cols = 2,
                        .row_ptr = row_ptr,
                        .columns = columns,
                        .values = values,
                        .value_type = SHARDMAT_F64};
  shardmat_context* context = NULL;
  shardmat_matrix* a = NULL;
  if (shardmat_context_create(&host, &context) != SHARDMAT_OK ||
      shardmat_matrix_from_rows(context, &rows, NULL, &a) != SHARDMAT_OK || shardmat_spmv(a, 1, x, 0, y) != SHARDMAT_OK ||
      shardmat_solve(a, NULL, y, z, NULL) != SHARDMAT_OK) {
    fprintf(stderr, "%s\n", shardmat_last_error());
    return 1;
  }
  shardmat_matrix_destroy(a);
  shardmat_context_destroy(context);
  if (y[0] != 12 || y[1] != 31 || z[1] < 9.999 || z[1] > 10.001) return 1;
  printf("the C interface %s multiplies and solves\n", shardmat_version());
  return 0;
}
