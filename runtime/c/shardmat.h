/* The C interface of Shardmat: distributed sparse matrices, their products, solvers. Start here.
 *
 *     shardmat_context* context;                                    // this process alone; MPI: see shardmat_mpi.h
 *     shardmat_matrix* a;
 *     shardmat_rows rows = {.size = sizeof rows, .rows = n, .cols = n, .row_ptr = ..., .columns = ..., .values = ...,
 *                           .value_type = SHARDMAT_F64};
 *     if (shardmat_context_create(NULL, &context) != SHARDMAT_OK) puts(shardmat_last_error());
 *     shardmat_matrix_from_rows(context, &rows, NULL, &a);
 *     shardmat_spmv(a, 1, x, 0, y);                                 // y = A*x
 *     shardmat_matrix_destroy(a);
 *     shardmat_context_destroy(context);
 *
 * Errors. Functions return SHARDMAT_OK or another status; shardmat_last_error() then gives the message. No C++ exception
 * leaves a function. A handle that could not be made is set to NULL.
 *
 * Ranks. Functions that say "collective" are called by all ranks of the context in the same order. An error that can be
 * foreseen is returned on all ranks alike, and everything stays usable. After SHARDMAT_RANK_LOST the context is broken, and
 * the program should end with MPI_Abort. An MPI call that does not return within the timeout, because a rank died or was
 * stopped inside MPI, can return no status: a message goes to stderr, and the process ends with exit code 5. On the host,
 * destroying a handle waits for nobody, but all ranks should do it before MPI_Finalize. On several GPUs the last handle of a
 * context ends NCCL: all ranks destroy it at the same point of the program, or wait for each other until the timeout.
 *
 * Threads. Any thread may call; calls for one context and all that belongs to it wait for each other. With several ranks,
 * collective calls must come in the same order on all of them, so give such a context to one thread of each rank at a time.
 * Two contexts may be used at once by two threads; with MPI this needs MPI_THREAD_MULTIPLE and two communicators. A handle
 * is destroyed once, when no other call uses it. The order in which handles are destroyed does not matter.
 *
 * fork(). A context belongs to the process that made it: calls in a child return SHARDMAT_USAGE. After a context used a GPU
 * or several host threads, a child can make no context of its own either. Start such processes with exec.
 *
 * Arrays of the caller are read or written during a call only, unless its description says more. Sizes are 64-bit.
 *
 * Structs that begin with `size` grow with later versions: set `size` to sizeof of the struct and the rest to 0 or NULL,
 * which are the defaults. A library that does not know a field which you set says so.
 *
 * Binary interface. A program that was linked with libshardmat.so.0 runs with every later libshardmat.so.0. Functions and
 * fields are only added. A change that breaks programs needs a new soname, libshardmat.so.1.
 */
#ifndef SHARDMAT_H
#define SHARDMAT_H

#include <stddef.h>
#include <stdint.h>

/* The statuses, the types of values, shardmat_last_error(), and batches of many small matrices. */
#include "shardmat_batched.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Further statuses. Functions that solve return SHARDMAT_NOT_CONVERGED with the last x and complete results. */
enum { SHARDMAT_RANK_LOST = 5, SHARDMAT_VERIFICATION = 6, SHARDMAT_NOT_CONVERGED = 7 };

/* "0.2.0". */
const char* shardmat_version(void);

/* ---- Feeders ----
 * With more ranks than GPUs, consecutive ranks of a host form a group for each GPU. The lowest rank of a group owns the GPU;
 * the others, its feeders, hand rows, x and b to it through shared memory, and sleep until it is done. All ranks call the
 * same functions as without feeders, and each gives and takes the entries of its own rows. Then:
 * - Arrays lie in host memory, or in memory of the owner's GPU (on_device), which every feeder sees as the device of its
 *   context. Ranks may differ. Memory of another GPU is refused.
 * - Vectors and new values from cudaMalloc(), also parts of such memory as CuPy and PyTorch give them, are copied on the
 *   GPU: the owner opens them (CUDA IPC). It keeps them open until the first product, solve or new values after they were
 *   freed; only then does the GPU have this memory back. Other memory of a GPU cannot be opened by another process (pools of
 *   cudaMallocAsync(), cuMemCreate(), managed memory): feeders copy it through host memory. They do the same with rows and
 *   triplets, and with b and x of a solve in another type than the matrix's sum_type.
 * - Calls that take a stream wait until it has passed the work given to it so far (a feeder without a stream: until the
 *   default streams have), and return when they are done. A CUDA graph cannot record them.
 * - A matrix of a file is on the owners: its feeders have own_rows = 0. A partitioner (`method`) takes own rows only if the
 *   rows of each group follow each other.
 * - An error of any rank's arguments is returned on all ranks. Monitors of solves are called on feeders about ten times a
 *   second and at the end; monitors of PageRank on owners only.
 * - Feeders do not multiply: batches return SHARDMAT_USAGE there.
 */

