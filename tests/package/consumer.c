/* The C interface from C: what a binding of another language sees. */
#include <shardmat/kernels/batched/shardmat_batched.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  const int64_t first_row[] = {0, 2, 3}, first_col[] = {0, 2, 3}, first_entry[] = {0, 2, 3};
  const int32_t row_ptr[] = {0, 1, 2, 3}, col_idx[] = {1, 0, 0};
  const float values[] = {2, 3, 4}, x[] = {1, 10, 100};
  float y[3];
  char work[1], staging[1];
  shardmat_batch batch = {-1, SHARDMAT_F32, 2, first_row, first_col, first_entry, row_ptr, NULL, col_idx, values};
  shardmat_batched_plan* plan = NULL;
  if (shardmat_batched_check(&batch, NULL) != SHARDMAT_OK ||
      shardmat_batched_plan_create(&batch, 1, NULL, NULL, &plan) != SHARDMAT_OK ||
      shardmat_batched_plan_work_bytes(plan) != 0 ||
      shardmat_batched_plan_place(plan, work, staging, NULL) != SHARDMAT_OK ||
      shardmat_batched_multiply(plan, 1, x, 1, 0, y, 1, NULL, 0, NULL) != SHARDMAT_OK) {
    fprintf(stderr, "%s\n", shardmat_last_error());
    return 1;
  }
  shardmat_batched_plan_destroy(plan);
  if (y[0] != 20 || y[1] != 3 || y[2] != 400) return 1;
  puts("the C interface multiplies");
  return 0;
}
