! Tests of solvers, PageRank and eigenvalues from Fortran.
module fortran_solvers
  use, intrinsic :: iso_c_binding
  use shardmat
  use fortran_checks
  implicit none
  private
  public :: solves, takes_coordinates, takes_penalty_rows, ranks_vertices, finds_eigenvalues

contains

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
end module
