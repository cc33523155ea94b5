"""Eigenvalues of symmetric matrices, called as scipy.sparse.linalg.eigsh."""

from .errors import NotConvergedError
from .matrix import Matrix
from .remote import RemoteMatrix
from .service.eigen import Wanted


def eigsh(A, k=6, M=None, sigma=None, which="LM", v0=None, ncv=None, maxiter=None, tol=0, return_eigenvectors=True, Minv=None,
          OPinv=None, mode="normal", *, X=None, method=None, coordinates=None, confirm=True, check_count=False,
          inner="auto", return_info=False):
    """Eigenvalues of A·x = λ·x or A·x = λ·M·x, called as ``scipy.sparse.linalg.eigsh``: returns (w, v), or w alone.

    A, M: sparse matrices or arrays of SciPy, arrays of NumPy, or shardmat.Matrix, then on any number of ranks: v is this
    rank's rows. Both are symmetric, and M is positive definite. w is ascending; vᵀ·M·v = 1.

    which: "SM" or "SA", the smallest: by LOBPCG with multigrid of A, which must be positive semidefinite, if there is an M
    or which is "SM"; else by Lanczos. "LM", "LA", "BE" without sigma: by Lanczos, for one matrix. With sigma: "LM", those nearest to sigma, by
    factors of A − sigma·M. method: "lobpcg", "shift_invert" or "lanczos", in place of that choice.
    tol: of ‖A·x − λ·M·x‖ / (|λ|·‖M·x‖), 0: 1e-8; of Lanczos over the largest |λ|, 0: 1e-10. maxiter: blocks, or products of
    Lanczos. X: vectors to begin with, (rows, any number); v0: the same, one of them. ncv is not used.
    coordinates: where the nodes lie, for multigrid: (nodes, 2 or 3; 12 with axes, as of Matrix.solver). Structures want them, or take a Matrix that knows its nodes.
    With an M, rows of A that are those of the identity state known values: they are left out, unlike in SciPy.
    inner: how shift_invert solves: "factors", "minres" (with multigrid, for pairs whose factors do not fit in memory; then nothing
    tells whether eigenvalues are missing) or "auto": factors where they are to be had and fit.
    confirm: shift_invert counts the eigenvalues by the signs of the factors' pivots, for one or two factorisations more; lobpcg does
    so up to 3,000 rows, with check_count also beyond.
    return_info: also returns a dict: converged, confirmed, zero_modes (λ = 0 up to rounding), missing, residual, and times.
    Raises NotConvergedError, which has the last vectors as x.
    """
    import numpy

    if Minv is not None or OPinv is not None:
        raise ValueError("Minv and OPinv are made here: leave them out")
    if mode != "normal":
        raise ValueError(f"mode is {mode!r}; only 'normal' is known")
    a, m = _as_matrix(A, "A"), None if M is None else _as_matrix(M, "M", like=A)
    if isinstance(a, RemoteMatrix):
        given = {"v0": v0, "X": X, "coordinates": coordinates}
        settings = {"confirm": None if confirm else 0, "check_count": 1 if check_count else None, "inner": None if inner == "auto" else inner}
        return a._eigsh(m, given, settings, return_eigenvectors, return_info, k=k, sigma=sigma, which=which, tol=tol, maxiter=maxiter, method=method)
    wanted, rows = Wanted(k, which, sigma, m is not None, method), a.shape[0]
    if not 1 <= wanted.k <= rows:
        raise ValueError(f"k is {k}; it must be 1 to {rows}, the rows of A")
    method = wanted.method
    begin = X if X is not None else v0
    if begin is not None:
        begin = numpy.asarray(begin, dtype=float)
        begin = begin.reshape(begin.shape[0], -1)
        if begin.shape[0] != a.own_shape[0]:
            raise ValueError(f"X or v0 has {begin.shape[0]} rows; this rank has {a.own_shape[0]}")
    if coordinates is not None:
        coordinates = numpy.asarray(coordinates, dtype=float)
        if coordinates.ndim != 2 or coordinates.shape[1] not in (2, 3, 12):
            raise ValueError(f"coordinates of shape {coordinates.shape}; they have a row of 2 or 3 for each node, or 12 with its axes")
    from .context import native

    w, v, info = native().eigen(a._open(), None if m is None else m._open(), method, wanted.ends, wanted.count, wanted.sigma, float(tol),
                                0 if maxiter is None else int(maxiter), None if method == "lanczos" else begin, coordinates,
                                bool(return_eigenvectors), bool(confirm), str(inner), bool(check_count))
    kept = wanted.chosen(w)
    if kept is not None:
        w, v = w[kept], None if v is None else v[:, kept]
    if not info["converged"]:
        raise NotConvergedError("some eigenvalues did not meet the tolerance, or some are missing; allow more iterations (maxiter), "
                                "or take method='shift_invert'", v, [{**info, "values": w}])
    answer = (w, v) if return_eigenvectors else (w,)
    if return_info:
        answer += (info,)
    return answer if len(answer) > 1 else w


def _as_matrix(given, name, like=None):
    import numpy
    import scipy.sparse

    if isinstance(given, Matrix):
        return given
    if isinstance(like, Matrix):
        raise TypeError("A is a shardmat.Matrix, so M must be one, too, of the same context")
    if isinstance(given, numpy.ndarray):
        given = scipy.sparse.csr_matrix(given)
    if not scipy.sparse.issparse(given):
        raise TypeError(f"{name} is a sparse matrix of SciPy, an array of NumPy or a shardmat.Matrix, not "
                        f"{type(given).__name__}; for a LinearOperator take scipy.sparse.linalg")
    return Matrix.from_scipy(given, dtype="float64" if given.dtype.kind != "c" else None, products=100)
