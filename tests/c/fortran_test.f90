! The C interface from Fortran, compared with loops over dense arrays here. With MPI on any number of ranks, also on fewer owners
! than ranks; `fortran_test alone`: one process without MPI.
program fortran_test
  use, intrinsic :: iso_c_binding
  use mpi
  use shardmat
  use fortran_checks
  use fortran_batches
  implicit none
  integer(c_int64_t), parameter :: n = 40
  integer :: ierror, provided
  logical :: alone
  character(len=5, kind=c_char), target :: host = 'host'//c_null_char
  type(shardmat_context_options) :: options
  type(c_ptr) :: context

  alone = command_argument_count() > 0
  options%backend = c_loc(host)
  options%threads = 1
  if (alone) then
    call ok(shardmat_context_create(options, context), 'context')
    call does_everything(context)
    call shardmat_context_destroy(context)
  else
    call mpi_init_thread(mpi_thread_serialized, provided, ierror)
    call mpi_comm_rank(mpi_comm_world, rank, ierror)
    call mpi_comm_size(mpi_comm_world, ranks, ierror)
    do while (options%owners < ranks)  ! 0: all ranks are owners
      call ok(shardmat_context_create_fortran(mpi_comm_world, options, context), 'context')
      call does_everything(context)
      call shardmat_context_destroy(context)
      options%owners = options%owners + 1
    end do
    call mpi_finalize(ierror)
  end if
  if (failures > 0) error stop 'the Fortran interface differs'

