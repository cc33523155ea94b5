"""Shardmat: products of sparse matrices on GPUs and on the host, on one rank or many.

>>> import scipy.sparse, numpy, shardmat
>>> A = shardmat.Matrix.from_scipy(scipy.sparse.eye(3) * 2)
>>> A @ numpy.ones(3)
array([2., 2., 2.])
"""

from .batch import Batch
from .context import Context, empty
from .direct import factorized, spsolve
from .eigen import eigsh
from .errors import (Error, InputError, InternalError, NotConvergedError, RankLostError, ResourcesError, UsageError,
                     VerificationError)
from .krylov import bicgstab, cg, gmres, minres
from .matrix import Matrix, Product, Transpose
from .multigrid import multigrid
from .pagerank import pagerank
from .service import connect
from .solver import Solver, solver_settings

__all__ = ["Batch", "Context", "Error", "InputError", "InternalError", "Matrix", "NotConvergedError", "Product", "RankLostError",
           "ResourcesError", "Solver", "Transpose", "UsageError", "VerificationError", "bicgstab", "cg", "connect", "eigsh", "empty",
           "factorized", "gmres", "minres", "multigrid", "pagerank", "solver_settings", "spsolve", "version"]


def __getattr__(name):
    if name == "__version__":
        return version()
    raise AttributeError(f"module 'shardmat' has no attribute '{name}'")


def version():
    """The version of the library, "0.2.0"."""
    from .context import native

    return native().version()
