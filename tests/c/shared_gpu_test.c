/* Feeders that give memory of a GPU: mpirun -n 3 c_shared_gpu_test on one GPU or more. Each case compares the bits with
 * those of host memory and prints a line. TEST_KERNEL names a kernel. Without a GPU it ends with 77. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shardmat_mpi.h"

static int rank = 0, ranks = 1, failures = 0, failed_cases = 0;
static const char* sizes = "";

static void check(int holds, const char* what, int line) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s:%d: %s (%s)\n", rank, __FILE__, line, what, shardmat_last_error());
  ++failures;
}
#define CHECK(condition) check((condition), #condition, __LINE__)
#define OK(call) CHECK((call) == SHARDMAT_OK)
#define CUDA(call) CHECK((call) == cudaSuccess)

static void end_case(const char* name) {
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%-6s %s, %s\n", all == 0 ? "ok" : "FAILED", name, sizes), fflush(stdout);
  failed_cases += all != 0;
  failures = 0;
}

/* ---- The matrix: three diagonals, positive definite; this rank's rows ---- */

enum { most_columns = 3 };
static int64_t n = 0, first = 0, own = 0, entries = 0;
static int64_t *row_ptr = NULL, *columns = NULL;
static double *values = NULL, *x = NULL, *y = NULL, *expected = NULL;

static double number(int64_t i) { return sin((double)i * 0.37) + 0.1 * cos((double)i * 1.91); }

static void* allocate(size_t bytes) {
  void* memory = calloc(1, bytes + 64);
  if (memory == NULL) abort();
  return memory;
}

static void release_rows(void) { free(row_ptr), free(columns), free(values), free(x), free(y), free(expected); }

static void make_rows(int64_t count, const int* shares) {
  int64_t before = 0, all = 0;
  for (int r = 0; r < ranks; ++r) before += r < rank ? shares[r % 3] : 0, all += shares[r % 3];
  n = count, first = n * before / all, own = n * (before + shares[rank % 3]) / all - first;
  row_ptr = allocate(8 * (size_t)(own + 1)), columns = allocate(24 * (size_t)own), values = allocate(24 * (size_t)own);
  const size_t bytes = 8 * most_columns * (size_t)own;
  x = allocate(bytes), y = allocate(bytes), expected = allocate(bytes);
  entries = 0;
  for (int64_t i = 0; i < own; ++i) {
    for (int64_t j = first + i - 1; j <= first + i + 1; ++j) {
      if (j < 0 || j >= n) continue;
      const double off = 0.3 + 0.1 * number(j < first + i ? j : first + i);
      columns[entries] = j, values[entries++] = j == first + i ? 2 + 0.5 * number(j) : -off;
    }
    row_ptr[i + 1] = entries;
  }
  for (int64_t i = 0; i < own * most_columns; ++i) x[i] = number(7 * (first * most_columns + i) + 3);
}

/* ---- Memory of a GPU ---- */

static int device = 0, feeder = 0;

static void* to_device(const void* host, size_t bytes) {
  void* memory = NULL;
  CUDA(cudaMalloc(&memory, bytes + 8));
  CUDA(cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice));
  return memory;
}
static void from_device(void* host, const void* memory, size_t bytes) {
  CUDA(cudaMemcpy(host, memory, bytes, cudaMemcpyDeviceToHost));
}
static shardmat_dense dense(void* data, int64_t k, int on_device) {
  const shardmat_dense view = {data, own, k, k, 0, SHARDMAT_F64, on_device};
  return view;
}
static size_t bytes_of(int64_t k) { return 8 * (size_t)(own * k); }
static void expect_same(const void* a, const void* b, size_t bytes) { CHECK(memcmp(a, b, bytes) == 0); }

/* What y is before a product. */
static void reset(double* to, int64_t k) {
  for (int64_t i = 0; i < own * k; ++i) to[i] = number(first * k + i + 11);
}

/* `expected` becomes alpha*A*x + beta*y by host memory, and is right. */
static void multiply_on_host(shardmat_product* product, int64_t k, double alpha, double beta) {
  reset(expected, k);
  const shardmat_dense of_x = dense(x, k, 0), of_y = dense(expected, k, 0);
  OK(shardmat_product_multiply(product, alpha, &of_x, beta, &of_y, NULL));
}

