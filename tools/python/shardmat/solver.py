"""Solvers, and their options."""

import operator

from .arrays import in_library_of, on_gpu, real
from .context import empty, native
from .errors import NotConvergedError
from .handle import Handle

# What Python takes beside the words and numbers that the library lists.
_ALSO = {
    "solver": "lsqr and cgls are of the command ``shardmat solve`` alone; SciPy's lsqr takes a matrix, too.",
    "preconditioner": """Or a preconditioner of the program: z = M(r) for arrays of NumPy with this rank's rows of the residuals,
        (rows,) or (rows, columns). A function may give other results from one call to the next, for cg and fgmres; any solver
        takes a LinearOperator of SciPy, a sparse matrix or an array with this rank's rows and columns. An exception of it ends
        the solve on all ranks.""",
    "near_null_space": "Or an array with a row for each row of this rank and 1 to 12 columns.",
    "null_space": """Or vectors that span it, which the transpose maps to 0, too: an array with a row for each row of this rank and
        1 to 24 columns.""",
}
_MORE = {
    "M": "another word for the preconditioner.",
    "columns": "right-hand sides that are solved at once. Default: 1; Matrix.solve takes those of b.",
    "coordinates": """for multigrid: where the nodes lie, an array with a row for each node of this rank's rows, in their order,
        and 2 or 3 columns. Structures want them: without them a solve takes several times as many iterations. A matrix from a
        shard file that stores them, or from a generator, knows them. 12 columns: three coordinates, then the three axes of the
        node's own system. Displacements are along these or the global axes, as A says, and rotations about these; with 5
        unknowns a node, as shells have, about the first two, and the third is the director.""",
    "watch": """called after each iteration with the x so far, (rows,) or (rows, columns); True ends the solve. Takes one more
        product an iteration.""",
    "monitor": """called now and then with the iterations and the norm of each column's residual; True ends the solve. Ctrl-C ends
        it, too.""",
}


def _settings():
    """The options of solvers that the library lists: what each does, by name."""
    return dict(line.split(": ", 1) for line in solver_settings().splitlines())


class _Documentation:
    """A docstring with the options of solvers. The native module lists them, so it is loaded when somebody reads this."""

    def __init__(self, text):
        self._text = text

    def __get__(self, instance, owner):
        import textwrap

        about = {name: text.replace("Values: 0 or 1. Default: 0.", "True or False. Default: False.") for name, text in _settings().items()}
        about = {name: f"{text} {_ALSO[name]}" if name in _ALSO else text for name, text in about.items()} | _MORE
        lines = (textwrap.fill(f"{name}: {' '.join(text.split())}", 120, initial_indent=" " * 4, subsequent_indent=" " * 8,
                               break_on_hyphens=False, break_long_words=False) for name, text in about.items())
        return self._text.replace("    {options}", "\n".join(lines))


def solver_settings():
    """The options of solvers, a line each: name, what its values do, which it takes, and its default."""
    return native().solver_settings()


def _as_text(name, value):
    """An option of a solver as the library takes it by name."""
    if isinstance(value, str):
        if not value or set(value) & set(" ,="):
            raise ValueError(f"{name} is {value!r}; it must be one word")
        return value
    try:
        return str(int(operator.index(value)))
    except TypeError:
        if not hasattr(value, "__float__"):
            raise TypeError(f"{name} is a {type(value).__name__}; it must be a word, a number, or True or False") from None
        return repr(float(value))


def _table(array, name, row):
    """An array of two dimensions as float64, row by row without gaps."""
    import numpy

    array = real(array, name)
    if array.ndim != 2:
        raise ValueError(f"{name} has {array.ndim} dimensions; it must have two: a row for each {row} of this rank")
    return numpy.ascontiguousarray(array, numpy.float64)


def _arrays(given, own_rows):
    """The options that are arrays, as the native module takes them. They are removed from `given`."""
    arrays = {}
    if given.get("coordinates") is not None:
        arrays["coordinates"] = _table(given.pop("coordinates"), "coordinates", "node")
    for name, taken_as in (("near_null_space", "near_null_vectors"), ("null_space", "null_vectors")):
        if given.get(name) is not None and not isinstance(given[name], str):
            arrays[taken_as] = vectors = _table(given.pop(name), name, "row")
            if len(vectors) != own_rows:
                raise ValueError(f"{name} has {len(vectors)} rows; this rank has {own_rows}")
    return arrays


