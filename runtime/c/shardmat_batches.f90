! Batches of many small matrices for Fortran 2003 and later, on this rank alone. Compile it after shardmat.f90, whose comment
! holds here, too: texts, arrays, errors, indices from 0. `use shardmat_batches` includes `use shardmat`.
!
! - shardmat_batch_product_...: the library owns a copy of the batch on the context's device. Start here.
! - shardmat_batched_...: arrays and memory of the caller, in place, for programs with GPU memory of their own. See
!   shardmat_batched.h.
!
! X and Y are stacked, matrix below matrix, and row-major: x(columns, columns of all matrices), y(columns, rows of all
! matrices) in Fortran. X has the batch's type. Y and the bias have it, too, or shardmat_f32 for a batch in half precision.
module shardmat_batches
  use shardmat
  implicit none
  public

  ! For compressed rows, row_idx is c_null_ptr; for coordinates, row_ptr is.
  type, bind(c) :: shardmat_batch
    integer(c_int) :: device = -1                     ! the host; shardmat_batch_product_create() ignores it
    integer(c_int) :: value_type = shardmat_f64
    integer(c_int64_t) :: count = 0                   ! matrices
    ! integer(c_int64_t), (count + 1) each: where the rows, columns and entries of each matrix begin, from any number.
    type(c_ptr) :: first_row = c_null_ptr, first_col = c_null_ptr, first_entry = c_null_ptr
    ! integer(c_int32_t): row_ptr(rows + 1) runs on from matrix to matrix, from 0; row_idx(nonzeros), col_idx(nonzeros) count
    ! from 0 in each matrix.
    type(c_ptr) :: row_ptr = c_null_ptr, row_idx = c_null_ptr, col_idx = c_null_ptr
    type(c_ptr) :: values = c_null_ptr                ! (nonzeros) of value_type
  end type

  interface
    ! A product with X of `columns` columns. The arrays of the batch are in host memory, and copied. `kernel`: c_loc of a name,
    ! or c_null_ptr: chosen. An index outside its matrix is refused with shardmat_input.
    function shardmat_batch_product_create(context, batch, columns, kernel, product) bind(c) result(status)
      import :: c_int, c_int64_t, c_ptr, shardmat_batch
      type(c_ptr), value :: context, kernel
      type(shardmat_batch), intent(in), target :: batch
      integer(c_int64_t), value :: columns
      type(c_ptr), intent(out) :: product
      integer(c_int) :: status
    end function

    subroutine shardmat_batch_product_destroy(product) bind(c)
      import :: c_ptr
      type(c_ptr), value :: product
    end subroutine

    ! Y = alpha*A*X + beta*Y, matrix by matrix. x and y: of shardmat_row_major(). stream = c_null_ptr: returns when Y is
    ! complete.
    function shardmat_batch_product_multiply(product, alpha, x, beta, y, stream) bind(c) result(status)
      import :: c_double, c_int, c_ptr, shardmat_dense
      type(c_ptr), value :: product, stream
      real(c_double), value :: alpha, beta
      type(shardmat_dense), intent(in), target :: x, y
      integer(c_int) :: status
    end function

    ! A text of C, for shardmat_text().
    pure function shardmat_batch_product_kernel(product) bind(c) result(text)
      import :: c_ptr
      type(c_ptr), value :: product
      type(c_ptr) :: text
    end function

    ! ---- In the caller's memory. `stream`: a cudaStream_t; ignored on the host. ----

    ! kernel, policy: c_loc of a text, or c_null_ptr: chosen. The arrays of the batch stay as long as the plan.
    function shardmat_batched_plan_create(batch, columns, kernel, policy, plan) bind(c) result(status)
      import :: c_int, c_int64_t, c_ptr, shardmat_batch
      type(shardmat_batch), intent(in), target :: batch
      integer(c_int64_t), value :: columns
      type(c_ptr), value :: kernel, policy
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: status
    end function

    subroutine shardmat_batched_plan_destroy(plan) bind(c)
      import :: c_ptr
      type(c_ptr), value :: plan
    end subroutine

    ! A text of C, for shardmat_text().
    pure function shardmat_batched_plan_kernel(plan) bind(c) result(text)
      import :: c_ptr
      type(c_ptr), value :: plan
      type(c_ptr) :: text
    end function

    ! Bytes of device memory, which begins at a multiple of 256.
    function shardmat_batched_plan_work_bytes(plan) bind(c) result(bytes)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: plan
      integer(c_size_t) :: bytes
    end function

    ! Bytes of host memory, which shardmat_batched_plan_place() reads.
    function shardmat_batched_plan_staging_bytes(plan) bind(c) result(bytes)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: plan
      integer(c_size_t) :: bytes
    end function

    ! Once, before the first product. For 0 bytes, work or staging is c_null_ptr.
    function shardmat_batched_plan_place(plan, work, staging, stream) bind(c) result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: plan, work, staging, stream
      integer(c_int) :: status
    end function

    ! Y = act(alpha*A*X + beta*Y + bias). ldx, ldy: entries from one row to the next, the first extents of x and y. bias(columns)
    ! or c_null_ptr. relu: 0, or 1 for act(v) = max(v, 0).
    function shardmat_batched_multiply(plan, alpha, x, ldx, beta, y, ldy, bias, relu, stream) bind(c) result(status)
      import :: c_double, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: plan, x, y, bias, stream
      real(c_double), value :: alpha, beta
      integer(c_int64_t), value :: ldx, ldy
      integer(c_int), value :: relu
      integer(c_int) :: status
    end function

    ! For graph convolutions with W of features_in x features_out; the batch is in compressed rows.
    function shardmat_batched_features_create(batch, features_in, features_out, plan) bind(c) result(status)
      import :: c_int, c_int64_t, c_ptr, shardmat_batch
      type(shardmat_batch), intent(in), target :: batch
      integer(c_int64_t), value :: features_in, features_out
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: status
    end function

    ! Y = act(alpha*A*X*W + beta*Y + bias). W is row-major: w(features_out, features_in), its first extent is ldw.
    function shardmat_batched_features(plan, alpha, x, ldx, w, ldw, beta, y, ldy, bias, relu, stream) &
      bind(c) result(status)
      import :: c_double, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: plan, x, w, y, bias, stream
      real(c_double), value :: alpha, beta
      integer(c_int64_t), value :: ldx, ldw, ldy
      integer(c_int), value :: relu
      integer(c_int) :: status
    end function

    function shardmat_batched_transpose_work_bytes(batch, bytes) bind(c) result(status)
      import :: c_int, c_size_t, shardmat_batch
      type(shardmat_batch), intent(in), target :: batch
      integer(c_size_t), intent(out) :: bytes
      integer(c_int) :: status
    end function

    ! Transposes a batch in compressed rows. Device memory, integer(c_int32_t): offsets(2*(count + 1)) is first_row, then
    ! first_col, both from 0; results are row_ptr(rows of X + 1), col_idx(nonzeros), and values(nonzeros) of the batch's type.
    function shardmat_batched_transpose(batch, offsets, row_ptr, col_idx, values, work, stream) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_batch
      type(shardmat_batch), intent(in), target :: batch
      type(c_ptr), value :: offsets, row_ptr, col_idx, values, work, stream
      integer(c_int) :: status
    end function

    ! shardmat_input if an index is outside its matrix; the message names matrix and entry, from 0.
    function shardmat_batched_check(batch, stream) bind(c) result(status)
      import :: c_int, c_ptr, shardmat_batch
      type(shardmat_batch), intent(in), target :: batch
      type(c_ptr), value :: stream
      integer(c_int) :: status
    end function
  end interface
end module
