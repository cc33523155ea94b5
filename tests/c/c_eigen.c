/* PageRank and eigenvalues. */
#include "c_checks.h"

void ranks_vertices(shardmat_context* context) {
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

void finds_eigenvalues(shardmat_context* context, int feeders) {
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