static void expect_right(int64_t k, double alpha, double beta, double factor) {
  double* whole = allocate(8 * (size_t)(n * k));
  memcpy(whole + first * k, x, bytes_of(k));
  MPI_Allreduce(MPI_IN_PLACE, whole, (int)(n * k), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  reset(y, k);
  int wrong = 0;
  for (int64_t i = 0; i < own; ++i)
    for (int64_t c = 0; c < k; ++c) {
      double sum = 0;
      for (int64_t e = row_ptr[i]; e < row_ptr[i + 1]; ++e) sum += factor * values[e] * whole[columns[e] * k + c];
      wrong += !(fabs(expected[i * k + c] - alpha * sum - beta * y[i * k + c]) < 1e-12);
    }
  CHECK(wrong == 0);
  free(whole);
}

static shardmat_product* make_product(shardmat_matrix* a, int64_t k) {
  shardmat_product* product = NULL;
  OK(shardmat_product_create(a, k, NULL, &product));
  return product;
}

/* ---- Cases ---- */

static void multiplies(shardmat_matrix* a, int64_t k) {
  shardmat_product* product = make_product(a, k);
  const size_t bytes = bytes_of(k);
  multiply_on_host(product, k, 2, -0.5);
  expect_right(k, 2, -0.5, 1);
  reset(y, k);
  double *device_x = to_device(x, bytes), *device_y = to_device(y, bytes);
  const shardmat_dense of_x = dense(device_x, k, 1), of_y = dense(device_y, k, 1);
  for (int run = 0; run < 3; ++run) {
    CUDA(cudaMemcpy(device_y, y, bytes, cudaMemcpyHostToDevice));
    OK(shardmat_product_multiply(product, 2, &of_x, -0.5, &of_y, NULL));
  }
  from_device(y, device_y, bytes);
  expect_same(y, expected, bytes);
  multiply_on_host(product, k, 1, 0);
  OK(shardmat_product_multiply(product, 1, &of_x, 0, &of_y, NULL));
  from_device(y, device_y, bytes);
  expect_same(y, expected, bytes);
  CUDA(cudaFree(device_x)), CUDA(cudaFree(device_y));
  shardmat_product_destroy(product);
  char name[64];
  snprintf(name, sizeof name, "products of %d column(s)", (int)k);
  end_case(name);
}

/* Each rank has x and y in host memory or on the device, as bits 0 and 1 of (kinds >> 2 * rank) say. */
static void mixes(shardmat_matrix* a, int64_t k) {
  shardmat_product* product = make_product(a, k);
  const size_t bytes = bytes_of(k);
  multiply_on_host(product, k, -1, 3);
  for (int kinds = 0; kinds < 64; ++kinds) {
    const int mine = kinds >> 2 * (rank % 3);
    reset(y, k);
    double *device_x = to_device(x, bytes), *device_y = to_device(y, bytes);
    const shardmat_dense of_x = mine & 1 ? dense(device_x, k, 1) : dense(x, k, 0);
    const shardmat_dense of_y = mine & 2 ? dense(device_y, k, 1) : dense(y, k, 0);
    OK(shardmat_product_multiply(product, -1, &of_x, 3, &of_y, NULL));
    if (mine & 2) from_device(y, device_y, bytes);
    expect_same(y, expected, bytes);
    CUDA(cudaFree(device_x)), CUDA(cudaFree(device_y));
  }
  shardmat_product_destroy(product);
  end_case("all 64 mixtures of host and device");
}

/* x and y inside one allocation, with gaps, in both orders. */
static void takes_parts_of_allocations(shardmat_matrix* a) {
  enum { k = 3 };
  shardmat_product* product = NULL;
  shardmat_product_options options = {.size = sizeof options, .column_major_y = 1};
  OK(shardmat_product_create(a, k, &options, &product));
  multiply_on_host(product, k, 2, -0.5);
  for (int order = 0; order < 4; ++order) {
    const int x_by_columns = order & 1, y_by_columns = order >> 1;
    const int64_t leading_x = x_by_columns ? own + 5 : k + 2, leading_y = y_by_columns ? own + 1 : k + 4;
    const size_t at_x = 8 * 33, at_y = at_x + 8 * (size_t)((own + 7) * (k + 4));
    const size_t bytes = at_y + 8 * (size_t)((own + 7) * (k + 4));
    char *host = allocate(bytes), *memory = NULL, *back = allocate(bytes);
    memset(host, 0x5a, bytes);
    double *in = (double*)(void*)(host + at_x), *out = (double*)(void*)(host + at_y);
    reset(y, k);
    for (int64_t i = 0; i < own; ++i)
      for (int64_t c = 0; c < k; ++c) {
        in[x_by_columns ? i + c * leading_x : i * leading_x + c] = x[i * k + c];
        out[y_by_columns ? i + c * leading_y : i * leading_y + c] = y[i * k + c];
      }
    memory = to_device(host, bytes);
    shardmat_dense of_x = dense(memory + at_x, k, 1), of_y = dense(memory + at_y, k, 1);
    of_x.leading = leading_x, of_x.column_major = x_by_columns;
    of_y.leading = leading_y, of_y.column_major = y_by_columns;
    OK(shardmat_product_multiply(product, 2, &of_x, -0.5, &of_y, NULL));
    from_device(back, memory, bytes);
    for (int64_t i = 0; i < own; ++i)
      for (int64_t c = 0; c < k; ++c) out[y_by_columns ? i + c * leading_y : i * leading_y + c] = expected[i * k + c];
    expect_same(back, host, bytes); /* also the gaps */
    CUDA(cudaFree(memory)), free(host), free(back);
  }
  shardmat_product_destroy(product);
  end_case("parts of an allocation, with gaps, both orders");
}

/* Memory is freed and allocated anew between products, also at the same address; then more allocations than are kept open.
 */
static void takes_new_allocations(shardmat_matrix* a) {
  shardmat_product* product = make_product(a, 1);
  double* memories[200];
  int again = 0;
  void* before = NULL;
  for (int run = 0; run < 200; ++run) {
    const size_t more = run % 3 == 0 ? (size_t)4 << 20 : 0;
    for (int64_t i = 0; i < own; ++i) x[i] = number(i + first + 1000 * run);
    multiply_on_host(product, 1, 1, 0);
    double *device_x = NULL, *device_y = NULL;
    CUDA(cudaMalloc((void**)&device_x, bytes_of(1) + more + 8));
    CUDA(cudaMalloc((void**)&device_y, bytes_of(1) + 8));
    again += device_x == before;
    before = device_x;
    CUDA(cudaMemcpy(device_x, x, bytes_of(1), cudaMemcpyHostToDevice));
    const shardmat_dense of_x = dense(device_x, 1, 1), of_y = dense(device_y, 1, 1);
    OK(shardmat_product_multiply(product, 1, &of_x, 0, &of_y, NULL));
    from_device(y, device_y, bytes_of(1));
    expect_same(y, expected, bytes_of(1));
    CUDA(cudaFree(device_y));
    memories[run] = device_x;
    if (run < 100) CUDA(cudaFree(device_x));
  }
  for (int run = 100; run < 200; ++run) CUDA(cudaFree(memories[run]));
  if (rank + 1 == ranks) printf("       the last rank got an address again %d times\n", again), fflush(stdout);
  shardmat_product_destroy(product);
  end_case("200 new allocations, 100 of them freed at once");
}

/* x is written late, in the order of a stream, or of the default stream where none is named. */
static void waits_for_streams(shardmat_matrix* a) {
  enum { copies = 400 };
  const size_t much = (size_t)64 << 20;
  shardmat_product* product = make_product(a, 1);
  char* busy = NULL;
  double *device_x = NULL, *device_y = NULL, *late = to_device(x, bytes_of(1));
  CUDA(cudaMalloc((void**)&busy, 2 * much));
  CUDA(cudaMalloc((void**)&device_x, bytes_of(1) + 8)), CUDA(cudaMalloc((void**)&device_y, bytes_of(1) + 8));
  multiply_on_host(product, 1, 1, 0);
  for (int kind = 0; kind < 3; ++kind) { /* a stream of its own, the default stream by name, none */
    if (kind == 2 && !feeder) continue;
    cudaStream_t stream = NULL;
    if (kind == 0) CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaMemset(device_x, 0, bytes_of(1)));
    CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < copies; ++i) CUDA(cudaMemcpyAsync(busy, busy + much, much, cudaMemcpyDeviceToDevice, stream));
    CUDA(cudaMemcpyAsync(device_x, late, bytes_of(1), cudaMemcpyDeviceToDevice, stream));
    const int still_busy = cudaStreamQuery(stream) == cudaErrorNotReady;
    cudaGetLastError(); /* "not ready" is none that a later call should find */
    CHECK(still_busy);
    const shardmat_dense of_x = dense(device_x, 1, 1), of_y = dense(device_y, 1, 1);
    OK(shardmat_product_multiply(product, 1, &of_x, 0, &of_y, kind == 0 ? stream : kind == 1 ? cudaStreamLegacy : NULL));
    from_device(y, device_y, bytes_of(1));
    expect_same(y, expected, bytes_of(1));
    if (kind == 0) CUDA(cudaStreamDestroy(stream));
  }
  if (!feeder) { /* without a stream, an owner's arrays must be complete */
    const shardmat_dense of_x = dense(late, 1, 1), of_y = dense(device_y, 1, 1);
    OK(shardmat_product_multiply(product, 1, &of_x, 0, &of_y, NULL));
  }
  CUDA(cudaFree(busy)), CUDA(cudaFree(late)), CUDA(cudaFree(device_x)), CUDA(cudaFree(device_y));
  shardmat_product_destroy(product);
  end_case("x written late in a stream");
}

