! The C interface of Shardmat for Fortran 2018: contexts, matrices, products, solvers, PageRank. Batches of small
! matrices: shardmat_batches.f90. shardmat.h describes every function, what is collective, and which thread may call. Here
! are the shapes of arrays, and what differs. Compile this file with your program, and link with libshardmat.
!
! - Handles are type(c_ptr).
! - Functions return shardmat_ok or another status; shardmat_message() then gives the message. shardmat_usage: an argument
!   is wrong; shardmat_input: a file or the entries of an array are; shardmat_resources: memory, device or disk.
!   Functions that return something else say so.
! - Rows, columns, offsets and devices count from 0, as in C. Sizes are integer(c_int64_t).
! - Logical fields of C are integers: 0 or 1. What you do not set in a type is chosen, as for 0 and NULL in C; value_type is
!   shardmat_f64 then.
! - Arguments named options are optional: status = shardmat_solver_create(matrix, solver=solver) takes the defaults.
! - The component size_ of a type is its size in bytes; leave it alone.
! - A text in a type is c_loc of a character variable that ends with c_null_char; shardmat_text() reads the texts of C. An
!   argument that is a character array takes 'bar.h5'//c_null_char.
! - Arrays that are type(c_ptr) here are c_loc of their first entry. They have the attribute target.
! - Arguments of derived types have the attribute target here, too. A compiler could else assume that the arrays whose
!   addresses they hold are neither kept nor written.
module shardmat
  use, intrinsic :: iso_c_binding
  implicit none
  public

  integer(c_int), parameter :: shardmat_ok = 0, shardmat_internal = 1, shardmat_usage = 2, shardmat_input = 3, &
    shardmat_resources = 4, shardmat_rank_lost = 5, shardmat_verification = 6, shardmat_not_converged = 7
  integer(c_int), parameter :: shardmat_f32 = 0, shardmat_f64 = 1, shardmat_f16 = 2, shardmat_bf16 = 3

  ! owners, no_feeders: see "Feeders" in shardmat.h.
  type, bind(c) :: shardmat_context_options
    integer(c_size_t) :: size_ = 40
    type(c_ptr) :: backend = c_null_ptr
    integer(c_int) :: threads = 0
    real(c_double) :: timeout_seconds = 0
    integer(c_int) :: owners = 0, no_feeders = 0
  end type

  ! device: -1 is the host. feeder: 1 if this rank hands its rows to another one.
  type, bind(c) :: shardmat_context_info
    integer(c_size_t) :: size_ = 48
    integer(c_int) :: rank = 0, ranks = 0, threads = 0, device = 0
    type(c_ptr) :: backend = c_null_ptr, name = c_null_ptr
    integer(c_int) :: feeder = 0
  end type

  type, bind(c) :: shardmat_matrix_options
    integer(c_size_t) :: size_ = 96
    type(c_ptr) :: value_type = c_null_ptr, method = c_null_ptr, kernel = c_null_ptr, policy = c_null_ptr, &
      exchange = c_null_ptr, storage = c_null_ptr
    integer(c_int64_t) :: columns = 0
    real(c_double) :: products = 0
    integer(c_int) :: updatable = 0, reproducible = 0, drop_rows = 0, transposed = 0, node_block_size = 0
  end type

  ! This rank's rows: row_ptr(rows + 1) and columns(nonzeros) are integer(c_int64_t), values(nonzeros) of value_type.
  type, bind(c) :: shardmat_rows
    integer(c_size_t) :: size_ = 64
    integer(c_int64_t) :: first_row = 0, rows = 0, cols = 0
    type(c_ptr) :: row_ptr = c_null_ptr, columns = c_null_ptr, values = c_null_ptr
    integer(c_int) :: value_type = shardmat_f64, on_device = 0
  end type

  ! row(count) and column(count) are integer(c_int64_t), values(count) of value_type.
  type, bind(c) :: shardmat_triplets
    integer(c_size_t) :: size_ = 72
    integer(c_int64_t) :: first_row = 0, rows = 0, cols = 0, count = 0
    type(c_ptr) :: row = c_null_ptr, column = c_null_ptr, values = c_null_ptr
    integer(c_int) :: value_type = shardmat_f64, on_device = 0
  end type

  type, bind(c) :: shardmat_matrix_info
    integer(c_size_t) :: size_ = 96
    integer(c_int64_t) :: rows = 0, cols = 0, nnz = 0, own_rows = 0, own_cols = 0, own_values = 0
    integer(c_int) :: value_type = 0, sum_type = 0, updatable = 0
    integer(c_int64_t) :: device_bytes = 0, host_bytes = 0, node_block_size = 0
  end type

  ! A dense matrix in memory of the caller, rows x columns. shardmat_column_major() and shardmat_row_major() below make one of an
  ! array. leading: entries from one row to the next; if column_major is 1, from one column to the next.
  type, bind(c) :: shardmat_dense
    type(c_ptr) :: values = c_null_ptr
    integer(c_int64_t) :: rows = 0, columns = 1, leading = 1
    integer(c_int) :: column_major = 0, value_type = shardmat_f64, on_device = 0
  end type

  type, bind(c) :: shardmat_product_options
    integer(c_size_t) :: size_ = 40
    type(c_ptr) :: kernel = c_null_ptr, exchange = c_null_ptr
    integer(c_int) :: column_major_y = 0
    integer(c_int64_t) :: transposed = 0
  end type

  type, bind(c) :: shardmat_product_info
    integer(c_size_t) :: size_ = 56
    integer(c_int64_t) :: columns = 0, device_bytes = 0, bytes_received = 0
    type(c_ptr) :: kernel = c_null_ptr, why = c_null_ptr, exchange = c_null_ptr
  end type

  ! monitor: c_funloc of a function of a module, with the interface shardmat_monitor.
  type, bind(c) :: shardmat_pagerank_options
    integer(c_size_t) :: size_ = 64
    real(c_double) :: damping = 0, tolerance = 0
    integer(c_int64_t) :: max_iterations = 0
    integer(c_int) :: unweighted = 0
    integer(c_int64_t) :: columns = 0
    type(c_funptr) :: monitor = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
  end type

  type, bind(c) :: shardmat_pagerank_result
    integer(c_size_t) :: size_ = 48
    integer(c_int) :: converged = 0
    integer(c_int64_t) :: iterations = 0, dangling = 0
    real(c_double) :: change = 0, seconds = 0
  end type

  ! x0(x0_columns, own rows) and coordinates(dimensions, nodes) are real(c_double). monitor: as above.
  type, bind(c) :: shardmat_eigen_options
    integer(c_size_t) :: size_ = 160
    integer(c_int64_t) :: count = 0
    real(c_double) :: tolerance = 0
    integer(c_int64_t) :: max_iterations = 0, guard = 0, seed = 0
    real(c_double) :: shift = 0
    integer(c_int) :: has_shift = 0, no_confirm = 0, assume_symmetric = 0
    type(c_ptr) :: method = c_null_ptr, which = c_null_ptr, x0 = c_null_ptr
    integer(c_int64_t) :: x0_columns = 0
    type(c_ptr) :: coordinates = c_null_ptr
    integer(c_int64_t) :: nodes = 0
    integer(c_int32_t) :: dimensions = 0
    type(c_funptr) :: monitor = c_null_funptr
    type(c_ptr) :: user = c_null_ptr, inner = c_null_ptr
    integer(c_int) :: check_count = 0
  end type

  type, bind(c) :: shardmat_eigen_result
    integer(c_size_t) :: size_ = 80
    integer(c_int) :: converged = 0, confirmed = 0
    integer(c_int64_t) :: count = 0, iterations = 0, zero_modes = 0, missing = 0
    real(c_double) :: residual = 0, orthogonality = 0, setup_seconds = 0, seconds = 0
  end type

  ! rtol: 0 means 1e-8, for a matrix in f32 1e-5; less than 0 means none.
  ! monitor: c_funloc of a function of a module, with the interface shardmat_monitor.
  ! coordinates: c_loc of coordinates(dimensions, nodes) of the nodes of this rank's rows, for multigrid, with 12 dimensions
  ! also the axes of each node; near_null_vectors: of vectors(near_null_count, own_rows). null_vectors: of vectors(null_count, own_rows), which A maps to 0.
  ! apply: a preconditioner of the program, c_funloc of a function of a module with the interface shardmat_apply.
  ! watch: gets x after each iteration; the interface is shardmat_watch.
  type, bind(c) :: shardmat_solver_options
    integer(c_size_t) :: size_ = 224
    type(c_ptr) :: solver = c_null_ptr, preconditioner = c_null_ptr, null_space = c_null_ptr, residual_norm = c_null_ptr
    real(c_double) :: rtol = 0, atol = 0
    integer(c_int64_t) :: max_iterations = 0, restart = 0
    integer(c_int) :: node_block_size = 0, degree = 0, assume_symmetric = 0
    integer(c_int64_t) :: columns = 0
    type(c_funptr) :: monitor = c_null_funptr
    type(c_ptr) :: user = c_null_ptr, variant = c_null_ptr
    real(c_double) :: divergence_tolerance = 0
    type(c_ptr) :: penalty_rows = c_null_ptr, settings = c_null_ptr
    type(c_ptr) :: coordinates = c_null_ptr
    integer(c_int64_t) :: nodes = 0
    integer(c_int32_t) :: dimensions = 0, near_null_count = 0
    type(c_ptr) :: near_null_vectors = c_null_ptr
    type(c_funptr) :: apply = c_null_funptr
    type(c_ptr) :: apply_user = c_null_ptr
    integer(c_int) :: apply_is_linear = 0
    type(c_funptr) :: watch = c_null_funptr
    type(c_ptr) :: null_vectors = c_null_ptr
    integer(c_int32_t) :: null_count = 0
  end type

  ! levels: 0 where the preconditioner is not multigrid.
  type, bind(c) :: shardmat_multigrid_info
    integer(c_size_t) :: size_ = 64
    integer(c_int64_t) :: levels = 0
    real(c_double) :: operator_complexity = 0, setup_seconds = 0
    integer(c_int64_t) :: memory_bytes = 0
    type(c_ptr) :: near_null_space = c_null_ptr, cycle = c_null_ptr, smoother = c_null_ptr
  end type

  ! radius: 0 where the level is solved exactly.
  type, bind(c) :: shardmat_multigrid_level
    integer(c_size_t) :: size_ = 48
    integer(c_int64_t) :: unknowns = 0, nonzeros = 0
    real(c_double) :: radius = 0
    integer(c_int64_t) :: prolongation_rows = 0, prolongation_entries = 0
  end type

  type, bind(c) :: shardmat_solve_result
    integer(c_size_t) :: size_ = 144
    integer(c_int) :: converged = 0
    integer(c_int64_t) :: iterations = 0
    real(c_double) :: residual = 0, true_residual = 0, norm_of_b = 0, seconds = 0
    type(c_ptr) :: reason = c_null_ptr, explanation = c_null_ptr
    real(c_double) :: removed_from_b = 0
    integer(c_int64_t) :: penalty_rows = 0
    real(c_double) :: penalty_ratio = 0
    real(c_double) :: floor = 0, backward_error = 0, condition = 0, error_bound = 0, normal_residual = 0
    integer(c_int64_t) :: breakdowns = 0
  end type

  ! Of solvers and of PageRank: numbers(columns) are the norms of the residuals, or the changes. Returns 0 to go on; any other
  ! number ends the iterations.
  abstract interface
    function shardmat_monitor(user, iterations, numbers, columns) bind(c) result(stop)
      import :: c_double, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: user
      integer(c_int64_t), value :: iterations, columns
      real(c_double), intent(in) :: numbers(*)
      integer(c_int) :: stop
    end function

    ! x%values are those of a real array (columns, own_rows). Returns 0 to go on.
    function shardmat_watch(user, iterations, x) bind(c) result(stop)
      import :: c_int, c_int64_t, c_ptr, shardmat_dense
      type(c_ptr), value :: user
      integer(c_int64_t), value :: iterations
      type(shardmat_dense), intent(in), target :: x
      integer(c_int) :: stop
    end function

    ! z = M*r of this rank's rows: r%values and z%values are those of real arrays (columns, own_rows) of the matrix's sum_type.
    ! Returns shardmat_ok; another status ends the solve on all ranks, and problem may say why, with c_null_char behind it.
    function shardmat_apply(user, r, z, problem) bind(c) result(status)
      import :: c_char, c_int, c_ptr, shardmat_dense
      type(c_ptr), value :: user
      type(shardmat_dense), intent(in), target :: r, z
      character(kind=c_char), intent(inout) :: problem(*)
      integer(c_int) :: status
    end function
  end interface

  interface
    ! A text of C; shardmat_message() gives it as characters.
    function shardmat_last_error() bind(c) result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function

    ! A text of C: shardmat_text(shardmat_version()) is '0.2.0'.
    pure function shardmat_version() bind(c) result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function

    ! This process alone.
    function shardmat_context_create(options, context) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_context_options
      type(shardmat_context_options), intent(in), optional, target :: options
      type(c_ptr), intent(out) :: context
      integer(c_int) :: status
    end function

    ! The ranks of a communicator: MPI_COMM_WORLD of `use mpi`, or comm%mpi_val of `use mpi_f08`.
    function shardmat_context_create_fortran(communicator, options, context) bind(c) result(status)
      import :: c_int, c_int32_t, c_ptr, shardmat_context_options
      integer(c_int32_t), value :: communicator
      type(shardmat_context_options), intent(in), optional, target :: options
      type(c_ptr), intent(out) :: context
      integer(c_int) :: status
    end function

    subroutine shardmat_context_destroy(context) bind(c)
      import :: c_ptr
      type(c_ptr), value :: context
    end subroutine

    ! For a program that ends while another thread is in a call: waits for other ranks end with shardmat_rank_lost.
    function shardmat_context_give_up(context) bind(c) result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: context
      integer(c_int) :: status
    end function

    function shardmat_context_get_info(context, info) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_context_info
      type(c_ptr), value :: context
      type(shardmat_context_info), intent(inout), target :: info
      integer(c_int) :: status
    end function

    ! A cudaStream_t; c_null_ptr on the host.
    function shardmat_context_stream(context, stream) bind(c) result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: context
      type(c_ptr), intent(out) :: stream
      integer(c_int) :: status
    end function

    ! Memory of the context's device.
    function shardmat_context_allocate(context, bytes, memory) bind(c) result(status)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: context
      integer(c_size_t), value :: bytes
      type(c_ptr), intent(out) :: memory
      integer(c_int) :: status
    end function

    function shardmat_context_free(context, memory) bind(c) result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: context, memory
      integer(c_int) :: status
    end function

    function shardmat_matrix_from_rows(context, rows, options, matrix) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_rows, shardmat_matrix_options
      type(c_ptr), value :: context
      type(shardmat_rows), intent(in), target :: rows
      type(shardmat_matrix_options), intent(in), optional, target :: options
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: status
    end function

    function shardmat_matrix_from_triplets(context, triplets, options, matrix) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_triplets, shardmat_matrix_options
      type(c_ptr), value :: context
      type(shardmat_triplets), intent(in), target :: triplets
      type(shardmat_matrix_options), intent(in), optional, target :: options
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: status
    end function

    ! `file` ends with c_null_char.
    function shardmat_matrix_from_file(context, file, options, matrix) bind(c) result(status)
      import :: c_char, c_int, c_ptr, shardmat_matrix_options
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: file(*)
      type(shardmat_matrix_options), intent(in), optional, target :: options
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: status
    end function

    function shardmat_file_shape(context, file, rows, cols) bind(c) result(status)
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: file(*)
      integer(c_int64_t), intent(out) :: rows, cols
      integer(c_int) :: status
    end function

    subroutine shardmat_matrix_destroy(matrix) bind(c)
      import :: c_ptr
      type(c_ptr), value :: matrix
    end subroutine

    function shardmat_matrix_get_info(matrix, info) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_matrix_info
      type(c_ptr), value :: matrix
      type(shardmat_matrix_info), intent(inout), target :: info
      integer(c_int) :: status
    end function

    ! ids(own_rows): the global numbers of this rank's rows, from 0.
    function shardmat_matrix_row_ids(matrix, ids) bind(c) result(status)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: matrix
      integer(c_int64_t), intent(out) :: ids(*)
      integer(c_int) :: status
    end function

    ! ids(own_cols): the same of this rank's entries of x.
    function shardmat_matrix_col_ids(matrix, ids) bind(c) result(status)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: matrix
      integer(c_int64_t), intent(out) :: ids(*)
      integer(c_int) :: status
    end function

    ! values(count), own_values of them, in the order in which the matrix was given. On the host: on_device = 0 and
    ! stream = c_null_ptr.
    function shardmat_matrix_update_values(matrix, values, count, value_type, on_device, stream) bind(c) result(status)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: matrix, values, stream
      integer(c_int64_t), value :: count
      integer(c_int), value :: value_type, on_device
      integer(c_int) :: status
    end function

    ! rows(count): global numbers, from 0. x(own_rows) and b(own_rows), or c_null_ptr for both.
    function shardmat_matrix_zero_rows_columns(matrix, rows, count, diagonal, x, b) bind(c) result(status)
      import :: c_double, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: matrix, x, b
      integer(c_int64_t), intent(in) :: rows(*)
      integer(c_int64_t), value :: count
      real(c_double), value :: diagonal
      integer(c_int) :: status
    end function

    ! y = alpha*A*x + beta*y in host memory: x(own_cols) of the matrix's value_type, y(own_rows) of its sum_type.
    ! alpha and beta must be the same on all ranks, here and below; nobody compares them.
    function shardmat_spmv(matrix, alpha, x, beta, y) bind(c) result(status)
      import :: c_double, c_int, c_ptr
      type(c_ptr), value :: matrix, x, y
      real(c_double), value :: alpha, beta
      integer(c_int) :: status
    end function

    ! The same of several columns. X and Y lie row by row: x(columns, own_cols), y(columns, own_rows).
    function shardmat_spmm(matrix, columns, alpha, x, beta, y) bind(c) result(status)
      import :: c_double, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: matrix, x, y
      integer(c_int64_t), value :: columns
      real(c_double), value :: alpha, beta
      integer(c_int) :: status
    end function

    ! The same with the transpose of the matrix: x(own_rows), y(own_cols).
    function shardmat_spmv_transposed(matrix, alpha, x, beta, y) bind(c) result(status)
      import :: c_double, c_int, c_ptr
      type(c_ptr), value :: matrix, x, y
      real(c_double), value :: alpha, beta
      integer(c_int) :: status
    end function

    function shardmat_spmm_transposed(matrix, columns, alpha, x, beta, y) bind(c) result(status)
      import :: c_double, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: matrix, x, y
      integer(c_int64_t), value :: columns
      real(c_double), value :: alpha, beta
      integer(c_int) :: status
    end function

    ! A product for `columns` right-hand sides, which you keep and destroy. column_major_y = 1 is for arrays y(own_rows, columns).
    function shardmat_product_create(matrix, columns, options, product) bind(c) result(status)
      import :: c_int, c_int64_t, c_ptr, shardmat_product_options
      type(c_ptr), value :: matrix
      integer(c_int64_t), value :: columns
      type(shardmat_product_options), intent(in), optional, target :: options
      type(c_ptr), intent(out) :: product
      integer(c_int) :: status
    end function

    subroutine shardmat_product_destroy(product) bind(c)
      import :: c_ptr
      type(c_ptr), value :: product
    end subroutine

    ! Y = alpha*A*X + beta*Y. X is own_cols x columns of the matrix's value_type, Y is own_rows x columns of its sum_type; other
    ! sizes and types are refused with shardmat_usage. stream = c_null_ptr: returns when Y is complete.
    function shardmat_product_multiply(product, alpha, x, beta, y, stream) bind(c) result(status)
      import :: c_double, c_int, c_ptr, shardmat_dense
      type(c_ptr), value :: product, stream
      real(c_double), value :: alpha, beta
      type(shardmat_dense), intent(in), target :: x, y
      integer(c_int) :: status
    end function

    ! Where the product reads X, (columns, own_cols) on the context's device; c_null_ptr where it has another order.
    function shardmat_product_x(product, data) bind(c) result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: product
      type(c_ptr), intent(out) :: data
      integer(c_int) :: status
    end function

    function shardmat_product_get_info(product, info) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_product_info
      type(c_ptr), value :: product
      type(shardmat_product_info), intent(inout), target :: info
      integer(c_int) :: status
    end function

    ! `graph` ends with c_null_char. On rank 0: scores(columns, vertices), and restarts of the same shape, or c_null_ptr for
    ! uniform restarts; both real(c_double). On other ranks: c_null_ptr for both.
    function shardmat_pagerank_of_file(context, graph, options, restarts, scores, ranked) bind(c) result(status)
      import :: c_char, c_int, c_ptr, shardmat_pagerank_options, shardmat_pagerank_result
      type(c_ptr), value :: context, restarts, scores
      character(kind=c_char), intent(in) :: graph(*)
      type(shardmat_pagerank_options), intent(in), optional, target :: options
      type(shardmat_pagerank_result), intent(inout), target :: ranked
      integer(c_int) :: status
    end function

    ! The same of all rows of a graph, in a context of one rank.
    function shardmat_pagerank_of_rows(context, graph, options, restarts, scores, ranked) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_pagerank_options, shardmat_pagerank_result, shardmat_rows
      type(c_ptr), value :: context, restarts, scores
      type(shardmat_rows), intent(in), target :: graph
      type(shardmat_pagerank_options), intent(in), optional, target :: options
      type(shardmat_pagerank_result), intent(inout), target :: ranked
      integer(c_int) :: status
    end function

    ! m: c_null_ptr for one matrix. values(count), vectors(count, own rows) or c_null_ptr; both real(c_double).
    function shardmat_eigen(k, m, options, values, vectors, found) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_eigen_options, shardmat_eigen_result
      type(c_ptr), value :: k, m, values, vectors
      type(shardmat_eigen_options), intent(in), optional, target :: options
      type(shardmat_eigen_result), intent(inout), target :: found
      integer(c_int) :: status
    end function

    ! A text of C that lists the options by name, for settings.
    pure function shardmat_solver_settings() bind(c) result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function

    function shardmat_solver_create(matrix, options, solver) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_solver_options
      type(c_ptr), value :: matrix
      type(shardmat_solver_options), intent(in), optional, target :: options
      type(c_ptr), intent(out) :: solver
      integer(c_int) :: status
    end function

    subroutine shardmat_solver_destroy(solver) bind(c)
      import :: c_ptr
      type(c_ptr), value :: solver
    end subroutine

    ! After shardmat_matrix_update_values().
    function shardmat_solver_refresh(solver) bind(c) result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: solver
      integer(c_int) :: status
    end function

    ! b and x are own_rows x columns; x holds the first guess, then the solution. One element of `solved` for each column.
    function shardmat_solver_solve(solver, b, x, solved) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_dense, shardmat_solve_result
      type(c_ptr), value :: solver
      type(shardmat_dense), intent(in), target :: b, x
      type(shardmat_solve_result), intent(inout), target :: solved(*)
      integer(c_int) :: status
    end function

    ! z = M*r: the preconditioner alone. r and z as b and x of shardmat_solver_solve().
    function shardmat_solver_precondition(solver, r, z) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_dense
      type(c_ptr), value :: solver
      type(shardmat_dense), intent(in), target :: r, z
      integer(c_int) :: status
    end function

    ! The norms of the residuals of a column, which counts from 0: at most `capacity` of them in norms(capacity). `count`: how
    ! many there are, one more than iterations.
    function shardmat_solver_history(solver, column, norms, capacity, count) bind(c) result(status)
      import :: c_double, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: solver
      integer(c_int64_t), value :: column, capacity
      real(c_double), intent(inout) :: norms(*)
      integer(c_int64_t), intent(out) :: count
      integer(c_int) :: status
    end function

    ! What multigrid has set up.
    function shardmat_solver_get_multigrid(solver, info) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_multigrid_info
      type(c_ptr), value :: solver
      type(shardmat_multigrid_info), intent(inout), target :: info
      integer(c_int) :: status
    end function

    ! `level`: 0, the finest, to levels - 1.
    function shardmat_solver_get_level(solver, level, info) bind(c) result(status)
      import :: c_int, c_int64_t, c_ptr, shardmat_multigrid_level
      type(c_ptr), value :: solver
      integer(c_int64_t), value :: level
      type(shardmat_multigrid_level), intent(inout), target :: info
      integer(c_int) :: status
    end function

    ! row_ptr(prolongation_rows + 1), columns(prolongation_entries), values(prolongation_entries); columns count from 0.
    function shardmat_solver_get_prolongation(solver, level, row_ptr, columns, values) bind(c) result(status)
      import :: c_double, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: solver
      integer(c_int64_t), value :: level
      integer(c_int64_t), intent(inout) :: row_ptr(*), columns(*)
      real(c_double), intent(inout) :: values(*)
      integer(c_int) :: status
    end function

    ! b(own_rows) and x(own_rows) of the matrix's sum_type, in host memory; x holds the first guess, then the solution.
    function shardmat_solve(matrix, options, b, x, solved) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_solver_options, shardmat_solve_result
      type(c_ptr), value :: matrix, b, x
      type(shardmat_solver_options), intent(in), optional, target :: options
      type(shardmat_solve_result), intent(inout), target :: solved
      integer(c_int) :: status
    end function
  end interface

  ! Dense matrices of Fortran arrays in host memory, real(c_double) or real(c_float), which have the attribute target:
  !   shardmat_column_major(a)   a(rows, columns), or a vector a(rows)
  !   shardmat_row_major(a)      a(columns, rows), or a vector a(rows)
  ! Sections such as a(1:rows, 2:4) are used in place. The entries of the first dimension must lie one after another: of a
  ! section with a stride there, as a(::2, :), `leading` is 0, which functions refuse with shardmat_usage.
  interface shardmat_column_major
    module procedure vector_f64, vector_f32, column_major_f64, column_major_f32
  end interface
  interface shardmat_row_major
    module procedure vector_f64, vector_f32, row_major_f64, row_major_f32
  end interface
  private :: vector_f64, vector_f32, column_major_f64, column_major_f32, row_major_f64, row_major_f32
  private :: distance, empty, spanned, transposed

