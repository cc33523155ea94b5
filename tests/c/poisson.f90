! Solves Poisson's equation on the unit square with its own MPI: -(u_xx + u_yy) = f, u = 0 on the boundary, 5-point stencil.
! The solution x(1 - x) y(1 - y) is a polynomial for which the stencil is exact.
program poisson
  use, intrinsic :: iso_c_binding
  use mpi
  use shardmat
  implicit none
  integer, parameter :: n = 31  ! inner points in each direction
  real(c_double), parameter :: h = 1d0/(n + 1)
  integer :: ierror, provided, rank, ranks
  integer(c_int64_t) :: first, rows, i, row, k
  integer(c_int64_t), allocatable, target :: row_ptr(:), columns(:)
  real(c_double), allocatable, target :: values(:), b(:), u(:)
  character(kind=c_char), target :: host(5) = ['h', 'o', 's', 't', c_null_char]
  character(kind=c_char), target :: jacobi(7) = ['j', 'a', 'c', 'o', 'b', 'i', c_null_char]
  type(c_ptr) :: context, matrix, handle
  real(c_double), allocatable, target :: two_b(:, :), two_u(:, :)
  type(shardmat_dense) :: of_b, of_u
  type(shardmat_solve_result) :: two_solved(2)
  type(shardmat_context_options) :: context_options
  type(shardmat_matrix_options) :: matrix_options
  type(shardmat_rows) :: own
  type(shardmat_triplets) :: triplets
  type(shardmat_solver_options) :: solver
  type(shardmat_solve_result) :: solved
  type(shardmat_matrix_info) :: info
  real(c_double) :: error

  if (context_options%size_ /= c_sizeof(context_options) .or. matrix_options%size_ /= c_sizeof(matrix_options) .or. &
      own%size_ /= c_sizeof(own) .or. triplets%size_ /= c_sizeof(triplets) .or. info%size_ /= c_sizeof(info) .or. &
      solver%size_ /= c_sizeof(solver) .or. solved%size_ /= c_sizeof(solved)) error stop 'a type has another size'
  call mpi_init_thread(mpi_thread_serialized, provided, ierror)
  call mpi_comm_rank(mpi_comm_world, rank, ierror)
  call mpi_comm_size(mpi_comm_world, ranks, ierror)
  context_options%backend = c_loc(host)
  context_options%threads = 1
  call check(shardmat_context_create_fortran(mpi_comm_world, context_options, context))

  first = int(n*n, c_int64_t)*rank/ranks
  rows = int(n*n, c_int64_t)*(rank + 1)/ranks - first
  allocate (row_ptr(0:rows), columns(5*rows), values(5*rows), b(rows), u(rows))
  k = 0
  do i = 0, rows - 1
    row = first + i
    row_ptr(i) = k
    call add(row, 4d0)
    if (modulo(row, int(n, c_int64_t)) > 0) call add(row - 1, -1d0)
    if (modulo(row, int(n, c_int64_t)) < n - 1) call add(row + 1, -1d0)
    if (row >= n) call add(row - n, -1d0)
    if (row < n*n - n) call add(row + n, -1d0)
    b(i + 1) = 2*h**2*(bump(modulo(row, int(n, c_int64_t))) + bump(row/n))
  end do
  row_ptr(rows) = k

  own%first_row = first
  own%rows = rows
  own%cols = n*n
  own%row_ptr = c_loc(row_ptr)
  own%columns = c_loc(columns)
  own%values = c_loc(values)
  call check(shardmat_matrix_from_rows(context, own, matrix_options, matrix))
  call check(shardmat_matrix_get_info(matrix, info))
  if (info%nnz /= 5*n*n - 4*n) error stop 'the matrix has a wrong number of nonzeros'

  u = 0
  solver%preconditioner = c_loc(jacobi)
  call check(shardmat_solve(matrix, solver, c_loc(b), c_loc(u), solved))
  error = 0
  do i = 1, rows
    error = max(error, abs(u(i) - exact(first + i - 1)))
  end do
  if (error > 1d-6) error stop 'the solution is wrong'
  if (rank == 0) print '(a, i0, a)', 'solved in ', solved%iterations, ' iterations'

  solver%max_iterations = 1
  u = 0
  if (shardmat_solve(matrix, solver, c_loc(b), c_loc(u), solved) /= shardmat_not_converged) error stop 'one iteration is enough?'
  if (index(shardmat_message(), 'most iterations') == 0) error stop 'the message is missing'
  ! A solver that stays, with two right-hand sides: b and 3 b.
  solver%max_iterations = 0
  solver%columns = 2
  call check(shardmat_solver_create(matrix, solver, handle))
  allocate (two_b(rows, 2), two_u(rows, 2))
  two_b(:, 1) = b
  two_b(:, 2) = 3*b
  two_u = 0
  of_b = shardmat_dense(values=c_loc(two_b), rows=rows, columns=2, leading=max(rows, 1_c_int64_t), column_major=1)
  of_u = shardmat_dense(values=c_loc(two_u), rows=rows, columns=2, leading=max(rows, 1_c_int64_t), column_major=1)
  call check(shardmat_solver_solve(handle, of_b, of_u, two_solved))
  do i = 1, rows
    if (abs(two_u(i, 2) - 3*exact(first + i - 1)) > 1d-5) error stop 'the second solution is wrong'
  end do
  if (any(two_solved%converged == 0)) error stop 'the results are wrong'
  call shardmat_solver_destroy(handle)
  call shardmat_matrix_destroy(matrix)
  call shardmat_context_destroy(context)
  call mpi_finalize(ierror)

contains

  subroutine add(column, value)
    integer(c_int64_t), intent(in) :: column
    real(c_double), intent(in) :: value
    k = k + 1
    columns(k) = column
    values(k) = value
  end subroutine

  function exact(row) result(value)
    integer(c_int64_t), intent(in) :: row
    real(c_double) :: value
    value = bump(modulo(row, int(n, c_int64_t)))*bump(row/n)
  end function

  function bump(point) result(value)
    integer(c_int64_t), intent(in) :: point
    real(c_double) :: value
    value = h*(point + 1)*(1 - h*(point + 1))
  end function

  subroutine check(status)
    integer(c_int), intent(in) :: status
    if (status == shardmat_ok) return
    print '(a)', shardmat_message()
    call mpi_abort(mpi_comm_world, 1, ierror)
  end subroutine
end program