/* Memory that no other process can open, and memory of the library. */
static void takes_other_memory(shardmat_context* context, shardmat_matrix* a) {
  shardmat_product* product = make_product(a, 3);
  const size_t bytes = bytes_of(3);
  multiply_on_host(product, 3, 2, -0.5);
  for (int kind = 0; kind < 4; ++kind) {
    void *in = NULL, *out = NULL;
    if (kind == 0) CUDA(cudaMallocManaged(&in, bytes + 8, cudaMemAttachGlobal)), CUDA(cudaMallocManaged(&out, bytes + 8, 1));
    if (kind == 1) CUDA(cudaMallocAsync(&in, bytes + 8, NULL)), CUDA(cudaMallocAsync(&out, bytes + 8, NULL));
    if (kind == 2) CUDA(cudaHostAlloc(&in, bytes + 8, 0)), CUDA(cudaHostAlloc(&out, bytes + 8, 0));
    if (kind == 3) OK(shardmat_context_allocate(context, bytes, &in)), OK(shardmat_context_allocate(context, bytes, &out));
    reset(y, 3);
    CUDA(cudaMemcpy(in, x, bytes, cudaMemcpyDefault)), CUDA(cudaMemcpy(out, y, bytes, cudaMemcpyDefault));
    const shardmat_dense of_x = dense(in, 3, 1), of_y = dense(out, 3, 1);
    OK(shardmat_product_multiply(product, 2, &of_x, -0.5, &of_y, NULL));
    CUDA(cudaMemcpy(y, out, bytes, cudaMemcpyDefault));
    expect_same(y, expected, bytes);
    if (kind == 0) CUDA(cudaFree(in)), CUDA(cudaFree(out));
    if (kind == 1) CUDA(cudaFreeAsync(in, NULL)), CUDA(cudaFreeAsync(out, NULL));
    if (kind == 2) CUDA(cudaFreeHost(in)), CUDA(cudaFreeHost(out));
    if (kind == 3) OK(shardmat_context_free(context, in)), OK(shardmat_context_free(context, out));
  }
  CUDA(cudaDeviceSynchronize());
  shardmat_product_destroy(product);
  end_case("managed, pooled, page-locked and the library's memory");
}