def _own_preconditioner(given):
    """A preconditioner of the program among the options, as the native module takes it. It is removed from `given`."""
    if given.get("M") is not None:
        if given.get("preconditioner", "auto") not in ("auto", None):
            raise ValueError("M and preconditioner are two words for one thing; give one of them")
        given["preconditioner"] = given["M"]
    given.pop("M", None)
    M = given.get("preconditioner")
    if M is None or isinstance(M, str):
        return {}
    del given["preconditioner"]
    if callable(M) and not hasattr(M, "shape"):
        return {"apply": M, "apply_is_linear": False}
    from scipy.sparse.linalg import aslinearoperator

    M = aslinearoperator(M)
    return {"apply": lambda r: M.matvec(r) if r.ndim == 1 else M.matmat(r), "apply_is_linear": True}


_CALLED = ("columns", "monitor", "watch")  # options that are no text


def _options(given):
    """What was given, with all but these as text."""
    known = {name: value for name, value in given.items() if value is not None}
    columns = operator.index(known.get("columns", 1))
    if not 1 <= columns < 2**63:
        raise ValueError(f"columns is {columns}; it must be at least 1")
    names = _settings()
    for name in known:
        if name not in names and name not in _CALLED:
            raise TypeError(f"there is no option '{name}' of a solver; help(shardmat.Solver) lists them")
    return {name: value if name in _CALLED else _as_text(name, value) for name, value in known.items()}


class Solver(Handle):
    __doc__ = _Documentation("""Solves A·X = B by Krylov methods; all vectors and sums stay on the devices.

    Options, by keyword:

    {options}
    """)

    def __init__(self, matrix, solver="auto", preconditioner="auto", **options):
        self._matrix = matrix
        self._sum_type = matrix.info()["sum_type"]
        options = {"solver": solver, "preconditioner": preconditioner, **options}
        special = {**_arrays(options, matrix.own_shape[0]), **_own_preconditioner(options)}
        self._native = native().Solver(matrix._open(), {**_options(options), **special})
        self.results = []

    @property
    def multigrid(self):
        """What multigrid has set up: a dict with the levels, the near null space, and what they cost. None of another
        preconditioner.
        """
        return self._open().multigrid()

    @property
    def levels(self):
        """A dict for each level of multigrid, the finest first: its unknowns and nonzeros on all ranks, and the radius of
        D⁻¹·A, as the smoother takes it; None where the level is solved exactly. Empty for another preconditioner.
        """
        found = self.multigrid
        return [] if found is None else found["levels"]

    def precondition(self, r):
        """z = M·r: the preconditioner alone, for this rank's rows. Collective."""
        import numpy

        r = numpy.ascontiguousarray(real(r, "r"), self._sum_type)
        z = numpy.empty_like(r)
        self._open().precondition(r, z)
        return z

    def aspreconditioner(self):
        """The preconditioner as a ``scipy.sparse.linalg.LinearOperator`` of this rank's rows, as M of SciPy's solvers and of ours."""
        from scipy.sparse.linalg import LinearOperator

        rows = self._matrix.own_shape[0]
        return LinearOperator((rows, rows), matvec=lambda r: self.precondition(r.reshape(-1)), dtype=self._sum_type)

    def refresh(self):
        """Takes the new values of the matrix into the preconditioner. Collective."""
        self._open().refresh()

    def solve(self, b, x0=None):
        """x with A·x = b, begun from x0 or zeros. Collective. ``results`` then has a dict for each column.

        A column converged if its true_residual meets the tolerance, or with the reason "converged_attainable" if it is at most
        ``floor``, which rounding errors allow: 2 ε ‖ |A|·|x| ‖. "least_squares" says that no x solves the system:
        ``normal_residual`` is ‖A·z‖ / (‖A‖·‖z‖) of z = M·(b − A·x). ``backward_error`` is ‖b − A·x‖ / (‖A‖·‖x‖ + ‖b‖).
        ``condition`` of the preconditioned matrix, and ``error_bound`` of the relative error of x, are estimates of cg (in the
        energy norm), minres, gmres and fgmres (in the norm in which M is 1); else 0.

        For a b on the matrix's GPU, x lies there, too, as an array of the library that b is of.

        Raises NotConvergedError, which has the last x.
        """
        import numpy

        if on_gpu(b):
            x = in_library_of(b, empty(b.shape, self._sum_type, context=self._matrix.context))
            x[...] = 0 if x0 is None else x0
        else:
            b = real(b, "b")
            x = numpy.zeros(numpy.shape(b), self._sum_type) if x0 is None else numpy.array(real(x0, "x0"), self._sum_type)
            b = numpy.ascontiguousarray(b, x.dtype)
        self.results = self._open().solve(b, x)
        failed = [result for result in self.results if not result["converged"]]
        if failed:
            raise NotConvergedError(failed[0]["explanation"], x, self.results)
        return x