/* ---- Contexts: the ranks, the device of this rank, its host threads ---- */

typedef struct shardmat_context shardmat_context;

typedef struct {
  size_t size;
  const char* backend;    /* "auto", "host" or "cuda"; NULL: auto, which takes a GPU if every rank has one */
  int threads;            /* host threads of each rank; 0: OMP_NUM_THREADS, or its share of the cores */
  double timeout_seconds; /* longest wait for other ranks; 0: 60. Below MPI_THREAD_MULTIPLE files may take ten times this */
  int owners;             /* on the host: ranks of each host that own rows; 0: all */
  int no_feeders;         /* 1: more ranks than GPUs are refused */
} shardmat_context_options;

/* This process alone. Makes no MPI call, now or later. `options` may be NULL. */
int shardmat_context_create(const shardmat_context_options* options, shardmat_context** context);
/* The ranks of an MPI communicator, by its Fortran handle, as MPI_Comm_c2f() returns it; C programs take
 * shardmat_context_create_mpi() of shardmat_mpi.h. The library uses a private duplicate. REQUIRES: the caller started MPI
 * with MPI_THREAD_SERIALIZED or more, and ends it; MPI_THREAD_FUNNELED is enough for contexts that only the thread which
 * started MPI uses. Collective. */
int shardmat_context_create_fortran(int32_t communicator, const shardmat_context_options* options,
                                    shardmat_context** context);
void shardmat_context_destroy(shardmat_context* context);
/* For a program that ends while another thread is in a call of this context: waits for other ranks, now or later, end with
 * SHARDMAT_RANK_LOST. The context is broken then. Does not wait for that call, and may be called from any thread. */
int shardmat_context_give_up(shardmat_context* context);

typedef struct {
  size_t size;
  int rank, ranks;     /* this rank's number, and how many there are */
  int threads;         /* host threads of this rank */
  int device;          /* as CUDA numbers them, of a feeder that of its owner; -1: the host */
  const char* backend; /* "host" or "cuda" */
  const char* name;    /* of the device; both texts are valid as long as the context */
  int feeder;          /* 1: this rank hands its rows to another rank of its host, see "Feeders" */
} shardmat_context_info;

/* Fills as many bytes as info->size says. The same holds for all functions named get_info. */
int shardmat_context_get_info(shardmat_context* context, shardmat_context_info* info);
/* The stream on which work runs unless a call names another: a cudaStream_t; NULL on the host, and on a feeder. */
int shardmat_context_stream(shardmat_context* context, void** stream);
/* Memory of the context's device (info.device), aligned to 256 bytes, for programs that have no CUDA of their own. Freed by
 * shardmat_context_free(), or with the context. */
int shardmat_context_allocate(shardmat_context* context, size_t bytes, void** memory);
int shardmat_context_free(shardmat_context* context, void* memory);

/* ---- Matrices ---- */

typedef struct shardmat_matrix shardmat_matrix;