contains

  ! The message of the last error of this thread.
  function shardmat_message() result(message)
    character(len=:), allocatable :: message
    message = shardmat_text(shardmat_last_error())
  end function

  ! The characters of a text of C; '' for c_null_ptr.
  pure function shardmat_text(text) result(characters)
    type(c_ptr), intent(in) :: text
    character(len=:), allocatable :: characters
    integer(c_size_t) :: length
    interface
      pure function strlen(text) bind(c) result(length)
        import :: c_ptr, c_size_t
        type(c_ptr), value :: text
        integer(c_size_t) :: length
      end function
      pure subroutine memcpy(to, from, bytes) bind(c)
        import :: c_char, c_ptr, c_size_t
        character(kind=c_char), intent(inout) :: to(*)
        type(c_ptr), value :: from
        integer(c_size_t), value :: bytes
      end subroutine
    end interface
    length = 0
    if (c_associated(text)) length = strlen(text)
    allocate (character(len=length) :: characters)
    if (length > 0) call memcpy(characters, text, length)
  end function

  function vector_f64(a) result(view)
    real(c_double), target, intent(in) :: a(:)
    type(shardmat_dense) :: view
    view = shardmat_dense(rows=size(a, kind=c_int64_t), value_type=shardmat_f64)
    if (size(a) > 0) view%values = c_loc(a(1))
    if (size(a) > 1) view%leading = distance(c_loc(a(1)), c_loc(a(2)))/8
  end function

  function vector_f32(a) result(view)
    real(c_float), target, intent(in) :: a(:)
    type(shardmat_dense) :: view
    view = shardmat_dense(rows=size(a, kind=c_int64_t), value_type=shardmat_f32)
    if (size(a) > 0) view%values = c_loc(a(1))
    if (size(a) > 1) view%leading = distance(c_loc(a(1)), c_loc(a(2)))/4
  end function

  function column_major_f64(a) result(view)
    real(c_double), target, intent(in) :: a(:, :)
    type(shardmat_dense) :: view
    view = empty(size(a, 1, c_int64_t), size(a, 2, c_int64_t), shardmat_f64)
    if (size(a) > 0) view = spanned(vector_f64(a(:, 1)), vector_f64(a(1, :)))
  end function

  function column_major_f32(a) result(view)
    real(c_float), target, intent(in) :: a(:, :)
    type(shardmat_dense) :: view
    view = empty(size(a, 1, c_int64_t), size(a, 2, c_int64_t), shardmat_f32)
    if (size(a) > 0) view = spanned(vector_f32(a(:, 1)), vector_f32(a(1, :)))
  end function

  function row_major_f64(a) result(view)
    real(c_double), target, intent(in) :: a(:, :)
    type(shardmat_dense) :: view
    view = transposed(column_major_f64(a))
  end function

  function row_major_f32(a) result(view)
    real(c_float), target, intent(in) :: a(:, :)
    type(shardmat_dense) :: view
    view = transposed(column_major_f32(a))
  end function

  ! Bytes from one address to another.
  function distance(from, to) result(bytes)
    type(c_ptr), intent(in) :: from, to
    integer(c_int64_t) :: bytes
    bytes = transfer(to, 0_c_intptr_t) - transfer(from, 0_c_intptr_t)
  end function

  ! A matrix without entries.
  function empty(rows, columns, value_type) result(view)
    integer(c_int64_t), intent(in) :: rows, columns
    integer(c_int), intent(in) :: value_type
    type(shardmat_dense) :: view
    view = shardmat_dense(rows=rows, columns=columns, leading=max(rows, 1_c_int64_t), column_major=1, value_type=value_type)
  end function

  ! A column-major matrix by its first column and its first row.
  function spanned(column, row) result(view)
    type(shardmat_dense), intent(in) :: column, row
    type(shardmat_dense) :: view
    view = empty(column%rows, row%rows, column%value_type)
    view%values = column%values
    if (row%rows > 1) view%leading = row%leading
    if (column%leading /= 1) view%leading = 0
  end function

  function transposed(given) result(view)
    type(shardmat_dense), intent(in) :: given
    type(shardmat_dense) :: view
    view = given
    view%rows = given%columns
    view%columns = given%rows
    view%column_major = 0
  end function
end module
