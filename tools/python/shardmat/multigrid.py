"""Multigrid alone, as a solver and a preconditioner, called as pyamg's."""

from .errors import NotConvergedError
from .handle import Handle
from .matrix import Matrix


def multigrid(A, B=None, coordinates=None, **settings):
    """Smoothed aggregation of a symmetric positive definite matrix, set up once, called as ``pyamg.smoothed_aggregation_solver``.

    A: a sparse matrix of SciPy, whose blocks are the unknowns of nodes if it is BSR, an array of NumPy, or a shardmat.Matrix,
    then on any number of ranks. B: vectors that A maps to almost 0, a row for each row of A. coordinates: of the nodes, in
    place of B. settings: options of multigrid, as Matrix.solver() takes them: levels, coarse_size, strength, smoother_degree,
    inner. Collective.
    """
    return Multilevel(A, B, coordinates, settings)


class Multilevel(Handle):
    """The levels that multigrid() has set up. ``print`` lists them; ``levels[l]`` has A, P and R as matrices of SciPy."""

    def __init__(self, A, B, coordinates, settings):
        import numpy
        import scipy.sparse

        self._given = None
        if not isinstance(A, Matrix):
            A = scipy.sparse.csr_matrix(A) if isinstance(A, numpy.ndarray) else A
            size = A.blocksize[0] if getattr(A, "format", None) == "bsr" and A.blocksize[0] == A.blocksize[1] else None
            self._given, A = A, Matrix.from_scipy(A, node_block_size=size)
        self._matrix = A
        if B is not None and not isinstance(B, str):
            B = numpy.asarray(B).reshape(A.own_shape[0], -1)
        self._native = A.solver("cg", "multigrid", near_null_space=B, coordinates=coordinates, **settings)
        self.levels = [Level(self, number, about) for number, about in enumerate(self._native.levels)]

    def solve(self, b, x0=None, tol=1e-5, maxiter=100, accel=None, residuals=None, callback=None, return_info=False):
        """x with ‖b − A·x‖ ≤ tol·‖b‖, for this rank's rows of b; the last x if ``maxiter`` iterations do not suffice. Collective.

        accel: None: cycles alone; or the solver that they precondition: "cg", "gmres", "fgmres", "minres", "bicgstab". residuals: a
        list that gets the norm of b − A·x at the start and after each iteration. callback: called with x after each.
        return_info: returns (x, info), where info is 0, or the iterations that did not suffice.
        """
        import numpy

        b = numpy.asarray(b, self._matrix.info()["sum_type"])
        x = numpy.zeros_like(b) if x0 is None else numpy.array(x0, b.dtype).reshape(b.shape)
        if accel is None:
            x, norms, converged = self._cycles(b, x, tol, maxiter, callback)
        else:
            watch = None if callback is None else lambda now: callback(now) and None
            solver = self._matrix.solver(accel, self.aspreconditioner(), rtol=tol, max_iterations=maxiter, watch=watch)
            try:
                x, result = solver.solve(b, x), solver.results[0]
            except NotConvergedError as error:
                x, result = error.x, error.results[0]
            norms, converged = result["history"].tolist(), result["converged"]
        if residuals is not None:
            residuals[:] = norms
        return (x, 0 if converged else len(norms) - 1) if return_info else x

    def _cycles(self, b, x, tol, maxiter, callback):
        def norm(v):
            square = float((v.astype(float) ** 2).sum())
            comm = self._matrix.context.comm
            return (square if comm is None else comm.allreduce(square)) ** 0.5

        r = b - self._matrix @ x
        enough, norms = tol * norm(b), [norm(r)]
        while norms[-1] > enough and len(norms) <= maxiter:
            x = x + self._open().precondition(r)
            r = b - self._matrix @ x
            norms.append(norm(r))
            if callback is not None:
                callback(x)
        return x, norms, norms[-1] <= enough

    def aspreconditioner(self, cycle="V"):
        """A V-cycle as a ``scipy.sparse.linalg.LinearOperator``: M of SciPy's solvers, and of ours."""
        if cycle != "V":
            raise ValueError(f"cycle is {cycle!r}; there is 'V'")
        return self._open().aspreconditioner()

    def operator_complexity(self):
        """Nonzeros of all levels over those of the first."""
        return self._open().multigrid["operator_complexity"]

    def grid_complexity(self):
        """Unknowns of all levels over those of the first."""
        return sum(level.unknowns for level in self.levels) / max(1, self.levels[0].unknowns)

    def __repr__(self):
        if self._native is None:
            return "<shardmat.multigrid: closed>"
        all_nonzeros = max(1, sum(level.nonzeros for level in self.levels))
        about = self._native.multigrid
        lines = [f"Multigrid with {about['near_null_space']}",
                 f"Cycle and smoother:   {about['cycle']}, {about['smoother']}",
                 f"Number of Levels:     {len(self.levels)}",
                 f"Operator Complexity:  {self.operator_complexity():6.3f}",
                 f"Grid Complexity:      {self.grid_complexity():6.3f}",
                 "  level   unknowns     nonzeros"]
        lines += [f"{number:6} {level.unknowns:12} {level.nonzeros:12} [{100 * level.nonzeros / all_nonzeros:5.2f}%]"
                  for number, level in enumerate(self.levels)]
        return "\n".join(lines)


class Level:
    """A level: ``unknowns`` and ``nonzeros`` on all ranks. On one rank ``A``, and ``P`` from the next level to this one with
    its transpose ``R``; the last level has none. On several ranks ``P`` has this rank's rows.
    """

    def __init__(self, of, number, about):
        self.unknowns, self.nonzeros = about["unknowns"], about["nonzeros"]
        self._of, self._number, self._p, self._a = of, number, None, None

    @property
    def P(self):
        import scipy.sparse

        if self._number + 1 == len(self._of.levels):
            raise AttributeError("the last level has no P and no R")
        if self._p is None:
            starts, columns, values = self._of._open()._native.prolongation(self._number)
            shape = len(starts) - 1, self._of.levels[self._number + 1].unknowns
            self._p = scipy.sparse.csr_matrix((values, columns, starts), shape=shape)
        return self._p

    @property
    def R(self):
        self._require_one_rank("R")
        return self.P.T.tocsr()

    @property
    def A(self):
        self._require_one_rank("A")
        if self._a is None and self._number == 0:
            if self._of._given is None:
                raise AttributeError("the first A is the Matrix that was given; its rows are not kept as a matrix of SciPy")
            self._a = self._of._given
        elif self._a is None:
            before = self._of.levels[self._number - 1]
            self._a = (before.R @ before.A @ before.P).tocsr()
        return self._a

    def _require_one_rank(self, name):
        if self._of._matrix.context.info()["ranks"] > 1:
            raise AttributeError(f"{name} of a level can be had on one rank only; P has this rank's rows")