typedef struct {
  size_t size;
  /* Type of the stored values and of x: "f64", "f32", "f16" or "bf16"; NULL: that of the values given; of a file: f64. Half
   * precision multiplies two and more columns. Y has f32 where x has half precision, else the type of x. */
  const char* type;
  const char* method;   /* partitioner: "nnz", "rows". NULL: own rows stay on the ranks that gave them; of a file: nnz */
  const char* kernel;   /* NULL: chosen */
  const char* policy;   /* "name=value,…" for a named kernel */
  const char* exchange; /* NULL: chosen */
  const char* storage;  /* "general" or "symmetric": half of a matrix that is symmetric within rounding, on the host;
                         * where a_ij and a_ji differ, their mean. NULL: general */
  int64_t columns;      /* right-hand sides of the first product, for which the order of x is chosen; 0: 1 */
  double products;      /* how many products are expected; 0: 2000. Few: kernels are chosen without measuring */
  int updatable;        /* 1: new values may be given later, for 4 bytes a nonzero more */
  int reproducible;     /* 1: only kernels with the same bits in every run */
  /* 1: frees the rows in host memory when the first product is made. Later products then use its formats, and what needs the
   * rows (new solvers with preconditioners, zero_rows_columns) is refused. */
  int drop_rows;
  int transposed; /* of a file: 1 gives its transpose */
  /* Unknowns of a node, whose rows follow each other: a partitioner keeps them on one rank, and block_jacobi takes blocks of
   * this size. It must divide the number of rows. 0: as the file says, else found in the pattern. */
  int node_block_size;
} shardmat_matrix_options;

/* This rank's rows, compressed, with global columns in any order. The ranges of all ranks tile the rows of the matrix. A
 * square matrix gives each rank the entries of x and y in its range; of any other matrix, each rank has an even share of x.
 */
typedef struct {
  size_t size;
  int64_t first_row, rows; /* this rank's range */
  int64_t cols;            /* of the whole matrix */
  const int64_t* row_ptr;  /* rows + 1 offsets; the first may be any */
  const int64_t* columns;  /* as many as row_ptr spans; each once in a row */
  const void* values;      /* as many, of value_type */
  int value_type;          /* SHARDMAT_F64 or SHARDMAT_F32 */
  int on_device;           /* 1: the three arrays lie in memory of the context's GPU, and nothing writes them any more */
} shardmat_rows;

/* Entries of any rows, in any order. Those of the same place are summed; the owner of their row gets them. */
typedef struct {
  size_t size;
  int64_t first_row, rows;     /* the rows that this rank owns then */
  int64_t cols;                /* of the whole matrix */
  int64_t count;               /* entries given on this rank */
  const int64_t *row, *column; /* global */
  const void* values;
  int value_type; /* SHARDMAT_F64 or SHARDMAT_F32 */
  int on_device;  /* as in shardmat_rows */
} shardmat_triplets;

/* Collective, all three. The arrays are copied. `options` may be NULL. */
int shardmat_matrix_from_rows(shardmat_context* context, const shardmat_rows* rows, const shardmat_matrix_options* options,
                              shardmat_matrix** matrix);
int shardmat_matrix_from_triplets(shardmat_context* context, const shardmat_triplets* triplets,
                                  const shardmat_matrix_options* options, shardmat_matrix** matrix);
/* A matrix file or a generator, as `shardmat multiply` takes them: "bar.h5", "bar.mtx.gz", "elasticity:n=40". */
int shardmat_matrix_from_file(shardmat_context* context, const char* file, const shardmat_matrix_options* options,
                              shardmat_matrix** matrix);
/* The size of the matrix in a file, without loading it onto the devices. Collective. */
int shardmat_file_shape(shardmat_context* context, const char* file, int64_t* rows, int64_t* cols);
void shardmat_matrix_destroy(shardmat_matrix* matrix);

typedef struct {
  size_t size;
  int64_t rows, cols, nnz; /* of the whole matrix */
  int64_t own_rows;        /* entries of y, b and other vectors of rows that this rank gives and takes */
  int64_t own_cols;        /* entries of x, or of other vectors of columns, that this rank gives and takes */
  int64_t own_values;      /* values that this rank gives to shardmat_matrix_update_values() */
  int type, sum_type;      /* of x, and of y: SHARDMAT_F64 … */
  int updatable;
  int64_t device_bytes;    /* of the stored rows on this rank's device */
  int64_t host_bytes;      /* of the rows in host memory */
  int64_t node_block_size; /* unknowns of a node, as given, stored in the file or found in the pattern; 1: no such nodes */
} shardmat_matrix_info;

int shardmat_matrix_get_info(shardmat_matrix* matrix, shardmat_matrix_info* info);
/* The global number of each of this rank's rows (own_rows), or entries of x (own_cols), in the order in which vectors have
 * them. Not for rows that a partitioner spread anew: their vectors are in the rows that the caller gave. */
int shardmat_matrix_row_ids(shardmat_matrix* matrix, int64_t* ids);
int shardmat_matrix_col_ids(shardmat_matrix* matrix, int64_t* ids);

