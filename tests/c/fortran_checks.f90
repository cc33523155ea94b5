! What the parts of fortran_test share.
module fortran_checks
  use, intrinsic :: iso_c_binding
  use shardmat
  implicit none
  public
  integer :: rank = 0, ranks = 1, failures = 0

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
end module
