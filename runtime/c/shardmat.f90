! The C interface of Shardmat for Fortran 2018: contexts, matrices, products, solvers, PageRank, eigenvalues. Start here.
! shardmat_types.f90 has the types, shardmat_batches.f90 batches of small matrices. shardmat.h describes every function, what
! is collective, and which thread may call. Here are the shapes of arrays, and what differs. Compile shardmat_types.f90, then
! this file, with your program, and link with libshardmat.
!
! - Handles are type(c_ptr).
! - Functions return shardmat_ok or another status; shardmat_message() then gives the message. shardmat_usage: an argument
!   is wrong; shardmat_input: a file or the entries of an array are wrong; shardmat_resources: memory, device or disk is
!   missing or full. Functions that return something else say so.
! - Rows, columns, offsets and devices count from 0, as in C. Sizes are integer(c_int64_t).
! - Arguments named options are optional: status = shardmat_solver_create(matrix, solver=solver) takes the defaults.
! - shardmat_text() reads the texts of C. An argument that is a character array takes 'bar.h5'//c_null_char.
! - Arrays that are type(c_ptr) here are c_loc of their first entry. They have the attribute target.
! - Arguments of derived types have the attribute target here, too. A compiler could else assume that the arrays whose
!   addresses they hold are neither kept nor written.
module shardmat
  use, intrinsic :: iso_c_binding
  use shardmat_types
  implicit none
  public

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