/* New values on the same pattern, of this rank's entries in the order in which they were given (of a file: rows in its
 * order). `type`: SHARDMAT_F64 or SHARDMAT_F32. NaN and infinity are refused in host memory, and not looked for on
 * a device. `stream`: as of shardmat_product_multiply(); values on the device must stay until the stream has passed.
 * Collective. */
int shardmat_matrix_update_values(shardmat_matrix* matrix, const void* values, int64_t count, int type, int on_device,
                                  void* stream);

/* Puts zeros into these rows and columns of a square, updatable matrix, and `diagonal` on their diagonals, as PETSc's
 * MatZeroRowsColumns: for boundary values x that are known. Only values change: the pattern stays, and must have the
 * diagonal entries unless `diagonal` is 0. Each rank names any rows, by global number; a row may be named more than once.
 * With x and b (own_rows entries in host memory, of sum_type; both or neither on all ranks): b loses A*x of the zeroed
 * columns, and is diagonal*x in the zeroed rows. Needs the rows in host memory. Collective. */
int shardmat_matrix_zero_rows_columns(shardmat_matrix* matrix, const int64_t* rows, int64_t count, double diagonal,
                                      const void* x, void* b);

/* ---- Products ---- */

/* Y = alpha*A*X + beta*Y of the matrix's own types, in host memory, row by row: this rank's own_cols × columns entries of X,
 * and own_rows × columns of Y. Y is only written if beta is 0. The product for this number of columns is made by the first
 * call with it and kept as long as the matrix. The ranks compare `columns` in that call alone. Later, as with alpha and
 * beta in every call, nobody compares them: that would cost each product a message. All three must be the same on all
 * ranks. Returns when Y is complete. Collective. */
int shardmat_spmv(shardmat_matrix* matrix, double alpha, const void* x, double beta, void* y);
int shardmat_spmm(shardmat_matrix* matrix, int64_t columns, double alpha, const void* x, double beta, void* y);
/* The same with the transpose of the matrix, from the rows that are stored once: own_rows × columns entries of X, and
 * own_cols × columns of Y. Not of a matrix in f16 or bf16. On a GPU, and for formats other than csr, bcsr and packed, the
 * first call makes a map of 8 bytes a nonzero from the rows in host memory. */
int shardmat_spmv_transposed(shardmat_matrix* matrix, double alpha, const void* x, double beta, void* y);
int shardmat_spmm_transposed(shardmat_matrix* matrix, int64_t columns, double alpha, const void* x, double beta, void* y);

typedef struct shardmat_product shardmat_product;

typedef struct {
  size_t size;
  const char* kernel;   /* NULL: that of the matrix, or chosen */
  const char* exchange; /* NULL: that of the matrix, or chosen */
  int column_major_y;   /* 1: takes a column-major Y, too, with a copy of Y on the device */
  int64_t transposed;   /* 1: with the transpose (shardmat_spmm_transposed()); Y in either order, no other option */
} shardmat_product_options;

/* A product for a number of right-hand sides; any number of products may exist. Collective. `options` may be NULL. */
int shardmat_product_create(shardmat_matrix* matrix, int64_t columns, const shardmat_product_options* options,
                            shardmat_product** product);
void shardmat_product_destroy(shardmat_product* product);

/* A dense matrix in memory of the caller. This struct stays as it is. */
typedef struct {
  void* data;
  int64_t rows, columns;
  int64_t leading;  /* entries from one row to the next; column-major: from one column to the next */
  int column_major; /* 0: row-major */
  int type;         /* SHARDMAT_F64 … */
  int on_device;    /* 1: memory of the context's GPU; 0: of the host */
} shardmat_dense;

/* Y = alpha*A*X + beta*Y. X: own_cols × columns of the matrix's type; Y: own_rows × columns of its sum_type. `stream`: NULL:
 * returns when Y is complete; else a cudaStream_t in whose order it works, without waiting if X and Y are on the device (so
 * that a CUDA graph can record it); ignored on the host. alpha and beta must be the same on all ranks; nobody compares them.
 * Collective. An error of a rank's own arguments comes before anything moves and on this rank alone. */
int shardmat_product_multiply(shardmat_product* product, double alpha, const shardmat_dense* x, double beta,
                              const shardmat_dense* y, void* stream);
