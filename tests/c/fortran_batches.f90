! Batches from Fortran, compared with a dense block-diagonal matrix: a part of fortran_test.
module fortran_batches
  use, intrinsic :: iso_c_binding
  use shardmat_batches
  use fortran_checks
  implicit none
  private
  public :: multiplies_batches, multiplies_in_place

contains

  ! Three matrices: 2 x 3, 3 x 2 and 1 x 4, stacked in a block-diagonal matrix of 6 x 9.
  subroutine make_batch(a, offsets, row_ptr, row_idx, col_idx, values, batch)
    real(c_double), intent(out) :: a(6, 9)
    integer(c_int64_t), target, intent(out) :: offsets(4, 3)
    integer(c_int32_t), allocatable, target, intent(out) :: row_ptr(:), row_idx(:), col_idx(:)
    real(c_double), allocatable, target, intent(out) :: values(:)
    type(shardmat_batch), intent(out) :: batch
    integer :: m, i, j
    offsets(:, 1) = [0, 2, 5, 6]
    offsets(:, 2) = [0, 3, 5, 9]
    offsets(1, 3) = 0
    a = 0
    row_ptr = [0]
    row_idx = [integer(c_int32_t) ::]
    col_idx = row_idx
    values = [real(c_double) ::]
    do m = 1, 3
      do i = 0, int(offsets(m + 1, 1) - offsets(m, 1)) - 1
        do j = 0, int(offsets(m + 1, 2) - offsets(m, 2)) - 1
          if (modulo(i + 2*j, 3) == 1) cycle
          values = [values, real(10*m + 3*i + j, c_double)]
          row_idx = [row_idx, int(i, c_int32_t)]
          col_idx = [col_idx, int(j, c_int32_t)]
          a(offsets(m, 1) + i + 1, offsets(m, 2) + j + 1) = values(size(values))
        end do
        row_ptr = [row_ptr, int(size(values), c_int32_t)]
      end do
      offsets(m + 1, 3) = size(values)
    end do
    batch = shardmat_batch(count=3, first_row=c_loc(offsets(1, 1)), first_col=c_loc(offsets(1, 2)), &
      first_entry=c_loc(offsets(1, 3)), row_ptr=c_loc(row_ptr), col_idx=c_loc(col_idx), values=c_loc(values))
  end subroutine

  subroutine multiplies_batches(context)
    type(c_ptr), intent(in) :: context
    real(c_double) :: a(6, 9)
    integer(c_int64_t), target :: offsets(4, 3)
    integer(c_int32_t), allocatable, target :: row_ptr(:), row_idx(:), col_idx(:)
    real(c_double), allocatable, target :: values(:)
    real(c_double), target :: x(3, 9), y(3, 6), wide(4, 6)
    type(shardmat_batch) :: batch
    type(c_ptr) :: product
    integer :: i
    call make_batch(a, offsets, row_ptr, row_idx, col_idx, values, batch)
    x = reshape([(modulo(i*i, 11) - 4d0, i=1, 27)], [3, 9])
    call ok(shardmat_batch_product_create(context, batch, 3_c_int64_t, c_null_ptr, product), 'batch')
    call expect(len(shardmat_text(shardmat_batch_product_kernel(product))) > 0, 'kernel of a batch')
    call ok(shardmat_batch_product_multiply(product, 1d0, shardmat_row_major(x), 0d0, shardmat_row_major(y), c_null_ptr), 'batch')
    call expect(near([y], [matmul(x, transpose(a))]), 'Y of a batch')
    wide = -7
    wide(2:, :) = y
    call ok(shardmat_batch_product_multiply(product, 2d0, shardmat_row_major(x), -1d0, shardmat_row_major(wide(2:, :)), &
            c_null_ptr), 'batch')
    call expect(near([wide(2:, :)], [y]) .and. near(wide(1, :), spread(-7d0, 1, 6)), 'Y of a batch in a wider array')
    call refused(shardmat_batch_product_multiply(product, 1d0, shardmat_row_major(x(:, :8)), 0d0, shardmat_row_major(y), &
                 c_null_ptr), shardmat_usage, '9')
    call refused(shardmat_batch_product_multiply(product, 1d0, shardmat_column_major(x), 0d0, shardmat_row_major(y), &
                 c_null_ptr), shardmat_usage, 'X is')
    call shardmat_batch_product_destroy(product)

    ! The same by coordinates, one column.
    batch%row_ptr = c_null_ptr
    batch%row_idx = c_loc(row_idx)
    call ok(shardmat_batch_product_create(context, batch, 1_c_int64_t, c_null_ptr, product), 'batch of coordinates')
    x(:, 1) = x(1, :3)
    call multiply_one_column(product, a)
    call shardmat_batch_product_destroy(product)
    col_idx(size(col_idx)) = 4
    call refused(shardmat_batch_product_create(context, batch, 3_c_int64_t, c_null_ptr, product), shardmat_input, 'matrix 2')
    call expect(.not. c_associated(product), 'no product of a wrong batch')
  end subroutine

  subroutine multiply_one_column(product, a)
    type(c_ptr), intent(in) :: product
    real(c_double), intent(in) :: a(6, 9)
    real(c_double), target :: x(9), y(6)
    integer :: i
    x = [(i - 3d0, i=1, 9)]
    call ok(shardmat_batch_product_multiply(product, 1d0, shardmat_row_major(x), 0d0, shardmat_row_major(y), c_null_ptr), 'batch')
    call expect(near(y, matmul(a, x)), 'y of a batch')
  end subroutine

  ! Batches in memory of this program.
  subroutine multiplies_in_place(context)
    type(c_ptr), intent(in) :: context
    real(c_double) :: a(6, 9)
    integer(c_int64_t), target :: offsets(4, 3)
    integer(c_int32_t), allocatable, target :: row_ptr(:), row_idx(:), col_idx(:)
    real(c_double), allocatable, target :: values(:)
    real(c_double), target :: x(3, 9), y(3, 6), w(2, 3), features(2, 6), bias(3), turned(2, 9)
    integer(c_int32_t), target :: places(8), turned_ptr(10)
    integer(c_int32_t), allocatable, target :: turned_idx(:)
    real(c_double), allocatable, target :: turned_values(:)
    type(shardmat_batch) :: batch, transposed_batch
    type(c_ptr) :: plan, work
    integer(c_size_t) :: bytes
    integer :: i
    call make_batch(a, offsets, row_ptr, row_idx, col_idx, values, batch)
    x = reshape([(modulo(i*i, 11) - 4d0, i=1, 27)], [3, 9])
    bias = [1d0, -50d0, 7d0]
    call ok(shardmat_batched_check(batch, c_null_ptr), 'check')
    call ok(shardmat_batched_plan_create(batch, 3_c_int64_t, c_null_ptr, c_null_ptr, plan), 'plan')
    call expect(len(shardmat_text(shardmat_batched_plan_kernel(plan))) > 0, 'kernel of a plan')
    call place(context, plan, work)
    y = 2
    call ok(shardmat_batched_multiply(plan, 1d0, c_loc(x), 3_c_int64_t, 3d0, c_loc(y), 3_c_int64_t, c_loc(bias), 1, c_null_ptr), &
            'multiply in place')
    call expect(near([y], [max(matmul(x, transpose(a)) + 6 + spread(bias, 2, 6), 0d0)]), 'Y with a bias')
    call shardmat_batched_plan_destroy(plan)
    call ok(shardmat_context_free(context, work), 'free memory')

    w = reshape([(1d0*i, i=1, 6)], [2, 3])
    call ok(shardmat_batched_features_create(batch, 3_c_int64_t, 2_c_int64_t, plan), 'plan of features')
    call place(context, plan, work)
    call ok(shardmat_batched_features(plan, 1d0, c_loc(x), 3_c_int64_t, c_loc(w), 2_c_int64_t, 0d0, c_loc(features), 2_c_int64_t, &
            c_null_ptr, 0, c_null_ptr), 'features')
    call expect(near([features], [matmul(w, matmul(x, transpose(a)))]), 'Y of features')
    call shardmat_batched_plan_destroy(plan)
    call ok(shardmat_context_free(context, work), 'free memory')

    call ok(shardmat_batched_transpose_work_bytes(batch, bytes), 'memory to transpose')
    call ok(shardmat_context_allocate(context, bytes, work), 'memory')
    places = int([offsets(:, 1), offsets(:, 2)], c_int32_t)
    allocate (turned_idx(size(values)), turned_values(size(values)))
    call ok(shardmat_batched_transpose(batch, c_loc(places), c_loc(turned_ptr), c_loc(turned_idx), c_loc(turned_values), work, &
            c_null_ptr), 'transpose')
    transposed_batch = shardmat_batch(count=3, first_row=c_loc(offsets(1, 2)), first_col=c_loc(offsets(1, 1)), &
      first_entry=c_loc(offsets(1, 3)), row_ptr=c_loc(turned_ptr), col_idx=c_loc(turned_idx), values=c_loc(turned_values))
    call ok(shardmat_context_free(context, work), 'free memory')
    call ok(shardmat_batched_plan_create(transposed_batch, 2_c_int64_t, c_null_ptr, c_null_ptr, plan), 'plan')
    call place(context, plan, work)
    call ok(shardmat_batched_multiply(plan, 1d0, c_loc(features), 2_c_int64_t, 0d0, c_loc(turned), 2_c_int64_t, c_null_ptr, 0, &
            c_null_ptr), 'multiply the transposed batch')
    call expect(near([turned], [matmul(features, a)]), 'Y of the transposed batch')
    call shardmat_batched_plan_destroy(plan)
    call ok(shardmat_context_free(context, work), 'free memory')
    col_idx(1) = 3
    call refused(shardmat_batched_check(batch, c_null_ptr), shardmat_input, 'matrix 0')
  end subroutine

  subroutine place(context, plan, work)
    type(c_ptr), intent(in) :: context, plan
    type(c_ptr), intent(out) :: work
    integer(c_int8_t), allocatable, target :: staging(:)
    call ok(shardmat_context_allocate(context, shardmat_batched_plan_work_bytes(plan), work), 'memory of a plan')
    allocate (staging(shardmat_batched_plan_staging_bytes(plan) + 1))
    call ok(shardmat_batched_plan_place(plan, work, c_loc(staging), c_null_ptr), 'place')
  end subroutine
end module
