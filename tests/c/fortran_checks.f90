! What the parts of fortran_test share.
module fortran_checks
  use, intrinsic :: iso_c_binding
  use shardmat
  implicit none
  public
  integer :: rank = 0, ranks = 1, failures = 0
  integer(c_int64_t), parameter :: n = 40
  type(shardmat_context_options) :: options  ! of the context at hand

contains

  subroutine ok(status, what)
    integer(c_int), intent(in) :: status
    character(len=*), intent(in) :: what
    call expect(status == shardmat_ok, what//': '//shardmat_message())
  end subroutine

  subroutine refused(status, wanted, words)
    integer(c_int), intent(in) :: status, wanted
    character(len=*), intent(in) :: words
    character(len=:), allocatable :: message
    message = shardmat_message()
    call expect(status == wanted .and. index(message, words) > 0, 'an error about '//words//', but: '//message)
  end subroutine

  pure function near(a, b, tolerance)
    real(c_double), intent(in) :: a(:), b(:)
    real(c_double), intent(in), optional :: tolerance
    real(c_double) :: most
    logical :: near
    most = 1d-12
    if (present(tolerance)) most = tolerance
    near = size(a) == size(b)
    if (near) near = all(abs(a - b) <= most*max(1d0, abs(b)))
  end function

  subroutine expect(condition, what)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: what
    if (condition) return
    failures = failures + 1
    print '(a, i0, 2a)', 'rank ', rank, ': ', what
  end subroutine

  ! A monitor, with an integer that counts its calls.
  function count_calls(user, iterations, numbers, columns) bind(c) result(stop)
    type(c_ptr), value :: user
    integer(c_int64_t), value :: iterations, columns
    real(c_double), intent(in) :: numbers(*)
    integer(c_int) :: stop
    integer, pointer :: calls
    call c_f_pointer(user, calls)
    if (iterations > 0 .and. columns == 1 .and. numbers(1) >= 0) calls = calls + 1
    stop = 0
  end function

  ! Half of r, with a tenth more in the first row: z = M*r of a solve. user: counts the calls; below 0 it fails.
  function apply_half(user, r, z, problem) bind(c) result(status)
    type(c_ptr), value :: user
    type(shardmat_dense), intent(in), target :: r, z
    character(kind=c_char), intent(inout) :: problem(*)
    integer(c_int) :: status
    integer, pointer :: calls
    real(c_double), pointer :: from(:), to(:)
    call c_f_pointer(user, calls)
    call c_f_pointer(r%values, from, [r%rows])
    call c_f_pointer(z%values, to, [z%rows])
    to = from/2
    if (size(to) > 1) to(2) = to(2) + 0.1d0*from(1)
    status = shardmat_ok
    if (calls < 0) then
      problem(1:4) = ['f', 'u', 'l', 'l']
      problem(5) = c_null_char
      status = shardmat_resources
    else
      calls = calls + 1
    end if
  end function

  function watch_x(user, iterations, x) bind(c) result(stop)
    type(c_ptr), value :: user
    integer(c_int64_t), value :: iterations
    type(shardmat_dense), intent(in), target :: x
    integer(c_int) :: stop
    integer, pointer :: calls
    call c_f_pointer(user, calls)
    calls = calls + 1
    stop = 0
    call expect(iterations == calls .and. x%columns == 1, 'watched')
  end function

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
end module