/* The memory that the product reads X from, own_cols × columns, row-major, on the context's device: passing it as x->data
 * saves a copy. *data is NULL where the matrix keeps its rows in another order than the caller, as on several ranks. */
int shardmat_product_x(shardmat_product* product, void** data);

typedef struct {
  size_t size;
  int64_t columns;
  int64_t device_bytes;   /* of X, of what moves it, and of the plans */
  int64_t bytes_received; /* from other ranks, for one product */
  const char* kernel;     /* "csr_host", with its tunables; the texts are valid as long as the product */
  const char* why;        /* why this kernel */
  const char* exchange;   /* "none" for one rank */
} shardmat_product_info;

int shardmat_product_get_info(shardmat_product* product, shardmat_product_info* info);

/* ---- Batches of many small matrices, on this rank alone ----
 * The functions shardmat_batched_… of shardmat_batched.h use the caller's arrays and memory in place, for frameworks. Here
 * the library owns a copy on the context's device. */

typedef struct shardmat_batch_product shardmat_batch_product;

/* `batch`: arrays in host memory; its `device` is ignored. A product with X of `columns` columns. `kernel`: a name from
 * `shardmat batch --help`, or NULL: chosen. */
int shardmat_batch_product_create(shardmat_context* context, const shardmat_batch* batch, int64_t columns,
                                  const char* kernel, shardmat_batch_product** product);
void shardmat_batch_product_destroy(shardmat_batch_product* product);
/* Y = alpha*A*X + beta*Y, matrix by matrix; X and Y are stacked and row-major. Y has f32 where the batch is half precision.
 * `stream`: as of shardmat_product_multiply(). */
int shardmat_batch_product_multiply(shardmat_batch_product* product, double alpha, const shardmat_dense* x, double beta,
                                    const shardmat_dense* y, void* stream);
/* Name of the kernel; valid as long as the product. */
const char* shardmat_batch_product_kernel(const shardmat_batch_product* product);

/* ---- PageRank ---- */

typedef struct {
  size_t size;
  double damping;         /* probability that the walk goes on along an edge; 0: 0.85 */
  double tolerance;       /* of the change of one iteration in the L1 norm; 0: 1e-10 */
  int64_t max_iterations; /* 0: 1000 */
  int unweighted;         /* 1: every stored entry counts as weight 1 */
  int64_t columns;        /* restart distributions at once; 0: 1 */
  int (*monitor)(void* user, int64_t iterations, const double* changes, int64_t columns); /* as of shardmat_solver_options */
  void* user;
} shardmat_pagerank_options;

typedef struct {
  size_t size;
  int converged;
  int64_t iterations;
  int64_t dangling; /* vertices without weight on outgoing edges */
  double change;    /* of the last iteration, the largest of the columns */
  double seconds;
} shardmat_pagerank_result;

/* The scores of the vertices of the graph whose entry (i, j) is the weight of an edge from i to j. `graph`: a file or
 * generator as for shardmat_matrix_from_file(). On rank 0, in the order of the graph: `restarts`, vertices × columns
 * weights, or NULL: uniform; `scores`: room for as many; other ranks pass NULL. `options`, `result`: may be NULL.
 * Collective. */
int shardmat_pagerank_of_file(shardmat_context* context, const char* graph, const shardmat_pagerank_options* options,
                              const double* restarts, double* scores, shardmat_pagerank_result* result);
/* The same of the rows of a program; in a context of one rank. */
int shardmat_pagerank_of_rows(shardmat_context* context, const shardmat_rows* graph,
                              const shardmat_pagerank_options* options, const double* restarts, double* scores,
                              shardmat_pagerank_result* result);

/* ---- Eigenvalues ---- */

