"""Matrices that live on a service, because the environment variable SHARDMAT_REMOTE names one: for unchanged programs."""

import os
import weakref

from .arrays import type_name
from .errors import NotConvergedError, UsageError
from .matrix import Matrix
from .service import RefusedError, ServiceError, connect
from .service.eigen import Wanted
from .service.library import matrix_of_file
from .service.matrix import word_of

VARIABLE = "SHARDMAT_REMOTE"
_LAST_SECONDS = 2.0  # for what close() still asks for


def refuse(what):
    """What a program asked for cannot be done on a service."""
    raise UsageError(f"{what}: the environment variable {VARIABLE} lets a service have the matrices, and it cannot do that; unset "
                     f"the variable, or set it to here")


def _refuse_context(context, comm=None):
    if context is not None or comm is not None:
        refuse("a matrix was asked for in a context of this program")


def from_file(file, context, comm, dtype, options):
    _refuse_context(context, comm)
    solvable = not options.pop("drop_rows", False)
    words = {name: options.pop(name, None) or "auto" for name in ("kernel", "exchange")}
    type = _type_of(dtype)
    _refuse_options(options)
    service = connect()
    try:
        try:
            remote = matrix_of_file(service, file, type=type, solvable=solvable, **words)
        except RefusedError as error:
            if not solvable or error.code != "bad_matrix":
                raise
            remote = matrix_of_file(service, file, type=type, solvable=False, **words)  # one that is not square is for products
        return RemoteMatrix(remote)
    except BaseException:
        service.close()
        raise


def from_scipy(matrix, context, options):
    _refuse_context(context)
    given = {"solvable": not options.pop("drop_rows", False) and matrix.shape[0] == matrix.shape[1]}
    given.update({name: word for name in ("kernel", "exchange") if (word := options.pop(name, None)) is not None})
    type = _type_of(options.pop("dtype", None))
    _refuse_options(options)
    service = connect()
    try:
        return RemoteMatrix(service.matrix_from(matrix, type=type, **given), owned=True)
    except BaseException:
        service.close()
        raise


def _type_of(dtype):
    type = type_name(dtype)
    if type not in (None, "f64", "f32"):
        refuse(f"a matrix of {type} was asked for")
    return type


def _refuse_options(options):
    for name in ("reproducible", "products"):  # products of a service always are; it looks after how many there will be
        options.pop(name, None)
    for name, value in options.items():
        if value is not None and value is not False:
            refuse(f"a matrix was asked for with the option {name}")


def _unload(matrix, process):
    """Nobody else knows the name of the matrix. A process that was forked has no part in it."""
    if os.getpid() != process:
        return
    service = matrix._service
    try:
        service.post_json(matrix._path + "/unload", timeout=_LAST_SECONDS)
    except ServiceError:
        pass  # it was unloaded by somebody else, or the service is gone
    service.close()


class _SolverForOne:
    """What the functions that are called as SciPy's take for a solver: the service solves with these options."""

    def __init__(self, matrix, method, preconditioner, options):
        self._matrix, self._options = matrix, {"solver": method, "preconditioner": preconditioner, **options}

    def solve(self, b, x0=None):
        return self._matrix.solve(b, x0, **self._options)

    def close(self):
        pass


class RemoteMatrix(Matrix):
    """A ``Matrix`` whose rows are on the ranks of a service: products, also of A.T, solves and eigenvalues. All else is refused.

    One of a file stays in the service, where the next program finds it; one of SciPy's arrays goes with this object.
    """

    def __init__(self, remote, owned=False):
        self._native = remote
        self._places = None
        self._shape = self._own_shape = remote.shape
        self._nnz = remote.nnz
        self._type = remote.dtype.name
        self._end = weakref.finalize(self, _unload, remote, os.getpid()) if owned else None

    def _there(self):
        """The matrix of the service."""
        if self._native is None:
            raise ValueError("the matrix is closed")
        return self._native

    def _open(self):
        self._there()
        refuse("more than products, solves and eigenvalues was asked of a matrix")

    @property
    def context(self):
        refuse("the context of a matrix was asked for")

    def info(self):
        """What the service says of it."""
        return {**self._there().info(), "sum_type": self._type}

    def _times(self, x, transposed):
        remote = self._there()
        return remote.multiply(x, transpose=True) if transposed else remote @ x

    def solver(self, solver="auto", preconditioner="auto", **options):
        """Refused."""
        refuse("a solver that keeps its memory was asked for, which is A.solve of a service")

    def solve(self, b, x0=None, *, solver="auto", preconditioner="auto", **options):
        """Solves A·x = b on the service, as ``Matrix.solve``, with the settings that are words or numbers."""
        remote = self._there()
        options = {name: value for name, value in options.items() if value is not None}
        if "M" in options and preconditioner != "auto":
            raise ValueError("M and preconditioner say the same: give one of them")
        preconditioner = options.pop("M", preconditioner)
        for name, value in (("solver", solver), ("preconditioner", preconditioner), *options.items()):
            try:
                word_of(name, value)
            except TypeError:
                refuse(f"a solve was asked for with a {type(value).__name__} as {name}")
        try:
            return remote.solve(b, x0, solver=solver, preconditioner=preconditioner, alone=1, **options)
        except RefusedError as error:
            if error.status != 400:
                raise
            refuse(error.args[0])

    def _check_callbacks(self):
        refuse("a function that is called in each iteration was given")

    def _solver_for_one(self, method, preconditioner, options):
        return _SolverForOne(self, method, preconditioner, options)

    def _eigsh(self, mass, given, settings, return_eigenvectors, return_info, **wanted):
        """``shardmat.eigsh`` on the service."""
        remote = self._there()
        lanczos = Wanted(wanted["k"], wanted["which"], wanted["sigma"], mass is not None, wanted["method"]).method == "lanczos"
        v0 = given["v0"] if given["X"] is None else given["X"]
        for name, value in given.items():
            if value is not None and (lanczos or name == "coordinates"):
                refuse(f"eigenvalues were asked for with {name}")
        if mass is not None and not isinstance(mass, RemoteMatrix):
            refuse("eigenvalues were asked for with an M that is here")
        settings = {name: value for name, value in settings.items() if value is not None}
        try:
            *answer, info = remote.eigsh(M=None if mass is None else mass._there(), return_eigenvectors=return_eigenvectors,
                                         v0=v0, return_info=True, **wanted, **settings)
        except NotConvergedError as error:
            values = [pair.get("value") for pair in error.results]
            raise NotConvergedError(error.args[0], error.x, [{"converged": False, "values": values, "pairs": error.results}]) from None
        except RefusedError as error:
            if error.status != 400:
                raise
            refuse(error.args[0])
        if return_info:
            residuals = [pair["residual"] for pair in info["result"] if pair.get("residual") is not None]
            answer.append({"confirmed": info.get("complete") == "yes", "zero_modes": 0, "missing": 0, **info, "converged": True,
                           "residual": max(residuals, default=0.0)})
        return tuple(answer) if len(answer) > 1 else answer[0]

    def close(self):
        """Lets go of the matrix: of a file, the service keeps it."""
        remote, self._native = self._native, None
        if self._end is not None:
            self._end()
        elif remote is not None:
            remote._service.close()

    def __repr__(self):
        if self._native is None:
            return "<shardmat.Matrix: closed>"
        return f"{super().__repr__()[:-1]} on {self._native._service.address}>"