contains

  subroutine does_everything(context)
    type(c_ptr), intent(in) :: context
    type(shardmat_context_info) :: info
    type(c_ptr) :: stream, memory
    call ok(shardmat_context_get_info(context, info), 'information')
    call expect(info%rank == rank .and. info%ranks == ranks .and. info%device == -1, 'ranks and device')
    call expect(shardmat_text(info%backend) == 'host' .and. len(shardmat_text(info%name)) > 0, 'texts of the context')
    call expect((info%feeder == 1) .eqv. (options%owners > 0 .and. rank >= options%owners), 'who is a feeder')
    call ok(shardmat_context_stream(context, stream), 'stream')
    call expect(.not. c_associated(stream), 'the host has no stream')
    call multiplies(context)
    call multiplies_a_file(context)
    call multiplies_in_f32(context)
    call solves(context)
    call takes_coordinates(context)
    call takes_penalty_rows(context)
    call ranks_vertices(context)
    call finds_eigenvalues(context)
    call refuses(context)
    if (info%feeder == 1) return
    call multiplies_batches(context)
    call multiplies_in_place(context)
    call ok(shardmat_context_allocate(context, 1000_c_size_t, memory), 'memory')
    call ok(shardmat_context_free(context, memory), 'free memory')
    call refused(shardmat_context_free(context, memory), shardmat_usage, 'shardmat_context_allocate')
  end subroutine

  ! ---- Products ----

  ! The matrix of these tests: a diagonal and two others that wrap around, with another number everywhere.
  pure function dense_matrix() result(a)
    real(c_double) :: a(0:n - 1, 0:n - 1)
    integer(c_int64_t) :: i
    a = 0
    do i = 0, n - 1
      a(i, i) = 20 + i
      a(i, modulo(i + 1, n)) = 2 + modulo(i, 3_c_int64_t)
      a(i, modulo(i + 7, n)) = -1 - modulo(i, 5_c_int64_t)
    end do
  end function

  pure function dense_x() result(x)
    real(c_double) :: x(0:n - 1, 3)
    integer(c_int64_t) :: i
    x(:, 1) = [(real(modulo(i*i, 7_c_int64_t) - 2, c_double), i=0, n - 1)]
    x(:, 2) = [(real(i, c_double), i=0, n - 1)]
    x(:, 3) = 1
  end function

  ! Compressed rows of rows first, first + 1, … of a dense matrix.
  subroutine compress(a, first, rows, row_ptr, columns, values)
    real(c_double), intent(in) :: a(0:, 0:)
    integer(c_int64_t), intent(in) :: first, rows
    integer(c_int64_t), allocatable, intent(out) :: row_ptr(:), columns(:)
    real(c_double), allocatable, intent(out) :: values(:)
    integer(c_int64_t) :: i, j
    allocate (row_ptr(0:rows))
    row_ptr = 0
    columns = [integer(c_int64_t) ::]
    values = [real(c_double) ::]
    do i = 0, rows - 1
      columns = [columns, pack([(j, j=0, size(a, 2) - 1)], abs(a(first + i, :)) > 0)]
      values = [values, pack(a(first + i, :), abs(a(first + i, :)) > 0)]
      row_ptr(i + 1) = size(columns)
    end do
  end subroutine

  subroutine make_matrix(context, chosen, matrix, first, rows)
    type(c_ptr), intent(in) :: context
    type(shardmat_matrix_options), intent(in) :: chosen
    type(c_ptr), intent(out) :: matrix
    integer(c_int64_t), intent(out) :: first, rows
    integer(c_int64_t), allocatable, target :: row_ptr(:), columns(:)
    real(c_double), allocatable, target :: values(:)
    first = n*rank/ranks
    rows = n*(rank + 1)/ranks - first
    call compress(dense_matrix(), first, rows, row_ptr, columns, values)
    call ok(shardmat_matrix_from_rows(context, shardmat_rows(first_row=first, rows=rows, cols=n, row_ptr=c_loc(row_ptr), &
            columns=c_loc(columns), values=c_loc(values)), chosen, matrix), 'matrix of rows')
  end subroutine

  subroutine multiplies(context)
    type(c_ptr), intent(in) :: context
    type(c_ptr) :: matrix, one, three, by_rows, place, turned
    integer(c_int64_t) :: first, rows
    integer(c_int64_t), allocatable :: ids(:), row_ptr(:), columns(:)
    real(c_double) :: a(0:n - 1, 0:n - 1), all_x(0:n - 1, 3), all_y(0:n - 1, 3), turned_y(0:n - 1)
    real(c_double), allocatable, target :: x(:), y(:), x3(:, :), y3(:, :), wide_x(:, :), wide_y(:, :), values(:), b(:)
    real(c_double), pointer :: in_place(:, :)
    real(c_float), allocatable, target :: short(:)
    type(shardmat_matrix_info) :: info
    type(shardmat_product_info) :: about

    call make_matrix(context, shardmat_matrix_options(updatable=1), matrix, first, rows)
    call ok(shardmat_matrix_get_info(matrix, info), 'information')
    call expect(info%nnz == 3*n .and. info%own_rows == rows .and. info%own_values == 3*rows, 'sizes')
    call expect(info%node_block_size == 1, 'size of a node')
    allocate (ids(rows))
    call ok(shardmat_matrix_row_ids(matrix, ids), 'numbers of rows')
    call expect(ids(1) == first .and. ids(rows) == first + rows - 1, 'rows count from 0')
    ids = -1
    call ok(shardmat_matrix_col_ids(matrix, ids), 'numbers of columns')
    call expect(ids(1) == first .and. ids(rows) == first + rows - 1, 'columns count from 0')
    a = dense_matrix()
    all_x = dense_x()
    all_y = matmul(a, all_x)
    x = all_x(first:first + rows - 1, 1)
    x3 = all_x(first:first + rows - 1, :)

    ! One column, twice.
    allocate (y(rows))
    call ok(shardmat_product_create(matrix, 1_c_int64_t, product=one), 'product of one column')
    call ok(shardmat_product_multiply(one, 1d0, shardmat_column_major(x), 0d0, shardmat_column_major(y), c_null_ptr), 'y = A*x')
    call expect(near(y, all_y(ids, 1)), 'y = A*x')
    call ok(shardmat_product_multiply(one, 2d0, shardmat_column_major(x), -1d0, shardmat_row_major(y), c_null_ptr), '2 A*x - y')
    call expect(near(y, all_y(ids, 1)), 'y = 2 A*x - y')
    y = 0
    call ok(shardmat_spmv(matrix, 1d0, c_loc(x), 0d0, c_loc(y)), 'spmv')
    call expect(near(y, all_y(ids, 1)), 'the same of spmv')

    ! With the transpose: by a call of its own, and by a product.
    y = 0
    call ok(shardmat_spmv_transposed(matrix, 1d0, c_loc(x), 0d0, c_loc(y)), 'spmv_transposed')
    turned_y = matmul(transpose(a), all_x(:, 1))
    call expect(near(y, turned_y(ids)), 'y = transpose of A, times x')
    y = 0
    call ok(shardmat_product_create(matrix, 1_c_int64_t, shardmat_product_options(transposed=1_c_int64_t), turned), &
            'product with the transpose')
    call ok(shardmat_product_multiply(turned, 1d0, shardmat_column_major(x), 0d0, shardmat_column_major(y), c_null_ptr), &
            'transposed product')
    call expect(near(y, turned_y(ids)), 'y of the transposed product')
    call shardmat_product_destroy(turned)

    ! Three columns as Fortran has them, then columns 2 to 4 of wider arrays, whose other entries stay.
    call ok(shardmat_product_create(matrix, 3_c_int64_t, shardmat_product_options(column_major_y=1), three), '3 columns')
    allocate (y3(rows, 3))
    call ok(shardmat_product_multiply(three, 1d0, shardmat_column_major(x3), 0d0, shardmat_column_major(y3), c_null_ptr), 'Y = A*X')
    call expect(near([y3], [all_y(ids, :)]), 'Y = A*X')
    allocate (wide_x(rows + 3, 5), wide_y(rows + 2, 6), source=-7d0)
    wide_x(2:rows + 1, 2:4) = x3
    call ok(shardmat_product_multiply(three, 1d0, shardmat_column_major(wide_x(2:rows + 1, 2:4)), 0d0, &
            shardmat_column_major(wide_y(:rows, 1:5:2)), c_null_ptr), 'sections')
    call expect(near([wide_y(:rows, 1:5:2)], [all_y(ids, :)]), 'Y of sections')
    call expect(near([wide_y(rows + 1:, :)], spread(-7d0, 1, 12)), 'rows below a section stay')
    call expect(near([wide_y(:, 2:6:2)], spread(-7d0, 1, 3*int(rows + 2))), 'columns beside a section stay')
    call ok(shardmat_product_get_info(three, about), 'information')
    call expect(about%columns == 3 .and. len(shardmat_text(about%kernel)) > 0 .and. len(shardmat_text(about%why)) > 0, 'kernel')
    call expect(ranks > 1 .or. shardmat_text(about%exchange) == 'none', 'exchange')

    ! Row by row, also from the memory that the product reads.
    call ok(shardmat_product_create(matrix, 3_c_int64_t, shardmat_product_options(), by_rows), 'row-major product')
    x3 = transpose(x3)
    y3 = reshape(y3, [3, int(rows)])
    y3 = 0
    call ok(shardmat_product_multiply(by_rows, 1d0, shardmat_row_major(x3), 0d0, shardmat_row_major(y3), c_null_ptr), 'by rows')
    call expect(near([transpose(y3)], [all_y(ids, :)]), 'Y by rows')
    y3 = 0
    call ok(shardmat_spmm(matrix, 3_c_int64_t, 1d0, c_loc(x3), 0d0, c_loc(y3)), 'spmm')
    call expect(near([transpose(y3)], [all_y(ids, :)]), 'the same of spmm')
    call ok(shardmat_product_x(by_rows, place), 'memory of X')
    call expect(ranks > 1 .or. c_associated(place), 'one rank keeps the order')
    if (c_associated(place)) then
      call c_f_pointer(place, in_place, [3_c_int64_t, rows])
      in_place = 2*x3
      call ok(shardmat_product_multiply(by_rows, 1d0, shardmat_row_major(in_place), 0d0, shardmat_row_major(y3), c_null_ptr), 'X')
      call expect(near([transpose(y3)], [2*all_y(ids, :)]), 'Y of X in place')
    end if

    ! What does not fit.
    short = real(x, c_float)
    call refused(shardmat_product_multiply(one, 1d0, shardmat_column_major(short), 0d0, shardmat_column_major(y), c_null_ptr), &
                 shardmat_usage, 'f32')
    call refused(shardmat_product_multiply(one, 1d0, shardmat_column_major(x(2:)), 0d0, shardmat_column_major(y), c_null_ptr), &
                 shardmat_usage, 'X is')
    deallocate (wide_x)
    allocate (wide_x(2*rows, 3), source=1d0)
    call refused(shardmat_product_multiply(three, 1d0, shardmat_column_major(wide_x(::2, :)), 0d0, &
                 shardmat_column_major(wide_x(:rows, :)), c_null_ptr), shardmat_usage, 'leading dimension of X is 0')
    call refused(shardmat_product_multiply(one, 1d0, shardmat_column_major(wide_x(::2, 1)), 0d0, shardmat_column_major(y), &
                 c_null_ptr), shardmat_usage, 'leading dimension 2')

    ! New values, then rows and columns of zeros, which the kept product has, too.
    a = 3*a
    call compress(a, first, rows, row_ptr, columns, values)
    call ok(shardmat_matrix_update_values(matrix, c_loc(values), size(values, kind=c_int64_t), shardmat_f64, 0, c_null_ptr), 'new')
    all_y = matmul(a, all_x)
    call ok(shardmat_product_multiply(one, 1d0, shardmat_column_major(x), 0d0, shardmat_column_major(y), c_null_ptr), 'y = A*x')
    call expect(near(y, all_y(ids, 1)), 'y of new values')
    b = y
    call ok(shardmat_matrix_zero_rows_columns(matrix, [5_c_int64_t], int(merge(1, 0, rank == 0), c_int64_t), 4d0, &
            c_loc(x), c_loc(b)), 'rows and columns of zeros')
    a(5, :) = 0
    a(:, 5) = 0
    a(5, 5) = 4
    all_y = matmul(a, all_x)
    call ok(shardmat_product_multiply(one, 1d0, shardmat_column_major(x), 0d0, shardmat_column_major(y), c_null_ptr), 'y = A*x')
    call expect(near(y, all_y(ids, 1)) .and. near(b, y), 'y and b of rows and columns of zeros')

    call shardmat_matrix_destroy(matrix)  ! the products keep what they need
    call ok(shardmat_product_multiply(one, 1d0, shardmat_column_major(x), 0d0, shardmat_column_major(y), c_null_ptr), 'y = A*x')
    call shardmat_product_destroy(one)
    call shardmat_product_destroy(three)
    call shardmat_product_destroy(by_rows)
  end subroutine

  ! A file's rows are on the owners: feeders give and take arrays without entries.
  subroutine multiplies_a_file(context)
    type(c_ptr), intent(in) :: context
    type(c_ptr) :: matrix, product
    integer(c_int64_t) :: rows, cols
    type(shardmat_matrix_info) :: info
    real(c_double), allocatable, target :: x(:, :), y(:, :)
    call ok(shardmat_file_shape(context, 'poisson7:n=4'//c_null_char, rows, cols), 'size of a file')
    call expect(rows == 64 .and. cols == 64, 'size of a file')
    call ok(shardmat_matrix_from_file(context, 'poisson7:n=4'//c_null_char, matrix=matrix), 'file')
    call ok(shardmat_matrix_get_info(matrix, info), 'information')
    call expect((info%own_rows == 0) .eqv. (rank >= options%owners .and. options%owners > 0), 'rows are on the owners')
    allocate (x(info%own_cols, 2), source=1d0)
    allocate (y(info%own_rows, 2), source=-1d0)
    call ok(shardmat_product_create(matrix, 2_c_int64_t, shardmat_product_options(column_major_y=1), product), 'product')
    call ok(shardmat_product_multiply(product, 1d0, shardmat_column_major(x), 0d0, shardmat_column_major(y), c_null_ptr), 'Y = A*X')
    call expect(all(y > -1d-12), 'row sums of the Laplacian')
    x = reshape(x, [2, int(info%own_cols)], pad=[1d0])
    y = reshape(y, [2, int(info%own_rows)], pad=[1d0])
    call ok(shardmat_product_multiply(product, 1d0, shardmat_row_major(x), 0d0, shardmat_row_major(y), c_null_ptr), 'by rows')
    call shardmat_product_destroy(product)
    call shardmat_matrix_destroy(matrix)
  end subroutine

  subroutine multiplies_in_f32(context)
    type(c_ptr), intent(in) :: context
    character(len=4, kind=c_char), target :: f32 = 'f32'//c_null_char
    type(c_ptr) :: matrix, product
    integer(c_int64_t) :: first, rows
    real(c_double) :: all_y(0:n - 1, 3), all_x(0:n - 1, 3)
    real(c_float), allocatable, target :: x(:, :), y(:, :)
    call make_matrix(context, shardmat_matrix_options(value_type=c_loc(f32)), matrix, first, rows)
    all_x = dense_x()
    all_y = matmul(dense_matrix(), all_x)
    x = real(all_x(first:first + rows - 1, :), c_float)
    allocate (y(rows, 3))
    call ok(shardmat_product_create(matrix, 3_c_int64_t, shardmat_product_options(column_major_y=1), product), 'product')
    call ok(shardmat_product_multiply(product, 1d0, shardmat_column_major(x), 0d0, shardmat_column_major(y), c_null_ptr), 'Y = A*X')
    call expect(near([real(y, c_double)], [all_y(first:first + rows - 1, :)]), 'Y in f32')
    x = transpose(x)
    y = transpose(y) + 1
    call ok(shardmat_product_multiply(product, 1d0, shardmat_row_major(x), 0d0, shardmat_row_major(y), c_null_ptr), 'by rows')
    call expect(near([real(transpose(y), c_double)], [all_y(first:first + rows - 1, :)]), 'Y by rows in f32')
    call shardmat_product_destroy(product)
    call shardmat_matrix_destroy(matrix)
  end subroutine

  ! ---- Solvers, PageRank ----

  ! A diagonal matrix of triplets, which every rank gives for all rows; they are summed.
  subroutine solves(context)
    type(c_ptr), intent(in) :: context
    integer(c_int64_t), target :: row(n)
    real(c_double), target :: values(n)
    real(c_double), allocatable, target :: b(:), x(:)
    real(c_double) :: norms(100)
    integer(c_int64_t) :: i, total
    integer, target :: calls
    type(c_ptr) :: matrix, solver
    type(shardmat_triplets) :: triplets
    type(shardmat_solver_options) :: chosen
    type(shardmat_solve_result) :: solved(1)
    triplets%first_row = n*rank/ranks
    triplets%rows = n*(rank + 1)/ranks - triplets%first_row
    triplets%cols = n
    triplets%count = n
    row = [(i, i=0, n - 1)]
    values = 1 + modulo(row, 4_c_int64_t)
    triplets%row = c_loc(row)
    triplets%column = c_loc(row)
    triplets%values = c_loc(values)
    call ok(shardmat_matrix_from_triplets(context, triplets, shardmat_matrix_options(updatable=1), matrix), 'triplets')
    chosen%monitor = c_funloc(count_calls)
    chosen%user = c_loc(calls)
    call ok(shardmat_solver_create(matrix, chosen, solver), 'solver')
    b = ranks*values(triplets%first_row + 1:triplets%first_row + triplets%rows)
    allocate (x(triplets%rows))
    x = 0
    calls = 0
    call ok(shardmat_solver_solve(solver, shardmat_column_major(b), shardmat_column_major(x), solved), 'solve')
    call expect(near(x, spread(1d0, 1, size(x)), 1d-6) .and. calls > 0, 'solution')
    call expect(shardmat_text(solved(1)%reason) == 'converged_rtol', 'reason')
    call expect(len(shardmat_text(solved(1)%explanation)) > 0, 'explanation')
    norms = -1
    call ok(shardmat_solver_history(solver, 0_c_int64_t, norms, 2_c_int64_t, total), 'history')
    call expect(total == solved(1)%iterations + 1 .and. near(norms(:1), [solved(1)%norm_of_b]) .and. norms(2) >= 0 .and. &
                norms(3) < 0, 'history')
    values = 2*values
    call ok(shardmat_matrix_update_values(matrix, c_loc(values), n, shardmat_f64, 0, c_null_ptr), 'new values')
    call ok(shardmat_solver_refresh(solver), 'refresh')
    call ok(shardmat_solver_solve(solver, shardmat_column_major(b), shardmat_column_major(x), solved), 'solve')
    call expect(near(x, spread(0.5d0, 1, size(x)), 1d-6), 'solution of new values')
    call shardmat_solver_destroy(solver)
    x = 0
    call ok(shardmat_solve(matrix, b=c_loc(b), x=c_loc(x), solved=solved(1)), 'solve without options')
    call expect(near(x, spread(0.5d0, 1, size(x)), 1d-6), 'solution without options')
    call takes_a_preconditioner(matrix, b)
    call shardmat_matrix_destroy(matrix)
  end subroutine

  subroutine takes_a_preconditioner(matrix, b)
    type(c_ptr), intent(in) :: matrix
    real(c_double), target, intent(in) :: b(:)
    real(c_double), target :: x(size(b)), z(size(b))
    character(kind=c_char, len=3), target :: method = 'cg'//c_null_char
    integer, target :: applied, watched
    type(c_ptr) :: solver
    type(shardmat_solver_options) :: chosen
    type(shardmat_solve_result) :: solved(1)
    chosen%solver = c_loc(method)
    chosen%apply = c_funloc(apply_half)
    chosen%apply_user = c_loc(applied)
    chosen%watch = c_funloc(watch_x)
    chosen%user = c_loc(watched)
    applied = 0
    watched = 0
    if (options%owners > 0) then
      call refused(shardmat_solver_create(matrix, chosen, solver), shardmat_usage, 'Refuse feeders')
      return
    end if
    call ok(shardmat_solver_create(matrix, chosen, solver), 'own preconditioner')
    x = 0
    call ok(shardmat_solver_solve(solver, shardmat_column_major(b), shardmat_column_major(x), solved), 'own preconditioner')
    call expect(near(x, spread(0.5d0, 1, size(x)), 1d-6), 'solution with an own preconditioner')
    call expect(applied >= solved(1)%iterations .and. watched == solved(1)%iterations, 'calls')
    call ok(shardmat_solver_precondition(solver, shardmat_column_major(b), shardmat_column_major(z)), 'precondition')
    call expect(near(z(3:), b(3:)/2) .and. abs(z(2) - b(2)/2 - b(1)/10) < 1d-14, 'M alone')
    applied = -1
    x = 0
    call refused(shardmat_solver_solve(solver, shardmat_column_major(b), shardmat_column_major(x), solved), &
                 shardmat_resources, 'full')
    call shardmat_solver_destroy(solver)
  end subroutine

  function iterations_of(matrix, chosen, rows) result(iterations)
    type(c_ptr), intent(in) :: matrix
    type(shardmat_solver_options), intent(in) :: chosen
    integer(c_int64_t), intent(in) :: rows
    integer(c_int64_t) :: iterations
    real(c_double), target :: b(rows), x(rows)
    type(shardmat_solve_result) :: solved
    b = 1
    x = 0
    call ok(shardmat_solve(matrix, chosen, c_loc(b), c_loc(x), solved), 'multigrid')
    iterations = solved%iterations
  end function

  ! Rigid-body modes take fewer iterations than constants, whether they come from coordinates or as vectors.
  subroutine takes_coordinates(context)
    type(c_ptr), intent(in) :: context
    integer(c_int64_t), parameter :: edge = 8
    character(kind=c_char, len=26), target :: name = 'multigrid'//c_null_char, setting = 'coarse_size=100 inner=f64'//c_null_char
    character(kind=c_char, len=60), target :: constants = 'coarse_size=100 inner=f64 near_null_space=constants'//c_null_char
    integer(c_int64_t), allocatable :: ids(:)
    real(c_double), allocatable, target :: xyz(:, :), modes(:, :)
    integer(c_int64_t) :: i, along(0:2), without, with, known
    integer :: c, next, last
    type(c_ptr) :: matrix, solver
    type(shardmat_matrix_info) :: about
    type(shardmat_solver_options) :: chosen
    type(shardmat_multigrid_info) :: made
    type(shardmat_multigrid_level) :: level
    call ok(shardmat_matrix_from_file(context, 'elasticity:n=8,uniform,clamp=0.1'//c_null_char, shardmat_matrix_options(), &
                                      matrix), 'elasticity')
    call ok(shardmat_matrix_get_info(matrix, about), 'info')
    allocate (ids(about%own_rows), xyz(3, about%own_rows/3), modes(6, about%own_rows))
    call ok(shardmat_matrix_row_ids(matrix, ids), 'ids')
    modes = 0
    do i = 1, about%own_rows
      c = int(modulo(ids(i), 3_c_int64_t))
      next = modulo(c + 1, 3)
      last = modulo(c + 2, 3)
      along = modulo(ids(i)/3/[1_c_int64_t, edge, edge**2], edge)
      xyz(c + 1, (i + 2)/3) = real(along(c), c_double)
      modes(c + 1, i) = 1
      modes(next + 4, i) = real(along(last), c_double)
      modes(last + 4, i) = -real(along(next), c_double)
    end do
    chosen%preconditioner = c_loc(name)
    chosen%settings = c_loc(constants)
    without = iterations_of(matrix, chosen, about%own_rows)
    chosen%settings = c_loc(setting)
    known = iterations_of(matrix, chosen, about%own_rows)  ! the source says where its nodes lie
    chosen%coordinates = c_loc(xyz)
    chosen%nodes = size(xyz, 2)
    chosen%dimensions = 3
    with = iterations_of(matrix, chosen, about%own_rows)
    call expect(with < without, 'fewer iterations with coordinates')
    call expect(abs(known - with) <= 1, 'as many iterations with what the source knows')
    call ok(shardmat_solver_create(matrix, chosen, solver), 'multigrid')
    call ok(shardmat_solver_get_multigrid(solver, made), 'levels')
    call expect(made%levels > 1 .and. made%operator_complexity > 1 .and. made%memory_bytes > 0, 'levels')
    call expect(shardmat_text(made%near_null_space) == '6 rigid-body modes', 'modes')
    call expect(shardmat_text(made%cycle) == 'V' .and. shardmat_text(made%smoother) == 'chebyshev', 'cycle and smoother')
    call ok(shardmat_solver_get_level(solver, 0_c_int64_t, level), 'level')
    call expect(level%unknowns == about%rows .and. level%nonzeros > about%rows .and. level%radius > 1, 'the finest level')
    call refused(shardmat_solver_get_level(solver, made%levels, level), shardmat_usage, 'no such level')
    call takes_the_prolongation(solver, about%own_rows)
    call shardmat_solver_destroy(solver)
    chosen%nodes = chosen%nodes + 1
    call refused(shardmat_solver_create(matrix, chosen, solver), shardmat_usage, 'nodes of 3 unknowns')
    chosen%coordinates = c_null_ptr
    chosen%nodes = 0
    chosen%dimensions = 0
    chosen%near_null_vectors = c_loc(modes)
    chosen%near_null_count = 6
    call expect(abs(iterations_of(matrix, chosen, about%own_rows) - with) <= 1, 'as many iterations with vectors')
    call shardmat_matrix_destroy(matrix)
  end subroutine

  subroutine takes_the_prolongation(solver, rows)
    type(c_ptr), intent(in) :: solver
    integer(c_int64_t), intent(in) :: rows
    type(shardmat_multigrid_level) :: level
    integer(c_int64_t), allocatable :: row_ptr(:), columns(:)
    real(c_double), allocatable :: values(:)
    call ok(shardmat_solver_get_level(solver, 0_c_int64_t, level), 'level')
    allocate (row_ptr(level%prolongation_rows + 1), columns(level%prolongation_entries), values(level%prolongation_entries))
    if (options%owners > 0) then
      call refused(shardmat_solver_get_prolongation(solver, 0_c_int64_t, row_ptr, columns, values), shardmat_usage, 'feeders')
      return
    end if
    values = 0
    call ok(shardmat_solver_get_prolongation(solver, 0_c_int64_t, row_ptr, columns, values), 'prolongation')
    call expect(level%prolongation_rows == rows .and. row_ptr(rows + 1) == level%prolongation_entries, 'rows of P')
    call expect(minval(columns) >= 0 .and. sum(abs(values)) > 0, 'entries of P')
  end subroutine

  ! Every fifth row states a known value by a huge diagonal; x solves the other rows with it.
  subroutine takes_penalty_rows(context)
    type(c_ptr), intent(in) :: context
    real(c_double) :: a(0:n - 1, 0:n - 1), right(0:n - 1), known(0:n - 1, 3)
    real(c_double), allocatable, target :: values(:), b(:), x(:)
    integer(c_int64_t), allocatable, target :: row_ptr(:), columns(:)
    character(len=8, kind=c_char), target :: choice, method = 'gmres'//c_null_char
    type(c_ptr) :: matrix
    type(shardmat_solver_options) :: chosen
    type(shardmat_solve_result) :: solved
    integer(c_int64_t) :: i, first, rows
    integer :: attempt
    a = dense_matrix()
    known = dense_x()
    right = matmul(a, known(:, 1))
    do i = 0, n - 1, 5
      a(i, i) = 1d30*(1 + i)
      right(i) = a(i, i)*known(i, 1)
    end do
    first = n*rank/ranks
    rows = n*(rank + 1)/ranks - first
    call compress(a, first, rows, row_ptr, columns, values)
    call ok(shardmat_matrix_from_rows(context, shardmat_rows(first_row=first, rows=rows, cols=n, row_ptr=c_loc(row_ptr), &
            columns=c_loc(columns), values=c_loc(values)), shardmat_matrix_options(), matrix), 'matrix with penalty rows')
    b = right(first:first + rows - 1)
    allocate (x(rows))
    chosen%rtol = 1d-12
    chosen%solver = c_loc(method)
    do attempt = 1, 3
      if (attempt == 2) choice = 'known'//c_null_char
      if (attempt == 3) choice = 'keep'//c_null_char
      if (attempt > 1) chosen%penalty_rows = c_loc(choice)
      x = 0
      call ok(shardmat_solve(matrix, chosen, c_loc(b), c_loc(x), solved), 'solve with penalty rows')
      call expect(near(x, known(first:first + rows - 1, 1), 1d-8) .eqv. attempt < 3 .or. rows == 0, 'known values')
      call expect(solved%penalty_rows == merge(0, 8, attempt == 3), 'penalty rows')
      call expect((solved%penalty_ratio > 1d28) .eqv. attempt < 3, 'ratio of penalty rows')
    end do
    call shardmat_matrix_destroy(matrix)
  end subroutine

  ! Scores of a dense graph, restarts by columns of v.
  function ranked_dense(a, v) result(scores)
    real(c_double), intent(in) :: a(:, :), v(:, :)
    real(c_double) :: scores(size(v, 1), size(v, 2))
    integer :: iteration, j
    scores = v
    do iteration = 1, 300
      do j = 1, size(v, 2)
        scores(:, j) = 0.85d0*matmul(transpose(a), scores(:, j)/sum(a, 2)) + 0.15d0*v(:, j)
      end do
    end do
  end function

  subroutine ranks_vertices(context)
    type(c_ptr), intent(in) :: context
    integer, parameter :: grid(3) = [1, 4, 16]
    type(shardmat_pagerank_options) :: chosen
    type(shardmat_pagerank_result) :: ranked
    real(c_double), target :: restarts(2, 64), scores(2, 64), of_rows(n)
    real(c_double) :: a(0:63, 0:63), uniform(n, 1), weights(0:n - 1, 0:n - 1)
    integer(c_int64_t), allocatable, target :: row_ptr(:), columns(:)
    real(c_double), allocatable, target :: values(:)
    type(c_ptr) :: from, to
    integer :: i, j
    a = 0  ! the 7-point stencil on 4 x 4 x 4 points, every entry with weight 1
    do i = 0, 63
      a(i, i) = 1
      do j = 1, 3
        if (modulo(i/grid(j), 4) > 0) a(i, i - grid(j)) = 1
        if (modulo(i/grid(j), 4) < 3) a(i, i + grid(j)) = 1
      end do
    end do
    restarts = 0
    restarts(1, 1) = 1
    restarts(2, :) = 1d0/64
    from = c_null_ptr
    to = c_null_ptr
    if (rank == 0) from = c_loc(restarts)
    if (rank == 0) to = c_loc(scores)
    chosen%unweighted = 1
    chosen%columns = 2
    call ok(shardmat_pagerank_of_file(context, 'poisson7:n=4'//c_null_char, chosen, from, to, ranked), 'PageRank of a file')
    call expect(ranked%converged == 1 .and. ranked%dangling == 0 .and. ranked%change < 1d-10, 'PageRank of a file')
    if (rank == 0) call expect(near([transpose(scores)], [ranked_dense(a, transpose(restarts))], 1d-9), 'scores')
    chosen%max_iterations = 1
    call refused(shardmat_pagerank_of_file(context, 'poisson7:n=4'//c_null_char, chosen, from, to, ranked), &
                 shardmat_not_converged, 'change')
    if (ranks > 1) return
    weights = abs(dense_matrix())
    call compress(weights, 0_c_int64_t, n, row_ptr, columns, values)
    uniform = 1d0/n
    call ok(shardmat_pagerank_of_rows(context, shardmat_rows(rows=n, cols=n, row_ptr=c_loc(row_ptr), columns=c_loc(columns), &
            values=c_loc(values)), restarts=c_null_ptr, scores=c_loc(of_rows), ranked=ranked), 'PageRank of rows')
    call expect(near(of_rows, [ranked_dense(weights, uniform)], 1d-9), 'scores of rows')
  end subroutine

  subroutine finds_eigenvalues(context)
    type(c_ptr), intent(in) :: context
    type(c_ptr) :: k, m
    type(shardmat_context_info) :: here
    type(shardmat_matrix_info) :: info
    type(shardmat_eigen_options) :: chosen
    type(shardmat_eigen_result) :: found
    real(c_double), target :: values(8), again(2)
    real(c_double), allocatable, target :: vectors(:, :)
    character(kind=c_char, len=13), target :: method = 'shift_invert'//c_null_char
    integer(c_int) :: status
    call ok(shardmat_context_get_info(context, here), 'context')
    call ok(shardmat_matrix_from_file(context, 'elasticity:n=4'//c_null_char, matrix=k), 'K')
    call ok(shardmat_matrix_from_file(context, 'mass:n=4'//c_null_char, matrix=m), 'M')
    call ok(shardmat_matrix_get_info(k, info), 'sizes of K')
    allocate (vectors(8, max(1_c_int64_t, info%own_rows)))
    chosen%count = 8
    status = shardmat_eigen(k, m, chosen, c_loc(values), c_loc(vectors), found)
    if (status == shardmat_usage) then
      call refused(status, shardmat_usage, 'feeders')
    else
      call ok(status, 'eigenvalues of K and M')
      call expect(found%converged == 1 .and. found%zero_modes == 6 .and. found%orthogonality < 1d-10, 'modes of a free body')
      call expect(all(abs(values(1:6)) < 1d-9*values(7)) .and. values(8) >= values(7), 'values of a free body')
      if (ranks == 1) then  ! MUMPS wants MPI with threads
        chosen%count = 2
        chosen%shift = values(7)*1.01d0
        chosen%has_shift = 1
        chosen%method = c_loc(method)
        call ok(shardmat_eigen(k, m, chosen, c_loc(again), c_null_ptr, found), 'eigenvalues near a shift')
        call expect(near(again, values(7:8), 1d-8), 'values near a shift')
      end if
    end if
    call shardmat_matrix_destroy(m)
    call shardmat_matrix_destroy(k)
  end subroutine

  ! ---- Errors ----

  subroutine refuses(context)
    type(c_ptr), intent(in) :: context
    type(c_ptr) :: matrix
    type(shardmat_rows) :: rows
    call refused(shardmat_matrix_from_file(context, '/nonexistent/a.mtx'//c_null_char, shardmat_matrix_options(), matrix), &
                 shardmat_input, '/nonexistent/a.mtx')
    call expect(.not. c_associated(matrix), 'no matrix of a missing file')
    rows%size_ = 3
    call refused(shardmat_matrix_from_rows(context, rows, shardmat_matrix_options(), matrix), shardmat_usage, 'shardmat_rows')
    call refused(shardmat_spmv(c_null_ptr, 1d0, c_null_ptr, 0d0, c_null_ptr), shardmat_usage, 'NULL')
    call expect(shardmat_text(c_null_ptr) == '' .and. index(shardmat_text(shardmat_version()), '.') > 1, 'texts')
    call shardmat_matrix_destroy(c_null_ptr)
  end subroutine
end program