static void takes_new_values(shardmat_matrix* a) {
  shardmat_product* product = make_product(a, 1);
  for (int run = 0; run < 4; ++run) {
    const double factor = run == 3 ? 1 : -1.5 - run;
    double* scaled = allocate(8 * (size_t)entries);
    for (int64_t e = 0; e < entries; ++e) scaled[e] = factor * values[e];
    char* memory = NULL;
    CUDA(cudaMalloc((void**)&memory, 8 * (size_t)entries + 512));
    CUDA(cudaMemcpy(memory + 264, scaled, 8 * (size_t)entries, cudaMemcpyHostToDevice));
    OK(shardmat_matrix_update_values(a, scaled, entries, SHARDMAT_F64, 0, NULL));
    multiply_on_host(product, 1, 1, 0);
    expect_right(1, 1, 0, factor);
    double* const wrong = allocate(8 * (size_t)entries);
    OK(shardmat_matrix_update_values(a, wrong, entries, SHARDMAT_F64, 0, NULL)); /* zeros */
    free(wrong);
    const int on_device = run != 1 || rank % 2 == 1; /* run 1: a mixture */
    OK(shardmat_matrix_update_values(a, on_device ? (void*)(memory + 264) : scaled, entries, SHARDMAT_F64, on_device, NULL));
    CUDA(cudaFree(memory));
    const shardmat_dense of_x = dense(x, 1, 0), of_y = dense(y, 1, 0);
    OK(shardmat_product_multiply(product, 1, &of_x, 0, &of_y, NULL));
    expect_same(y, expected, bytes_of(1));
    free(scaled);
  }
  shardmat_product_destroy(product);
  end_case("new values");
}

