! The C interface from Fortran, compared with loops over dense arrays here. With MPI on any number of ranks, also on fewer owners
! than ranks; `fortran_test alone`: one process without MPI.
program fortran_test
  use, intrinsic :: iso_c_binding
  use mpi
  use shardmat
  use fortran_checks
  use fortran_batches
  use fortran_solvers
  implicit none
  integer :: ierror, provided
  logical :: alone
  character(len=5, kind=c_char), target :: host = 'host'//c_null_char
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