typedef struct {
  size_t size;
  int64_t count;    /* wanted eigenvalues, with "both" of each end; 0: 1 */
  double tolerance; /* lobpcg, shift_invert: of |Kx - lambda Mx| / (lambda |Mx|), 0: 1e-8; lanczos: of the residual over
                     * the largest magnitude of an eigenvalue, 0: 1e-10 */
  int64_t max_iterations; /* 0: 500 blocks, or 10000 products of lanczos */
  int64_t guard;          /* lobpcg: vectors beside the wanted ones; 0: chosen */
  int64_t seed;           /* of random vectors; 0: 1 */
  double shift;           /* shift_invert: eigenvalues nearest to it, if has_shift is 1 */
  int has_shift;
  int no_confirm;       /* 1: does not look for missing eigenvalues */
  int assume_symmetric; /* 1: does not check that the matrices are symmetric */
  const char* method; /* "lanczos", "lobpcg" (smallest ones, multigrid of K), "shift_invert" (factors of K - shift*M); NULL:
                       * shift_invert with a shift, lobpcg with M, else lanczos */
  const char* which;  /* of lanczos: "largest", "smallest" or "both"; NULL: largest; the other methods: smallest */
  const double* x0;   /* own_rows * x0_columns, row by row: vectors to begin with, not of lanczos; NULL: random ones */
  int64_t x0_columns;
  const double* coordinates; /* lobpcg, minres: as of shardmat_solver_options */
  int64_t nodes;
  int32_t dimensions;
  int (*monitor)(void* user, int64_t iterations, const double* numbers, int64_t columns); /* as of shardmat_solver_options;
                                                                                           * residuals of the wanted pairs */
  void* user;
  /* shift_invert, how systems with K - shift*M are solved: "factors", "minres" (with multigrid, for pairs whose factors do
   * not fit in memory; nothing counts eigenvalues) or "auto"; NULL: auto, factors where they are to be had and fit. */
  const char* inner;
  int check_count; /* lobpcg: 1: factors count the eigenvalues also of more than 3000 rows */
} shardmat_eigen_options;

typedef struct {
  size_t size;
  int converged;
  int confirmed; /* 1: factors or a random vector showed that no eigenvalue is missing */
  int64_t count; /* values that were written */
  int64_t iterations;
  int64_t zero_modes;   /* values that are 0 up to rounding: motions of bodies that nothing holds */
  int64_t missing;      /* eigenvalues among those found that factors count and were not found; less than 0: not counted */
  double residual;      /* the largest relative one; zero modes aside */
  double orthogonality; /* the largest |x_i*M*x_j - delta_ij| */
  double setup_seconds, seconds;
} shardmat_eigen_result;

/* Eigenvalues of K*x = lambda*M*x, or of K*x = lambda*x with m = NULL, in ascending order, on the host (lanczos: also on a
 * GPU). K and M are symmetric, in f64 (lanczos: also f32), of one context, and have their rows in host memory; M is positive
 * definite. Rows of K that are those of the identity state known values if there is an M: they are left out. `values`: room
 * for `count`, with "both" twice as many. `vectors`: own_rows * as many, row by row, x*M*x = 1; or NULL on all ranks.
 * `options`, `found`: may be NULL. Collective. */
int shardmat_eigen(shardmat_matrix* k, shardmat_matrix* m, const shardmat_eigen_options* options, double* values,
                   double* vectors, shardmat_eigen_result* found);

/* ---- Solving A*X = B ---- */

typedef struct shardmat_solver shardmat_solver;