/* `type`: of b and x. `mixture`: b lies in memory of the GPU on some ranks only. */
static void solves(shardmat_matrix* a, int64_t k, int type, int by_columns, int mixture) {
  shardmat_solver* solver = NULL;
  const shardmat_solver_options options = {
      .size = sizeof options, .preconditioner = "jacobi", .rtol = 1e-10, .columns = k, .variant = "classic"};
  OK(shardmat_solver_create(a, &options, &solver));
  const size_t value = type == SHARDMAT_F64 ? 8 : 4, bytes = value * (size_t)(own * k);
  char *b = allocate(bytes), *by_host = allocate(bytes), *by_device = allocate(bytes);
  for (int64_t i = 0; i < own * k; ++i) {
    const double entry = number(first * k + i + 5);
    const float rounded = (float)entry;
    memcpy(b + value * (size_t)i, type == SHARDMAT_F64 ? (const void*)&entry : (const void*)&rounded, value);
  }
  shardmat_dense of_b = dense(b, k, 0), of_x = dense(by_host, k, 0);
  of_b.type = of_x.type = type;
  if (by_columns) of_b.column_major = of_x.column_major = 1, of_b.leading = of_x.leading = own > 0 ? own : 1;
  shardmat_solve_result results[most_columns] = {
      {.size = sizeof results[0]}, {.size = sizeof results[0]}, {.size = sizeof results[0]}};
  OK(shardmat_solver_solve(solver, &of_b, &of_x, results));
  const int64_t iterations = results[0].iterations;
  CHECK(results[0].converged && iterations > 5);
  char *device_b = to_device(b, bytes), *device_x = NULL;
  CUDA(cudaMalloc((void**)&device_x, bytes + 8));
  CUDA(cudaMemset(device_x, 0, bytes));
  const int on_device = !mixture || rank % 2 == 1;
  if (on_device) of_b.data = device_b, of_b.on_device = 1;
  of_x.data = device_x, of_x.on_device = 1;
  OK(shardmat_solver_solve(solver, &of_b, &of_x, results));
  CHECK(results[0].converged && results[0].iterations == iterations);
  from_device(by_device, device_x, bytes);
  expect_same(by_device, by_host, bytes);
  CUDA(cudaFree(device_b)), CUDA(cudaFree(device_x)), free(b), free(by_host), free(by_device);
  shardmat_solver_destroy(solver);
  char name[96];
  snprintf(name, sizeof name, "a solve of %d column(s), %s%s%s", (int)k, type == SHARDMAT_F64 ? "f64" : "f32",
           by_columns ? ", by columns" : "", mixture ? ", b on some ranks" : "");
  end_case(name);
}

