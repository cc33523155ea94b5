/* A C program with a folder kernels of its own beside the package's. */
#include <shardmat/kernels/batched/shardmat_batched.h>
#include <stdio.h>

#include "kernels/batched/shardmat_batched.h"

int main(void) {
  if (OWN_BATCHES != 3 || SHARDMAT_OK != 0 || shardmat_last_error() == NULL) return 1;
  puts("a C program keeps its own kernels");
  return 0;
}
