/* What the parts of c_test share: checks, the matrix and the vectors of the tests, and the tests of each part. */
#ifndef C_CHECKS_H
#define C_CHECKS_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shardmat_mpi.h"

extern int rank, ranks, failures;
extern int feeder; /* in the context at hand */

const char* backend(void);
int on_host(void);

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

tridiagonal make_rows(int64_t n);
/* An x of 48 entries, and A·x of the matrix with 48 rows. */
double x_of(int64_t i);
double ax_of(int64_t i);
shardmat_rows rows_of(const tridiagonal* t);
shardmat_matrix* make_matrix(shardmat_context* context, const shardmat_matrix_options* options);

/* c_products.c */
void multiplies(shardmat_context* context);
void multiplies_the_transpose(shardmat_context* context);
void takes_triplets_and_new_values(shardmat_context* context);
void types_of_all_ranks(shardmat_context* context);
void stores_half(shardmat_context* context);
void zeroes_rows_and_columns(shardmat_context* context);
void refuses(shardmat_context* context);
void refuses_kernels(shardmat_context* context);
void multiplies_batches(shardmat_context* context);

/* c_solvers.c */
void solves(shardmat_context* context);
void takes_a_preconditioner(shardmat_context* context, int feeders);
void keeps_nodes_whole(shardmat_context* context);
void solves_in_f32(shardmat_context* context);
void takes_penalty_rows(shardmat_context* context);
void refuses_restarts(shardmat_context* context);

/* c_multigrid.c */
void takes_null_vectors(shardmat_context* context);
void takes_coordinates(shardmat_context* context, int feeders);

/* c_eigen.c */
void ranks_vertices(shardmat_context* context);
void finds_eigenvalues(shardmat_context* context, int feeders);

#endif