static shardmat_matrix* make_matrix(shardmat_context* context, int on_device) {
  shardmat_matrix* a = NULL;
  shardmat_rows rows = {sizeof rows, first, own, n, row_ptr, columns, values, SHARDMAT_F64, on_device};
  void *ends = NULL, *places = NULL, *numbers = NULL;
  if (on_device) {
    rows.row_ptr = ends = to_device(row_ptr, 8 * (size_t)(own + 1));
    rows.columns = places = to_device(columns, 8 * (size_t)entries);
    rows.values = numbers = to_device(values, 8 * (size_t)entries);
  }
  const shardmat_matrix_options options = {
      .size = sizeof options, .kernel = getenv("TEST_KERNEL"), .updatable = 1, .reproducible = 1};
  OK(shardmat_matrix_from_rows(context, &rows, &options, &a));
  if (on_device) CUDA(cudaFree(ends)), CUDA(cudaFree(places)), CUDA(cudaFree(numbers));
  return a;
}

static void takes_rows(shardmat_context* context, shardmat_matrix* a) {
  shardmat_product* product = make_product(a, 1);
  multiply_on_host(product, 1, 1, 0);
  shardmat_product_destroy(product);
  const shardmat_dense of_x = dense(x, 1, 0), of_y = dense(y, 1, 0);
  shardmat_matrix* of_rows = make_matrix(context, 1);
  product = make_product(of_rows, 1);
  OK(shardmat_product_multiply(product, 1, &of_x, 0, &of_y, NULL));
  double worst = 0; /* the kernel may be another one */
  for (int64_t i = 0; i < own; ++i) worst = fmax(worst, fabs(y[i] - expected[i]));
  CHECK(worst < 1e-12);
  shardmat_product_destroy(product);
  shardmat_matrix_destroy(of_rows);

  int64_t* rows = allocate(8 * (size_t)entries);
  for (int64_t i = 0; i < own; ++i)
    for (int64_t e = row_ptr[i]; e < row_ptr[i + 1]; ++e) rows[e] = first + i;
  void *of_row = to_device(rows, 8 * (size_t)entries), *of_column = to_device(columns, 8 * (size_t)entries),
       *of_value = to_device(values, 8 * (size_t)entries);
  shardmat_triplets triplets = {sizeof triplets, first, own, n, entries, of_row, of_column, of_value, SHARDMAT_F64, 1};
  shardmat_matrix* of_triplets = NULL;
  OK(shardmat_matrix_from_triplets(context, &triplets, NULL, &of_triplets));
  CUDA(cudaFree(of_row)), CUDA(cudaFree(of_column)), CUDA(cudaFree(of_value)), free(rows);
  OK(shardmat_spmv(of_triplets, 1, x, 0, y));
  worst = 0;
  for (int64_t i = 0; i < own; ++i) worst = fmax(worst, fabs(y[i] - expected[i]));
  CHECK(worst < 1e-12);
  shardmat_matrix_destroy(of_triplets);
  end_case("rows and triplets");
}

static void expect_refused(shardmat_product* product, const shardmat_dense* of_x, const char* words) {
  const shardmat_dense of_y = dense(y, 1, 0);
  CHECK(shardmat_product_multiply(product, 1, of_x, 0, &of_y, NULL) == SHARDMAT_USAGE);
  CHECK(strstr(shardmat_last_error(), words) != NULL);
}

/* Wrong on the last rank, refused on all; then everything goes on. */
static void refuses(shardmat_matrix* a) {
  int last = ranks - 1, devices = 0;
  shardmat_product* product = make_product(a, 1);
  multiply_on_host(product, 1, 1, 0);
  double *device_x = to_device(x, bytes_of(1)), *some = NULL;
  shardmat_dense of_x = dense(x, 1, rank == last);
  expect_refused(product, &of_x, "CUDA knows no memory");
  CUDA(cudaMalloc((void**)&some, (size_t)4 << 20));
  of_x = rank == last ? dense(some + ((size_t)4 << 17) - 16, 1, 1) : dense(x, 1, 0);
  expect_refused(product, &of_x, "ends after");
  CUDA(cudaGetDeviceCount(&devices));
  if (devices > 1) {
    double* elsewhere = NULL;
    CUDA(cudaSetDevice((device + 1) % devices));
    CUDA(cudaMalloc((void**)&elsewhere, bytes_of(1) + 8));
    of_x = rank == last ? dense(elsewhere, 1, 1) : dense(x, 1, 0);
    expect_refused(product, &of_x, "uses GPU");
    if (rank == last) printf("       %s\n", shardmat_last_error()), fflush(stdout);
    CUDA(cudaFree(elsewhere));
    CUDA(cudaSetDevice(device));
  }
  of_x = dense(device_x, 1, 1);
  const shardmat_dense of_y = dense(y, 1, 0);
  OK(shardmat_product_multiply(product, 1, &of_x, 0, &of_y, NULL));
  expect_same(y, expected, bytes_of(1));
  CUDA(cudaFree(device_x)), CUDA(cudaFree(some));
  shardmat_product_destroy(product);
  end_case(devices > 1 ? "wrong memory, and another GPU" : "wrong memory");
}

