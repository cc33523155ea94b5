"""Functions that are called as those of scipy.sparse.linalg, and give the same answers."""

from .matrix import Matrix
from .errors import NotConvergedError


def cg(A, b, x0=None, *, rtol=1e-5, atol=0.0, maxiter=None, M=None, callback=None, tol=None):
    """Conjugate gradients, called as ``scipy.sparse.linalg.cg``: returns (x, info).

    A: a sparse matrix or array of SciPy, an array of NumPy, or a shardmat.Matrix, then on any number of ranks: b, x0 and x are
    this rank's rows. M: None, what SciPy takes, or the name of a preconditioner: "multigrid", "auto". rtol (tol is its older
    name), atol: ends when ‖b − A·x‖ ≤ max(rtol·‖b‖, atol). maxiter: 10 times the rows. callback: called after each iteration
    with x. info: 0, or the iterations if these did not suffice, or -1 if the method broke down. Raises ValueError where A is not
    symmetric.
    """
    return _solve("cg", A, b, x0, rtol if tol is None else tol, atol, maxiter, M, watch=callback)


def minres(A, b, x0=None, *, rtol=1e-5, shift=0.0, maxiter=None, M=None, callback=None, show=False, check=False, tol=None):
    """Minimal residuals for symmetric matrices, called as ``scipy.sparse.linalg.minres``: returns (x, info), as cg().

    Solves (A − shift·1)·x = b; a shift is for matrices of SciPy. Ends when ‖b − A·x‖ ≤ rtol·‖b‖. maxiter: 5 times the rows. show:
    prints how it ended. check: is always done.
    """
    if shift != 0:
        if isinstance(A, Matrix):
            raise ValueError("a shift is for matrices of SciPy; make the Matrix of A - shift·1")
        import scipy.sparse

        A = scipy.sparse.csr_matrix(A) - shift * scipy.sparse.identity(A.shape[0])
    x, info = _solve("minres", A, b, x0, rtol if tol is None else tol, 0.0, maxiter, M, watch=callback, most=5)
    if show:
        print("minres: converged" if info == 0 else f"minres: not converged, info {info}")
    return x, info


def bicgstab(A, b, x0=None, *, rtol=1e-5, atol=0.0, maxiter=None, M=None, callback=None, tol=None):
    """Stabilised bi-conjugate gradients, called as ``scipy.sparse.linalg.bicgstab``: returns (x, info), as cg()."""
    return _solve("bicgstab", A, b, x0, rtol if tol is None else tol, atol, maxiter, M, watch=callback)


def gmres(A, b, x0=None, *, rtol=1e-5, atol=0.0, restart=None, maxiter=None, M=None, callback=None, callback_type=None, tol=None):
    """Generalised minimal residuals, called as ``scipy.sparse.linalg.gmres``: returns (x, info), as cg().

    restart: iterations until it begins anew, 20. maxiter: how often it does, 10 times the rows. callback_type: "pr_norm", or
    "legacy": the callback gets ‖b − A·x‖ / ‖b‖ after each iteration; "x": it gets x, after each iteration. M works from
    the right, so that these are norms of the residual itself.
    """
    if callback_type not in (None, "legacy", "pr_norm", "x"):
        raise ValueError(f"callback_type is {callback_type!r}; it must be 'x', 'pr_norm' or 'legacy'")
    called = {"watch" if callback_type == "x" else "norms": callback}
    rows = A.shape[0]
    restart = max(1, min(20 if restart is None else restart, rows))
    turns = 10 * rows if maxiter is None else maxiter
    x, info = _solve("gmres", A, b, x0, rtol if tol is None else tol, atol, turns * restart, M, restart=restart, **called)
    return x, turns if info > 0 else info


def as_matrix(A, b):
    """A matrix of the library, of float64 if b is."""
    import numpy
    import scipy.sparse

    if isinstance(A, Matrix):
        return A
    if isinstance(A, numpy.ndarray):
        A = scipy.sparse.csr_matrix(A)
    if not scipy.sparse.issparse(A):
        raise TypeError(f"A is a sparse matrix of SciPy, an array of NumPy or a shardmat.Matrix, not {type(A).__name__}; for a "
                        "LinearOperator take scipy.sparse.linalg")
    single = numpy.result_type(A.dtype, b.dtype) in (numpy.float32, numpy.float16)
    return Matrix.from_scipy(A, dtype="float32" if single else "float64" if A.dtype.kind != "c" else None, products=100)


def _solve(method, A, b, x0, rtol, atol, maxiter, M, *, watch=None, norms=None, most=10, **options):
    import numpy

    b = numpy.asarray(b)
    if b.ndim == 2 and b.shape[1] == 1:
        b = b.reshape(-1)
    if b.ndim != 1:
        raise ValueError(f"b has shape {b.shape}; it must be a vector. Matrix.solve() takes several columns")
    given, A = A, as_matrix(A, b)
    if M is not None and method == "gmres" and not isinstance(M, str) and not hasattr(M, "shape"):
        method = "fgmres"  # a function may change
    solver, called = None, {}
    try:
        if watch is not None or norms is not None:
            A._check_callbacks()
        if watch is not None:
            called["watch"] = lambda x: _nothing(watch(x))
        if norms is not None:
            called["monitor"] = _RelativeNorms(norms, A, b)
        options.update(rtol=rtol, atol=0.0 if atol in (None, "legacy") else atol, penalty_rows="keep", **called,
                       max_iterations=most * A.shape[0] if maxiter is None else maxiter)
        solver = A._solver_for_one(method, "none" if M is None else M, options)
        x, info = solver.solve(b, None if x0 is None else numpy.asarray(x0).reshape(-1)), 0
    except NotConvergedError as error:
        (result,), x = error.results, error.x
        info = max(1, result["iterations"]) if result["reason"] == "diverged_iterations" else -1
    finally:
        if solver is not None:
            solver.close()
        if A is not given:
            A.close()
    return x, info


def _nothing(_):
    """What a callback of SciPy returns means nothing; what ours return may end a solve."""


class _RelativeNorms:
    """Hands each norm to a callback of gmres."""

    def __init__(self, callback, A, b):
        import numpy

        squares = float(numpy.vdot(b, b))
        if A.context.comm is not None:
            squares = A.context.comm.allreduce(squares)
        self._callback, self._norm_of_b = callback, squares ** 0.5

    def __call__(self, iterations, norms):
        if iterations > 0:
            self._callback(norms[0] / self._norm_of_b)
