/* The C interface with arrays on a GPU: rows, values, vectors, streams, a CUDA graph. Without a GPU it ends with 77. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shardmat.h"

static int failures = 0;

#define CHECK(condition)                                                                          \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, shardmat_last_error()); \
      ++failures;                                                                                 \
    }                                                                                             \
  } while (0)
#define OK(call) CHECK((call) == SHARDMAT_OK)
#define CUDA(call) CHECK((call) == cudaSuccess)

enum { n = 5000, most = 3 * n };

static int64_t row_ptr[n + 1], columns[most];
static double values[most], x[n], y[n];

static void* on_device(const void* host, size_t bytes) {
  void* memory = NULL;
  CUDA(cudaMalloc(&memory, bytes));
  CUDA(cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice));
  return memory;
}

/* y has factor * A*x in its stream's order. */
static void expect_product(const double* device_y, double factor) {
  CUDA(cudaMemcpy(y, device_y, sizeof y, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < n; ++i) {
    const double before = i > 0 ? x[i - 1] : 0, behind = i + 1 < n ? x[i + 1] : 0;
    wrong += !(fabs(y[i] - factor * (2 * x[i] - before - behind)) < 1e-12);
  }
  CHECK(wrong == 0);
}

int main(void) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    puts("no GPU here");
    return 77;
  }
  int64_t k = 0;
  for (int i = 0; i < n; ++i) {
    x[i] = i * 7 % 11 - 5;
    if (i > 0) columns[k] = i - 1, values[k++] = -1;
    columns[k] = i, values[k++] = 2;
    if (i + 1 < n) columns[k] = i + 1, values[k++] = -1;
    row_ptr[i + 1] = k;
  }
  shardmat_context* context = NULL;
  shardmat_context_options options = {.size = sizeof options, .backend = "cuda"};
  OK(shardmat_context_create(&options, &context));
  if (context == NULL) return 1;

  /* Rows on the device. */
  shardmat_matrix* a = NULL;
  shardmat_rows rows = {.size = sizeof rows,
                        .rows = n,
                        .cols = n,
                        .row_ptr = on_device(row_ptr, sizeof row_ptr),
                        .columns = on_device(columns, sizeof columns),
                        .values = on_device(values, sizeof values),
                        .value_type = SHARDMAT_F64,
                        .on_device = 1};
  shardmat_matrix_options of_matrix = {.size = sizeof of_matrix, .updatable = 1};
  OK(shardmat_matrix_from_rows(context, &rows, &of_matrix, &a));

  /* Vectors on the host, then on the device, without a stream and on one. */
  OK(shardmat_spmv(a, 1, x, 0, y));
  shardmat_product* product = NULL;
  OK(shardmat_product_create(a, 1, NULL, &product));
  double *device_x = on_device(x, sizeof x), *device_y = on_device(y, sizeof y);
  const shardmat_dense dense_x = {
      .data = device_x, .rows = n, .columns = 1, .leading = 1, .type = SHARDMAT_F64, .on_device = 1};
  const shardmat_dense dense_y = {
      .data = device_y, .rows = n, .columns = 1, .leading = 1, .type = SHARDMAT_F64, .on_device = 1};
  expect_product(device_y, 1); /* what spmv found */
  OK(shardmat_product_multiply(product, 3, &dense_x, 0, &dense_y, NULL));
  expect_product(device_y, 3);
  cudaStream_t stream;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(shardmat_product_multiply(product, -1, &dense_x, 2, &dense_y, stream));
  CUDA(cudaStreamSynchronize(stream));
  expect_product(device_y, 5);

  /* A graph records it, and replays what it reads then. */
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  OK(shardmat_product_multiply(product, 1, &dense_x, 1, &dense_y, stream));
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaGraphInstantiate(&ready, graph, 0));
  for (int run = 0; run < 2; ++run) CUDA(cudaGraphLaunch(ready, stream));
  CUDA(cudaStreamSynchronize(stream));
  expect_product(device_y, 7);

  /* New values from the device, in the order of the stream. */
  for (int64_t i = 0; i < k; ++i) values[i] *= 2;
  double* new_values = on_device(values, sizeof values);
  OK(shardmat_matrix_update_values(a, new_values, k, SHARDMAT_F64, 1, stream));
  OK(shardmat_product_multiply(product, 1, &dense_x, 0, &dense_y, stream));
  CUDA(cudaStreamSynchronize(stream));
  expect_product(device_y, 2);

  /* b = A*x on the device; x from a solve that begins at 0. */
  shardmat_solver* solver = NULL;
  const shardmat_solver_options of_solver = {
      .size = sizeof of_solver, .preconditioner = "jacobi", .rtol = 1e-14, .max_iterations = 4 * n};
  OK(shardmat_solver_create(a, &of_solver, &solver));
  double* solution = on_device(x, sizeof x);
  CUDA(cudaMemset(solution, 0, sizeof x));
  const shardmat_dense dense_solution = {
      .data = solution, .rows = n, .columns = 1, .leading = 1, .type = SHARDMAT_F64, .on_device = 1};
  shardmat_solve_result result = {.size = sizeof result};
  shardmat_solver_solve(solver, &dense_y, &dense_solution, &result);
  CHECK(result.true_residual <= 1e-9 * result.norm_of_b);
  CUDA(cudaMemcpy(y, solution, sizeof y, cudaMemcpyDeviceToHost));
  double worst = 0;
  for (int i = 0; i < n; ++i) worst = fmax(worst, fabs(y[i] - x[i]));
  CHECK(worst < 1e-2); /* the condition is some 10^7 */

  /* A child has no CUDA. */
  const pid_t child = fork();
  if (child == 0) {
    shardmat_context* other = NULL;
    _exit(shardmat_context_create(NULL, &other) == SHARDMAT_USAGE && strstr(shardmat_last_error(), "exec") != NULL ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);

  shardmat_solver_destroy(solver);
  shardmat_product_destroy(product);
  shardmat_matrix_destroy(a);
  shardmat_context_destroy(context);
  return failures != 0;
}
