/* MPI started for one thread: that thread uses a context, another one is refused. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "shardmat_mpi.h"

static shardmat_context* context = NULL;
static int status_of_other = -1;

static void* use(void* unused) {
  shardmat_matrix* a = NULL;
  status_of_other = shardmat_matrix_from_file(context, "poisson7:n=4", NULL, &a);
  if (strstr(shardmat_last_error(), "MPI_THREAD_FUNNELED") == NULL) status_of_other = -2;
  return unused;
}

int main(int argc, char** argv) {
  int provided, status;
  shardmat_matrix* a = NULL;
  pthread_t other;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  if (provided > MPI_THREAD_FUNNELED) return MPI_Finalize(), 77; /* this MPI gives more than asked for */
  status = shardmat_context_create_mpi(MPI_COMM_WORLD, NULL, &context);
  if (status == SHARDMAT_OK) status = shardmat_matrix_from_file(context, "poisson7:n=4", NULL, &a);
  if (status != SHARDMAT_OK) puts(shardmat_last_error());
  if (pthread_create(&other, NULL, use, NULL) != 0 || pthread_join(other, NULL) != 0) return 1;
  shardmat_matrix_destroy(a);
  shardmat_context_destroy(context);
  MPI_Finalize();
  if (status_of_other != SHARDMAT_USAGE) printf("another thread: %d\n", status_of_other);
  return status == SHARDMAT_OK && status_of_other == SHARDMAT_USAGE ? 0 : 1;
}
