/* C interface to batched products of many small sparse matrices with dense ones, for bindings of frameworks:
 *
 *     Y = act(alpha·A·X + beta·Y + bias), matrix by matrix, X and Y stacked and row-major. With alpha = 0, X is not read;
 * the call then allocates as many zeros, and waits.
 *
 * Arrays are used in place. The caller owns streams and memory; functions return the sizes of the memory that is needed.
 * Only shardmat_batched_check waits for the device. Functions return SHARDMAT_OK or an error code; shardmat_last_error()
 * then returns a message. Threads: any thread; a plan belongs to one thread at a time. Nothing is collective. */
#ifndef SHARDMAT_BATCHED_H
#define SHARDMAT_BATCHED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SHARDMAT_OK = 0, SHARDMAT_INTERNAL = 1, SHARDMAT_USAGE = 2, SHARDMAT_INPUT = 3, SHARDMAT_RESOURCES = 4 };
enum { SHARDMAT_F32 = 0, SHARDMAT_F64 = 1, SHARDMAT_F16 = 2, SHARDMAT_BF16 = 3 };

/* Sums, Y and the bias of an f16 or bf16 batch are f32. */
typedef struct {
  int device; /* as CUDA numbers them; -1: the host */
  int type;   /* type of values and X */
  int64_t count;
  /* In host memory, count + 1 offsets each, from any number: where the rows, columns and entries of each matrix begin. Read
   * while a plan is created, and by shardmat_batched_check. */
  const int64_t *first_row, *first_col, *first_entry;
  /* In device memory. For compressed rows: row_ptr, rows + 1 offsets from 0, continued from matrix to matrix; row_idx is
   * NULL. For coordinates in any order: row_idx; row_ptr is NULL. Indices count within their matrix; duplicates are summed.
   */
  const int32_t *row_ptr, *row_idx, *col_idx;
  const void* values;
} shardmat_batch;

typedef struct shardmat_batched_plan shardmat_batched_plan;

/* Uses the host only. `kernel`: a name from `shardmat batch --help`, or NULL for the kernel predicted to be fastest.
 * `policy`: "name=value,…", or NULL. On failure *plan is NULL. The arrays on the device must stay valid as long as the plan;
 * their contents may change. */
int shardmat_batched_plan_create(const shardmat_batch* batch, int64_t columns, const char* kernel, const char* policy,
                                 shardmat_batched_plan** plan);
void shardmat_batched_plan_destroy(shardmat_batched_plan* plan);
/* Name of the chosen kernel; valid as long as the plan. */
const char* shardmat_batched_plan_kernel(const shardmat_batched_plan* plan);

/* work: device memory, 256-byte aligned, that the plan needs as long as it runs. staging: host memory, needed until the
 * stream has passed shardmat_batched_plan_place; with page-locked memory nothing waits. For 0 bytes, pass NULL. */
size_t shardmat_batched_plan_work_bytes(const shardmat_batched_plan* plan);
size_t shardmat_batched_plan_staging_bytes(const shardmat_batched_plan* plan);
/* Call it once, before the first product; in stream order; do not capture it into a graph. `stream`, here and below: a
 * cudaStream_t, or NULL for CUDA's legacy default stream; ignored on the host. */
int shardmat_batched_plan_place(shardmat_batched_plan* plan, void* work, void* staging, void* stream);

/* In stream order; may be captured into a CUDA graph. ldx, ldy: entries from one row to the next. Y must not overlap X. If
 * beta is 0, Y is only written. bias: one entry for each column, or NULL. relu: 0, or 1 for act(v) = max(v, 0). */
int shardmat_batched_multiply(const shardmat_batched_plan* plan, double alpha, const void* x, int64_t ldx, double beta,
                              void* y, int64_t ldy, const void* bias, int relu, void* stream);

/* Graph convolutions, Y = act(alpha·A·X·W + beta·Y + bias), in one launch. The batch is in compressed rows; on a GPU: f32,
 * up to 128 features in and out, compute capability 8.0 or later. The functions for plans above work for these plans, too,
 * except shardmat_batched_multiply and shardmat_batched_plan_kernel. W has the batch's type, in × out, row-major, rows ldw
 * entries apart; Y must overlap neither X nor W. On a GPU the product with W runs in three terms of TF32, with errors of the
 * order of f32 errors; infinite features or weights, and those of 3.402e38 and more, give NaN. */
int shardmat_batched_features_create(const shardmat_batch* batch, int64_t in, int64_t out, shardmat_batched_plan** plan);
int shardmat_batched_features(const shardmat_batched_plan* plan, double alpha, const void* x, int64_t ldx, const void* w,
                              int64_t ldw, double beta, void* y, int64_t ldy, const void* bias, int relu, void* stream);

/* Transposes a batch in compressed rows, for Aᵀ·X, into row_ptr (rows of X + 1 entries), col_idx and values. `offsets`:
 * 2·(count + 1) int32 in device memory: first_row, then first_col, both from 0. In the transposed batch, first_row and
 * first_col are exchanged. */
int shardmat_batched_transpose_work_bytes(const shardmat_batch* batch, size_t* bytes);
int shardmat_batched_transpose(const shardmat_batch* batch, const int32_t* offsets, int32_t* row_ptr, int32_t* col_idx,
                               void* values, void* work, void* stream);

/* Returns SHARDMAT_INPUT if an index is outside its matrix; shardmat_last_error() names matrix and entry. Waits for the
 * device. */
int shardmat_batched_check(const shardmat_batch* batch, void* stream);

/* The last error message of this thread; "" if there was no error. */
const char* shardmat_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
