! The constants, types and callbacks of the C interface for Fortran 2018. `use shardmat` includes them; its comment says how
! texts, arrays and handles are passed. shardmat.h describes every field.
!
! - What you do not set in a type is chosen, as for 0 and NULL in C; value_type is shardmat_f64 then.
! - Logical fields of C are integers: 0 or 1. The component size_ of a type is its size in bytes; leave it alone.
! - A text in a type is c_loc of a character variable that ends with c_null_char.
module shardmat_types
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
end module
