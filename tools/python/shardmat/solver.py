"""Solvers, and their options."""

import operator
import re

from .arrays import in_library_of, on_gpu, real
from .context import empty, native
from .errors import NotConvergedError
from .handle import Handle

_OPTIONS = """solver: "cg", "gmres", "fgmres", "bicgstab", "minres", "chebyshev", "direct" (by factors of the matrix), or
        "auto" (by the matrix). "lsqr" and "cgls", for least squares, are of the command ``shardmat solve``
        alone; SciPy's lsqr takes a matrix, too.
    preconditioner: "none", "jacobi", "block_jacobi", "chebyshev", "ilu", "ic" (incomplete factors), "multigrid",
        "field_split" (saddle points), "direct", or "auto": multigrid for symmetric matrices of 5,000 rows and more with a positive diagonal, block_jacobi for smaller
        ones, field_split where the diagonal is 0 or negative in some rows, ilu if the matrix is not symmetric.
        Where a choice fails, the next one goes on. Or a preconditioner of the program: z = M(r) for arrays of NumPy with this
        rank's rows of the residuals, (rows,) or (rows, columns). A function may give other results from one call to the next,
        for "cg" and "fgmres"; any solver takes a LinearOperator of SciPy, a sparse matrix or an array with this rank's rows
        and columns. An exception of it ends the solve on all ranks.

    M: another word for the preconditioner.

    Options, by keyword:
    rtol: of the norm of b. 1e-8, for a matrix in float32 1e-5.
    atol: of the residual. 0.
    divergence_tolerance: a residual so many times the first one ends the solve. 1e5.
    max_iterations: 10000.
    restart: iterations of gmres and fgmres until they begin anew. 30.
    gram_schmidt: of gmres and fgmres: "classical" (a second time only where needed), or "modified" with a sum over the ranks for each vector.
    columns: right-hand sides that are solved at once. 1; Matrix.solve takes those of b.
    node_block_size: the unknowns a node, for block_jacobi, ilu and ic. Found in the pattern.
    degree: of the polynomial of chebyshev. 4.
    factor_levels: of ilu and ic: levels of fill. 0: the factors have the pattern of the matrix.
    drop_tolerance: of ilu and ic: above 0, fill is kept, in place of levels, where it is above so many times the norm of its
        row. 0.
    factor_fill: of ilu and ic with a drop tolerance: at most so many times the entries of the matrix. 2.
    factor_order: of ilu and ic: in which order a rank eliminates its rows: "natural", "rcm" (reverse Cuthill-McKee),
        "colours" (rows that are not coupled together: few steps on a GPU, more iterations), "clusters" (colours of small
        groups of strongly coupled rows: between both), or "auto": "colours" on a GPU, else "rcm" where entries lie far from
        the diagonal. "auto".
    factor_sweeps: of ilu and ic on a GPU: so many Jacobi sweeps of each factor in place of an exact solve. 0: exact.
    asm_overlap: of ilu and ic: 1: the factors of a rank reach into the rows next to its own. 0.
    near_null_space: of multigrid: vectors that A maps to almost 0, an array with a row for each row of this rank and 1 to 12
        columns. Or "rigid", the rigid-body modes, which need coordinates; "constants", one for each unknown of a node;
        "adaptive", the constants and, for symmetric matrices, vectors that cycles from random ones find, where no coordinates
        are known; "auto": rigid where the coordinates are known and A maps the modes to almost 0, else constants.
    coordinates: for multigrid: where the nodes lie, an array with a row for each node of this rank's rows, in their order,
        and 2 or 3 columns. Structures want them: without them a solve takes several times as many iterations. A matrix from a
        shard file that stores them, or from a generator, knows them. 12 columns: three coordinates, then the three axes of the
        node's own system. Displacements are along these or the global axes, as A says, and rotations about these; with 5
        unknowns a node, as shells have, about the first two, and the third is the director.
    strength: of multigrid: couplings of so much and more form aggregates. 0.05.
    smoother_degree: of multigrid: steps of the smoother before and after a coarse correction. 2.
    smoother: of multigrid: "chebyshev" or "ic" for symmetric matrices, "l1_jacobi" or "ilu" for any, or "auto". "auto".
    cycle: of multigrid: "V", "W" (coarse levels twice), "K" (twice, with the best combination of both; for fgmres and cg), or
        "auto": "V" for symmetric matrices, for others "K" with fgmres and "W" with other methods. "auto".
    coarse_size: of multigrid: a level of so many unknowns is solved exactly. 900.
    rank_size: of multigrid: coarse levels with fewer unknowns a rank, or than a quarter of the first level's, move to fewer
        ranks; 0: none does. 20000.
    levels: of multigrid, at most. 20.
    inner: of multigrid, ilu and ic: the type of their values, "f32" or "f64". "f32". "f16": matrices
        of multigrid that is set up on a GPU, the rest in f32.
    refresh: of multigrid: what new values change: "keep" (the matrices of all levels), "smooth" (also the prolongations) or
        "anew" (the aggregates, too). "keep".
    fields: of field_split, for saddle points as of Stokes: a digit for each unknown of a node, as "001" for u, v and p; or
        "auto": the rows whose diagonal is negative, or small beside their other entries. "auto".
    schur: of field_split: "diagonal" (for Stokes), "commutator" (for Oseen), "multigrid" (for Darcy) or "auto". "auto".
    null_space: what A maps to 0; it is removed from b and x. "none", "constant" for a matrix with A·1 = 0, "rigid" for bodies
        that nothing holds (needs coordinates), "auto" (default): what multigrid finds. Or vectors that span it, which the
        transpose maps to 0, too: an array with a row for each row of this rank and 1 to 24 columns.
    residual_norm: "unpreconditioned" or "preconditioned", for the test of convergence.
    assume_symmetric: True skips the test that cg, minres and chebyshev make.
    variant: of cg: "auto", "classic", "single_reduction" with one sum over the ranks an iteration, or "flexible" for a
        preconditioner that is a little unsymmetric, or changes.
    penalty_rows: rows that state a known value by a diagonal above 1e8 times all else, as FreeFEM's tgv. "auto": they give
        x = b / diagonal, and the others are solved for; "known": all such rows, and one at least; "keep": rows like
        others. ``results`` tell how many; norm_of_b, residual and true_residual are those of the other rows.
    watch: called after each iteration with the x so far, (rows,) or (rows, columns); True ends the solve. Takes one more
        product an iteration.
    monitor: called now and then with the iterations and the norm of each column's residual; True ends the solve. Ctrl-C ends
        it, too."""


def lists_options(documented):
    """Puts the options of a solver into a docstring, so that help() shows them."""
    documented.__doc__ = documented.__doc__.replace("{options}", _OPTIONS)
    return documented


def solver_settings():
    """The options of solvers, a line each: name, what its values do, and its default."""
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
    names = re.findall(r"^(\w+):", solver_settings(), re.MULTILINE)
    for name in known:
        if name not in names and name not in _CALLED:
            raise TypeError(f"there is no option '{name}' of a solver; help(shardmat.Solver) lists them")
    return {name: value if name in _CALLED else _as_text(name, value) for name, value in known.items()}


@lists_options
class Solver(Handle):
    """Solves A·X = B by Krylov methods; all vectors and sums stay on the devices.

    {options}
    """

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
