/* C interface to batched products of many small sparse matrices with dense ones, for bindings of frameworks:
 *
 *     Y = act(alpha·A·X + beta·Y + bias), matrix by matrix, X and Y stacked and row-major.
 *
 * Arrays are used where they lie, streams are the caller's, memory is the caller's, and its size can be asked for first.
 * Only shardmat_batched_check waits for the device. Functions return SHARDMAT_OK or what went wrong; then
 * shardmat_last_error() says it in words. A plan belongs to one thread at a time. */
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
  int type;   /* of values and X */
  int64_t count;
  /* In host memory, count + 1 entries each, beginning at 0 or anywhere: where the rows, columns and entries of a matrix
   * begin among those of all. Read while a plan is created, and by shardmat_batched_check. */
  const int64_t *first_row, *first_col, *first_entry;
  /* In memory of the device. Compressed rows: row_ptr, one entry more than rows, from 0, running on from matrix to matrix;
   * coordinates in any order: row_idx. The other one is NULL. Indices count within their matrix; duplicates add up. */
  const int32_t *row_ptr, *row_idx, *col_idx;
  const void* values;
} shardmat_batch;

typedef struct shardmat_batched_plan shardmat_batched_plan;

/* Work on the host only. `kernel`: a name of `shardmat batch --help`, or NULL for the one expected to be the fastest.
 * `policy`: "name=value,…", or NULL. *plan is NULL where this fails. The arrays on the device must stay as long as the plan;
 * what they hold may change. */
int shardmat_batched_plan_create(const shardmat_batch* batch, int64_t columns, const char* kernel, const char* policy,
                                 shardmat_batched_plan** plan);
void shardmat_batched_plan_destroy(shardmat_batched_plan* plan);
/* Name of the kernel taken; lives as long as the plan. */
const char* shardmat_batched_plan_kernel(const shardmat_batched_plan* plan);

/* Memory of the device, 256-byte aligned, that the plan needs as long as it runs; and memory of the host, page-locked if
 * nothing is to wait, until the stream has passed shardmat_batched_plan_place. Either may be 0 bytes, then NULL will do. */
size_t shardmat_batched_plan_work_bytes(const shardmat_batched_plan* plan);
size_t shardmat_batched_plan_staging_bytes(const shardmat_batched_plan* plan);
/* Once, before the first product, in stream order; not to be captured into a graph. `stream`, here and below: a
 * cudaStream_t, NULL for CUDA's legacy default stream; not looked at on the host. */
int shardmat_batched_plan_place(shardmat_batched_plan* plan, void* work, void* staging, void* stream);

/* In stream order; may be captured into a CUDA graph. ldx, ldy: entries from one row to the next. Y must not overlap X. With
 * beta 0, Y is only written. bias: one entry a column, or NULL. relu: 0, or 1 for act(v) = max(v, 0). */
int shardmat_batched_multiply(const shardmat_batched_plan* plan, double alpha, const void* x, int64_t ldx, double beta,
                              void* y, int64_t ldy, const void* bias, int relu, void* stream);

/* Graph convolutions, Y = act(alpha·A·X·W + beta·Y + bias), in one launch: batches in compressed rows; on a GPU f32, up to
 * 128 features in and out, and compute capability 8.0 or later. What is said above of plans holds for these, too, but for
 * shardmat_batched_multiply and shardmat_batched_plan_kernel. W is of the batch's type, in × out, row-major, rows ldw
 * entries apart; Y must overlap neither X nor W. On a GPU the product with W runs in three terms of TF32, with errors of the
 * order of f32's; infinite features or weights, and those of 3.402e38 and more, make NaN. */
int shardmat_batched_features_create(const shardmat_batch* batch, int64_t in, int64_t out, shardmat_batched_plan** plan);
int shardmat_batched_features(const shardmat_batched_plan* plan, double alpha, const void* x, int64_t ldx, const void* w,
                              int64_t ldw, double beta, void* y, int64_t ldy, const void* bias, int relu, void* stream);

/* The transposes of a batch in compressed rows, for Aᵀ·X: into row_ptr (rows of X + 1 entries), col_idx and values.
 * `offsets`: 2·(count + 1) int32 of the device, first_row and first_col from 0. Its batch has first_row and first_col
 * exchanged. */
int shardmat_batched_transpose_work_bytes(const shardmat_batch* batch, size_t* bytes);
int shardmat_batched_transpose(const shardmat_batch* batch, const int32_t* offsets, int32_t* row_ptr, int32_t* col_idx,
                               void* values, void* work, void* stream);

/* SHARDMAT_INPUT if an index leaves its matrix; shardmat_last_error() names matrix and entry. Waits for the device. */
int shardmat_batched_check(const shardmat_batch* batch, void* stream);

/* Of this thread; "" if nothing went wrong so far. */
const char* shardmat_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
