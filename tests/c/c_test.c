/* The C interface from C, on one process without MPI: c_test; or with MPI on any number of ranks: c_test_mpi. On the host,
 * or with TEST_BACKEND=cuda on GPUs. Here: what the parts share, and contexts, memory, files, fork(). */
#include <sys/wait.h>
#include <unistd.h>

#include "c_checks.h"

int rank = 0, ranks = 1, failures = 0;
int feeder = 0;

const char* backend(void) { return getenv("TEST_BACKEND") != NULL ? getenv("TEST_BACKEND") : "host"; }
int on_host(void) { return strcmp(backend(), "host") == 0; }

tridiagonal make_rows(int64_t n) {
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

double x_of(int64_t i) { return i < 0 || i >= 48 ? 0 : (double)(i * i % 7) - 2; }
double ax_of(int64_t i) { return 2 * x_of(i) - x_of(i - 1) - x_of(i + 1); }

shardmat_rows rows_of(const tridiagonal* t) {
  return (shardmat_rows){.size = sizeof(shardmat_rows),
                         .first_row = t->first,
                         .rows = t->rows,
                         .cols = t->n,
                         .row_ptr = t->row_ptr,
                         .columns = t->columns,
                         .values = t->values,
                         .value_type = SHARDMAT_F64};
}

shardmat_matrix* make_matrix(shardmat_context* context, const shardmat_matrix_options* options) {
  const tridiagonal t = make_rows(48);
  const shardmat_rows rows = rows_of(&t);
  shardmat_matrix* matrix = NULL;
  OK(shardmat_matrix_from_rows(context, &rows, options, &matrix));
  return matrix;
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