typedef struct {
  size_t size;
  const char* solver;         /* "cg", "gmres" or another that shardmat_solver_settings() names; NULL: auto */
  const char* preconditioner; /* the same: "jacobi" …; NULL: auto */
  const char* null_space;     /* "none", "constant", "rigid" or "auto"; NULL: auto */
  const char* residual_norm;  /* which norm is compared; NULL: unpreconditioned */
  double rtol;                /* of the norm of b; 0: 1e-8, for a matrix in f32 1e-5; less than 0: none */
  double atol;                /* of the residual itself */
  int64_t max_iterations;     /* 0: 10000 */
  int64_t restart;            /* of gmres and fgmres; 0: 30 */
  int node_block_size;        /* of block_jacobi, 1 to 6; 0: that of the matrix, or 1 if ranks have parts of nodes */
  int degree;                 /* of chebyshev as a preconditioner; 0: 4 */
  int assume_symmetric;       /* 1: does not check that the matrix is symmetric */
  int64_t columns;            /* right-hand sides solved at once; 0: 1 */
  /* Called on every rank now and then, if not NULL: the iterations so far, and the norm of each column's residual. Returns 0
   * to go on; anything else on any rank ends the solve. Must not call functions of this context. */
  int (*monitor)(void* user, int64_t iterations, const double* norms, int64_t columns);
  void* user;
  /* Of cg: "classic", "single_reduction" (one sum over the ranks an iteration), "flexible" (the preconditioner may be a
   * little unsymmetric, or change), "auto"; NULL: auto. */
  const char* variant;
  double divergence_tolerance; /* ends when the residual is above this times the larger of |b| and the first one; 0: 1e5 */
  /* Rows that state a known value b_i / a_ii by a diagonal above 1e8 times all else. "auto": x is that value there, and the
   * method solves for the other rows, if such rows matter little to others; "known": all of them, and a matrix without any
   * is refused; "keep": rows like others. NULL: auto. */
  const char* penalty_rows;
  /* Any options by name: "gram_schmidt=modified degree=3". They override the fields above; shardmat_solver_settings() lists
   * them. NULL: none. */
  const char* settings;
  /* For multigrid: where the nodes of this rank's rows lie, `nodes` rows of `dimensions` numbers, in the order of the rows.
   * nodes = own_rows / node_block_size of shardmat_matrix_info. dimensions: 2 or 3 on all ranks; 0: as the file of the
   * matrix says, if it is a shard file that stores them, or a generator. 12: three coordinates, then the three axes of the
   * node's own system, of length 1 and at right angles. Displacements are along these axes or the global ones, as A says,
   * and rotations about these axes, of nodes with 5 unknowns, as shells have them, about the first two. */
  const double* coordinates;
  int64_t nodes;
  int32_t dimensions;
  /* For multigrid: vectors that A maps to almost 0, in place of those that it makes itself: own_rows rows of near_null_count
   * numbers, in the order of the rows. near_null_count: 1 to 12 on all ranks; 0: those of the shard file, unless the setting
   * near_null_space asks for others. near_null_space=adaptive finds some where neither vectors nor coordinates are known. */
  int32_t near_null_count;
  const double* near_null_vectors;
  /* A preconditioner of the program, in place of `preconditioner`, which must be NULL: z = M*r of this rank's rows, in the
   * order in which it gave them. r and z are own_rows × columns, row-major, in host memory, of the matrix's sum_type; z
   * holds anything before. Called on all ranks; may use other matrices of this context, and not the solver that calls. NULL,
   * on all ranks or on none: none. Not in a context with feeders. Returns SHARDMAT_OK. Any other status on any rank ends the
   * solve on all ranks with this status; `problem`, room for 256 characters that begins with 0, may say why. "cg" (whose
   * variant is then "flexible") and "fgmres" take an M that changes from one call to the next. apply_is_linear: 1: M is
   * always the same linear map, which every solver takes. */
  int (*apply)(void* user, const shardmat_dense* r, const shardmat_dense* z, char* problem);
  void* apply_user;
  int apply_is_linear;
  /* Called on every rank after each iteration, if not NULL, with `user` and the x so far: this rank's rows, laid out as r of
   * apply(). Returns as monitor(). This takes one more product an iteration. Not in a context with feeders. */
  int (*watch)(void* user, int64_t iterations, const shardmat_dense* x);
  /* Vectors that span what A and its transpose map to 0, with null_space NULL or "auto": own_rows rows of null_count
   * numbers, in the order of the rows. They are removed from b and x. null_count: 1 to 24 on all ranks; 0: none are given.
   */
  const double* null_vectors;
  int32_t null_count;
} shardmat_solver_options;

/* The options of solvers, a line each: name, what its values do, and its default. Valid for ever. */
const char* shardmat_solver_settings(void);

typedef struct {
  size_t size;
  int converged;
  int64_t iterations;
  double residual;      /* as the method updated it */
  double true_residual; /* of b - A*x, computed anew */
  double norm_of_b;
  double seconds;          /* of the whole solve, all columns */
  const char* reason;      /* "converged_rtol" …; both texts are valid for ever */
  const char* explanation; /* a sentence for people */
  /* 2-norm of what was removed from b because it lies in the null space; 0 without one. norm_of_b and the residuals are
   * those of what is left of b: |b - A*x|^2 = true_residual^2 + removed_from_b^2. */
  double removed_from_b;
  /* Rows whose values were taken as known. norm_of_b and the residuals are those of the other rows: true_residual is the
   * norm of b - A*x there, norm_of_b that of b - A*(the known values). */
  int64_t penalty_rows;
  double penalty_ratio; /* the largest one of such a diagonal to all else; 0 without such rows */
  /* floor: the residual that rounding errors allow, 2 eps | |A|*|x| |; at or below it the reason is "converged_attainable",
   * and converged is 1. Known if the tolerance was not met and true_residual is at most a hundredth of norm_of_b, else 0.
   * backward_error: |b - A*x| / (|A|*|x| + |b|), the share by which A and b would have to change for x to be exact. */
  double floor, backward_error;
  /* Estimates of cg, minres, gmres and fgmres after two iterations or more, else 0. condition: of the preconditioned matrix,
   * from below. error_bound: the relative error of x is at most about this; of cg in the energy norm, of the others in the
   * norm in which the preconditioner is 1. */
  double condition, error_bound;
  /* Of "least_squares", where no x solves the system: |A*z| / (|A|*|z|) of z = M*(b - A*x); else 0. */
  double normal_residual;
  int64_t breakdowns; /* times that the method began anew because it had divided by zero */
} shardmat_solve_result;

