! A Fortran program with the installed modules: a product of three columns that is kept, and a batch. No MPI.
program fortran_interface
  use, intrinsic :: iso_c_binding
  use shardmat
  use shardmat_batches
  implicit none
  integer(c_int64_t), target :: row_ptr(3) = [0, 2, 4], columns(4) = [0, 1, 0, 1]
  real(c_double), target :: values(4) = [2, 1, 1, 3], x(2, 3), y(2, 3)
  type(c_ptr) :: context, matrix, product
  integer(c_int64_t), target :: first_row(3) = [0, 1, 2], first_col(3) = [0, 1, 2], first_entry(3) = [0, 1, 2]
  integer(c_int32_t), target :: short_row_ptr(3) = [0, 1, 2], col_idx(2) = [0, 0]
  real(c_double), target :: entries(2) = [5, 7], batch_x(1, 2), batch_y(1, 2)
  character(len=5, kind=c_char), target :: host = 'host'//c_null_char

  call check(shardmat_context_create(shardmat_context_options(backend=c_loc(host)), context))
  call check(shardmat_matrix_from_rows(context, shardmat_rows(rows=2, cols=2, row_ptr=c_loc(row_ptr), &
             columns=c_loc(columns), values=c_loc(values)), shardmat_matrix_options(), matrix))
  call check(shardmat_product_create(matrix, 3_c_int64_t, shardmat_product_options(column_major_y=1), product))
  x = reshape([1, 10, 0, 1, 1, 1], [2, 3])
  call check(shardmat_product_multiply(product, 1d0, shardmat_column_major(x), 0d0, shardmat_column_major(y), c_null_ptr))
  if (any(nint(y) /= reshape([12, 31, 1, 3, 3, 4], [2, 3]))) error stop 'wrong product'
  call shardmat_product_destroy(product)
  call shardmat_matrix_destroy(matrix)

  call check(shardmat_batch_product_create(context, shardmat_batch(count=2, first_row=c_loc(first_row), &
             first_col=c_loc(first_col), first_entry=c_loc(first_entry), row_ptr=c_loc(short_row_ptr), &
             col_idx=c_loc(col_idx), values=c_loc(entries)), 1_c_int64_t, c_null_ptr, product))
  batch_x(1, :) = [2, 3]
  call check(shardmat_batch_product_multiply(product, 1d0, shardmat_row_major(batch_x), 0d0, shardmat_row_major(batch_y), &
                                             c_null_ptr))
  if (any(nint(batch_y(1, :)) /= [10, 21])) error stop 'wrong product of a batch'
  call shardmat_batch_product_destroy(product)
  call shardmat_context_destroy(context)
  print '(2a)', 'Fortran works with Shardmat ', shardmat_text(shardmat_version())

contains

  subroutine check(status)
    integer(c_int), intent(in) :: status
    if (status /= shardmat_ok) error stop shardmat_message()
  end subroutine
end program
