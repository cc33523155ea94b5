"""Solvers by factors of the matrix, called as those of SciPy."""

from .krylov import as_matrix


def spsolve(A, b, permc_spec=None, use_umfpack=True):
    """x with A·x = b, called as ``scipy.sparse.linalg.spsolve``.

    A: a sparse matrix of SciPy, an array of NumPy, or a shardmat.Matrix, then on any number of ranks: b and x are this rank's
    rows. b: a vector, or a matrix of several columns, also a sparse one. permc_spec, use_umfpack: not looked at; MUMPS or Eigen
    orders and factorises, and x is refined. Raises InputError where A is singular. Collective.
    """
    import numpy
    import scipy.sparse

    b = b.toarray() if scipy.sparse.issparse(b) else numpy.asarray(b)
    columns = b.shape[1] if b.ndim == 2 else 1
    made = as_matrix(A, b)
    try:
        with made.solver("direct", columns=columns, rtol=_tolerance(made)) as solver:
            return solver.solve(b.reshape(-1) if columns == 1 else b)
    finally:
        if made is not A:
            made.close()


def factorized(A):
    """A function that solves A·x = b for any b, called as ``scipy.sparse.linalg.factorized``: the factors stay. A as of
    spsolve(). The function takes a vector, or a matrix of several columns. Collective, and so is each call.
    """
    import numpy

    made = as_matrix(A, numpy.empty(0))
    solver = made.solver("direct", rtol=_tolerance(made))

    def solve(b):
        b = numpy.asarray(b)
        if b.ndim == 1:
            return solver.solve(b)
        return numpy.stack([solver.solve(numpy.ascontiguousarray(column)) for column in b.T], axis=1)

    return solve


def _tolerance(matrix):
    """Or what rounding errors allow."""
    return 1e-14 if matrix.info()["sum_type"] == "float64" else 1e-6