/* Collective. `options` may be NULL. */
int shardmat_solver_create(shardmat_matrix* matrix, const shardmat_solver_options* options, shardmat_solver** solver);
void shardmat_solver_destroy(shardmat_solver* solver);
/* Takes the new values of the matrix into the preconditioner. Collective. */
int shardmat_solver_refresh(shardmat_solver* solver);
/* Solves from the x at hand. b and x: own_rows × columns entries, of any type and order, on the host or the device; they are
 * copied. `results`: NULL, or one for each column, each with its `size` set. Collective. */
int shardmat_solver_solve(shardmat_solver* solver, const shardmat_dense* b, const shardmat_dense* x,
                          shardmat_solve_result* results);
/* z = M*r: the preconditioner alone, which shardmat_solver_create() has set up. r and z as b and x of
 * shardmat_solver_solve(). Collective. */
int shardmat_solver_precondition(shardmat_solver* solver, const shardmat_dense* r, const shardmat_dense* z);
/* The norms of a column's residuals in the last solve: at the start, then after each iteration. Writes at most `capacity`
 * and sets *count to how many there are. */
int shardmat_solver_history(shardmat_solver* solver, int64_t column, double* norms, int64_t capacity, int64_t* count);

/* What multigrid has set up, the same on all ranks but for the seconds. */
typedef struct {
  size_t size;
  int64_t levels;              /* 0: the preconditioner is another one, and all else is 0 or NULL */
  double operator_complexity;  /* nonzeros of all levels over those of the first */
  double setup_seconds;        /* of the last set-up */
  int64_t memory_bytes;        /* of all levels on all ranks together */
  const char* near_null_space; /* what the coarse levels keep: "6 rigid-body modes"; valid until the next refresh */
  const char* cycle;           /* "V", "W" or "K" */
  const char* smoother;        /* as of the option: "chebyshev" */
} shardmat_multigrid_info;

typedef struct {
  size_t size;
  int64_t unknowns, nonzeros; /* of all ranks; stored zeros of blocks count */
  double radius; /* of D^-1 * A (D: the blocks on the diagonal), as the smoother takes it; 0: the level is solved exactly */
  /* Of the prolongation from the next level to this one: this rank's rows and entries. 0: there is no next level, or the
   * context has feeders. */
  int64_t prolongation_rows, prolongation_entries;
} shardmat_multigrid_level;

int shardmat_solver_get_multigrid(shardmat_solver* solver, shardmat_multigrid_info* info);
/* `level`: 0, the finest, to levels - 1. */
int shardmat_solver_get_level(shardmat_solver* solver, int64_t level, shardmat_multigrid_level* info);
/* This rank's rows of the prolongation P from level + 1 to `level`, compressed: row_ptr has prolongation_rows + 1 entries,
 * columns (unknowns of level + 1, over all ranks) and values have prolongation_entries. The rows of level 0 lie as the
 * matrix has them, and the matrix of level + 1 is P'*A*P, but for zeros on its diagonal. */
int shardmat_solver_get_prolongation(shardmat_solver* solver, int64_t level, int64_t* row_ptr, int64_t* columns,
                                     double* values);

/* Makes a solver for one column, solves, and forgets it: b and x are own_rows entries of sum_type in host memory. */
int shardmat_solve(shardmat_matrix* matrix, const shardmat_solver_options* options, const void* b, void* x,
                   shardmat_solve_result* result);

#ifdef __cplusplus
}
#endif

#endif