static double seconds_of(shardmat_product* product, const shardmat_dense* of_x, const shardmat_dense* of_y) {
  enum { times = 20 };
  OK(shardmat_product_multiply(product, 1, of_x, 0, of_y, NULL));
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < times; ++i) OK(shardmat_product_multiply(product, 1, of_x, 0, of_y, NULL));
  return (MPI_Wtime() - start) / times;
}

static void takes_time(shardmat_context* context) {
  const int even[] = {1, 1, 1};
  make_rows(3000000, even);
  sizes = "3,000,000 rows";
  shardmat_matrix* a = make_matrix(context, 0);
  shardmat_product* product = make_product(a, 1);
  double *device_x = to_device(x, bytes_of(1)), *device_y = to_device(y, bytes_of(1));
  const shardmat_dense host_x = dense(x, 1, 0), host_y = dense(expected, 1, 0), of_x = dense(device_x, 1, 1),
                       of_y = dense(device_y, 1, 1);
  const double by_host = seconds_of(product, &host_x, &host_y), by_device = seconds_of(product, &of_x, &of_y);
  from_device(y, device_y, bytes_of(1));
  expect_same(y, expected, bytes_of(1));
  if (rank == 0)
    printf("       a product takes %.0f us with host memory, %.0f us with memory of the GPU\n", 1e6 * by_host,
           1e6 * by_device);
  CUDA(cudaFree(device_x)), CUDA(cudaFree(device_y));
  shardmat_product_destroy(product);
  shardmat_matrix_destroy(a);
  release_rows();
  end_case("a product of large vectors");
}

static void does_everything(shardmat_context* context, int64_t rows, const int* shares) {
  make_rows(rows, shares);
  shardmat_matrix* a = make_matrix(context, 0);
  multiplies(a, 1);
  multiplies(a, 3);
  mixes(a, 3);
  takes_parts_of_allocations(a);
  takes_new_allocations(a);
  waits_for_streams(a);
  takes_other_memory(context, a);
  takes_new_values(a);
  solves(a, 1, SHARDMAT_F64, 0, 0);
  solves(a, 1, SHARDMAT_F64, 0, 1);
  solves(a, 3, SHARDMAT_F64, 1, 0);
  solves(a, 3, SHARDMAT_F32, 0, 0);
  takes_rows(context, a);
  refuses(a);
  shardmat_matrix_destroy(a);
  release_rows();
}

int main(int argc, char** argv) {
  int provided = 0, devices = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0 || devices >= ranks) {
    if (rank == 0) printf("no feeders here: %d GPUs for %d ranks\n", devices, ranks);
    MPI_Finalize();
    return 77;
  }
  shardmat_context* context = NULL;
  const shardmat_context_options options = {.size = sizeof options, .backend = "cuda"};
  OK(shardmat_context_create_mpi(MPI_COMM_WORLD, &options, &context));
  if (context != NULL) {
    shardmat_context_info info = {.size = sizeof info};
    OK(shardmat_context_get_info(context, &info));
    CHECK(info.device >= 0);
    device = info.device, feeder = info.feeder;
    CUDA(cudaSetDevice(device));
    sizes = "context";
    end_case("the device of each rank");
    const int uneven[] = {1, 2, 3}, with_empty[] = {2, 0, 1};
    sizes = "60,000 rows";
    does_everything(context, 60000, uneven);
    sizes = "50 rows, none on a rank";
    does_everything(context, 50, with_empty);
    takes_time(context);
    shardmat_context_destroy(context);
  }
  if (rank == 0) printf("%s\n", failed_cases == 0 && context != NULL ? "All cases passed" : "Some cases FAILED");
  MPI_Finalize();
  return failed_cases != 0 || context == NULL;
}
