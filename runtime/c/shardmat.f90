! The C interface of Shardmat for Fortran 2003 and later: contexts, matrices, products of vectors in host memory, solvers. See
! shardmat.h, which describes every function, what is collective, and which thread may call. Compile this file with your program; link with libshardmat.
!
! Handles are type(c_ptr). Logical fields of C are integers: 0 or 1. Rows and columns count from 0, as in C. The component size_
! of a type is its size in bytes; leave it alone. Texts are c_loc of a character array that ends with c_null_char.
module shardmat
  use, intrinsic :: iso_c_binding
  implicit none
  public

  integer(c_int), parameter :: shardmat_ok = 0, shardmat_internal = 1, shardmat_usage = 2, shardmat_input = 3, &
    shardmat_resources = 4, shardmat_rank_lost = 5, shardmat_verification = 6, shardmat_not_converged = 7
  integer(c_int), parameter :: shardmat_f32 = 0, shardmat_f64 = 1, shardmat_f16 = 2, shardmat_bf16 = 3

  type, bind(c) :: shardmat_context_options
    integer(c_size_t) :: size_ = 40
    type(c_ptr) :: backend = c_null_ptr
    integer(c_int) :: threads = 0
    real(c_double) :: timeout_seconds = 0
    integer(c_int) :: owners = 0, no_feeders = 0
  end type

  type, bind(c) :: shardmat_matrix_options
    integer(c_size_t) :: size_ = 88
    type(c_ptr) :: value_type = c_null_ptr, method = c_null_ptr, kernel = c_null_ptr, policy = c_null_ptr, &
      exchange = c_null_ptr, storage = c_null_ptr
    integer(c_int64_t) :: columns = 0
    real(c_double) :: products = 0
    integer(c_int) :: updatable = 0, reproducible = 0, drop_rows = 0, transposed = 0
  end type

  type, bind(c) :: shardmat_rows
    integer(c_size_t) :: size_ = 64
    integer(c_int64_t) :: first_row = 0, rows = 0, cols = 0
    type(c_ptr) :: row_ptr = c_null_ptr, columns = c_null_ptr, values = c_null_ptr
    integer(c_int) :: value_type = shardmat_f64, on_device = 0
  end type

  type, bind(c) :: shardmat_triplets
    integer(c_size_t) :: size_ = 72
    integer(c_int64_t) :: first_row = 0, rows = 0, cols = 0, count = 0
    type(c_ptr) :: row = c_null_ptr, column = c_null_ptr, values = c_null_ptr
    integer(c_int) :: value_type = shardmat_f64, on_device = 0
  end type

  type, bind(c) :: shardmat_matrix_info
    integer(c_size_t) :: size_ = 88
    integer(c_int64_t) :: rows = 0, cols = 0, nnz = 0, own_rows = 0, own_cols = 0, own_values = 0
    integer(c_int) :: value_type = 0, sum_type = 0, updatable = 0
    integer(c_int64_t) :: device_bytes = 0, host_bytes = 0
  end type

  ! A matrix in memory: entry (i, j) at i*leading + j, from 0. An array of Fortran is column-major: set column_major to 1 and
  ! leading to its first extent. The shape of b and x is (own_rows, columns).
  type, bind(c) :: shardmat_dense
    type(c_ptr) :: values = c_null_ptr
    integer(c_int64_t) :: rows = 0, columns = 1, leading = 1
    integer(c_int) :: column_major = 0, value_type = shardmat_f64, on_device = 0
  end type

  type, bind(c) :: shardmat_solver_options
    integer(c_size_t) :: size_ = 128
    type(c_ptr) :: solver = c_null_ptr, preconditioner = c_null_ptr, null_space = c_null_ptr, residual_norm = c_null_ptr
    real(c_double) :: rtol = 0, atol = 0
    integer(c_int64_t) :: max_iterations = 0, restart = 0
    integer(c_int) :: block_size = 0, degree = 0, assume_symmetric = 0
    integer(c_int64_t) :: columns = 0
    type(c_funptr) :: monitor = c_null_funptr
    type(c_ptr) :: user = c_null_ptr, variant = c_null_ptr
    real(c_double) :: divergence_tolerance = 0
  end type

  type, bind(c) :: shardmat_solve_result
    integer(c_size_t) :: size_ = 72
    integer(c_int) :: converged = 0
    integer(c_int64_t) :: iterations = 0
    real(c_double) :: residual = 0, true_residual = 0, norm_of_b = 0, seconds = 0
    type(c_ptr) :: reason = c_null_ptr, explanation = c_null_ptr
  end type

  interface
    function shardmat_last_error() bind(c) result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function

    ! This process alone.
    function shardmat_context_create(options, context) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_context_options
      type(shardmat_context_options), intent(in) :: options
      type(c_ptr), intent(out) :: context
      integer(c_int) :: status
    end function

    ! The ranks of a communicator: MPI_COMM_WORLD of `use mpi`, or comm%mpi_val of `use mpi_f08`.
    function shardmat_context_create_fortran(communicator, options, context) bind(c) result(status)
      import :: c_int, c_int32_t, c_ptr, shardmat_context_options
      integer(c_int32_t), value :: communicator
      type(shardmat_context_options), intent(in) :: options
      type(c_ptr), intent(out) :: context
      integer(c_int) :: status
    end function

    subroutine shardmat_context_destroy(context) bind(c)
      import :: c_ptr
      type(c_ptr), value :: context
    end subroutine

    function shardmat_matrix_from_rows(context, rows, options, matrix) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_rows, shardmat_matrix_options
      type(c_ptr), value :: context
      type(shardmat_rows), intent(in) :: rows
      type(shardmat_matrix_options), intent(in) :: options
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: status
    end function

    function shardmat_matrix_from_triplets(context, triplets, options, matrix) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_triplets, shardmat_matrix_options
      type(c_ptr), value :: context
      type(shardmat_triplets), intent(in) :: triplets
      type(shardmat_matrix_options), intent(in) :: options
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: status
    end function

    ! `file` ends with c_null_char.
    function shardmat_matrix_from_file(context, file, options, matrix) bind(c) result(status)
      import :: c_char, c_int, c_ptr, shardmat_matrix_options
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: file(*)
      type(shardmat_matrix_options), intent(in) :: options
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: status
    end function

    subroutine shardmat_matrix_destroy(matrix) bind(c)
      import :: c_ptr
      type(c_ptr), value :: matrix
    end subroutine

    function shardmat_matrix_get_info(matrix, info) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_matrix_info
      type(c_ptr), value :: matrix
      type(shardmat_matrix_info), intent(inout) :: info
      integer(c_int) :: status
    end function

    ! Arrays below are c_loc of the first entry.
    function shardmat_matrix_update_values(matrix, values, count, value_type, on_device, stream) bind(c) result(status)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: matrix, values, stream
      integer(c_int64_t), value :: count
      integer(c_int), value :: value_type, on_device
      integer(c_int) :: status
    end function

    function shardmat_matrix_zero_rows_columns(matrix, rows, count, diagonal, x, b) bind(c) result(status)
      import :: c_double, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: matrix, x, b
      integer(c_int64_t), intent(in) :: rows(*)
      integer(c_int64_t), value :: count
      real(c_double), value :: diagonal
      integer(c_int) :: status
    end function

    function shardmat_spmv(matrix, alpha, x, beta, y) bind(c) result(status)
      import :: c_double, c_int, c_ptr
      type(c_ptr), value :: matrix, x, y
      real(c_double), value :: alpha, beta
      integer(c_int) :: status
    end function

    ! X and Y lie row by row: dimension(columns, own_rows) in Fortran.
    function shardmat_spmm(matrix, columns, alpha, x, beta, y) bind(c) result(status)
      import :: c_double, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: matrix, x, y
      integer(c_int64_t), value :: columns
      real(c_double), value :: alpha, beta
      integer(c_int) :: status
    end function

    function shardmat_solver_create(matrix, options, solver) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_solver_options
      type(c_ptr), value :: matrix
      type(shardmat_solver_options), intent(in) :: options
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

    ! One element of `solved` for each column.
    function shardmat_solver_solve(solver, b, x, solved) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_dense, shardmat_solve_result
      type(c_ptr), value :: solver
      type(shardmat_dense), intent(in) :: b, x
      type(shardmat_solve_result), intent(inout) :: solved(*)
      integer(c_int) :: status
    end function

    function shardmat_solve(matrix, options, b, x, solved) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_solver_options, shardmat_solve_result
      type(c_ptr), value :: matrix, b, x
      type(shardmat_solver_options), intent(in) :: options
      type(shardmat_solve_result), intent(inout) :: solved
      integer(c_int) :: status
    end function
  end interface

contains

  ! The message of the last error of this thread.
  function shardmat_message() result(message)
    character(len=:), allocatable :: message
    character(kind=c_char), pointer :: letters(:)
    integer :: length
    interface
      function strlen(text) bind(c) result(length)
        import :: c_ptr, c_size_t
        type(c_ptr), value :: text
        integer(c_size_t) :: length
      end function
    end interface
    call c_f_pointer(shardmat_last_error(), letters, [strlen(shardmat_last_error())])
    allocate (character(len=size(letters)) :: message)
    do length = 1, size(letters)
      message(length:length) = letters(length)
    end do
  end function
end module
