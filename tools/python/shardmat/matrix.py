"""Matrices that stay on the devices, and their products."""

import html
import operator
import os

from .arrays import (csr_arrays, csr_of, in_library_of, indices_of, on_gpu, places_of_duplicates,
                     real, type_name, values_of)
from .context import context_for, empty, native
from .handle import Handle
from .solver import Solver


def _remote():
    """The module for matrices on a service, if SHARDMAT_REMOTE names one; as of the commands, "here" means none."""
    if os.environ.get("SHARDMAT_REMOTE", "") in ("", "here"):
        return None
    from . import remote

    return remote


class LinearMap:
    """What can be multiplied by arrays, as SciPy's LinearOperator names it."""

    ndim = 2

    def dot(self, x):
        return self @ x

    def matvec(self, x):
        """As SciPy's LinearOperator: x of shape (n,) or (n, 1)."""
        return self @ x

    def matmat(self, x):
        """As SciPy's LinearOperator: x of shape (n, k)."""
        return self @ x

    def rmatvec(self, x):
        return self.T @ x

    def rmatmat(self, x):
        return self.T @ x


class Matrix(LinearMap, Handle):
    """A sparse matrix, spread by rows over the ranks of a context, that stays on their devices.

    Made by ``from_scipy``, ``from_rows``, ``from_triplets`` or ``from_file``, which take these options as keywords:

    dtype: of the stored values and of x: float64, float32, float16 or bfloat16; None: as given. method: partitioner ("nnz",
    "rows"). kernel, policy, exchange: names; None: chosen. storage: "general", or "symmetric" for half of a matrix on the
    host that is symmetric within rounding; where a_ij and a_ji differ, their mean is stored. products: how many are expected; few: kernels are chosen without measuring. columns: right-hand sides of the
    first product. updatable: new values may come later. reproducible: the same bits in every run. drop_rows: frees the rows
    in host memory when the first product is made. node_block_size: unknowns of a node, whose rows a partitioner keeps together
    and block_jacobi takes as a block; None: as the file says, else found in the pattern.

    One rank has all of x and y. With several, each has the entries of its own rows, ``own_shape``.

    While the environment variable SHARDMAT_REMOTE names a service, from_scipy and from_file make matrices there: products, also
    of A.T, and solve() work; what a service cannot do is refused.
    """

    _REMEDY = "Save the matrix with SciPy (scipy.sparse.save_npz), and make it anew with from_scipy or from_file"

    def __init__(self, handle, context):
        self._native = handle
        self._context = context
        self._places = None  # of an updatable matrix with entries of the same place: where the values given are summed
        info = handle.info()
        self._shape = info["shape"]
        self._own_shape = (info["own_rows"], info["own_cols"])
        self._nnz = info["nnz"]
        self._type = info["type"]

    # ---- making ----

    @classmethod
    def from_scipy(cls, matrix, *, context=None, **options):
        """A matrix of SciPy in any format, on a context of one rank. Entries of the same place are summed. Copied."""
        if remote := _remote():
            return remote.from_scipy(matrix, context, options)
        csr = csr_of(matrix)
        context = context_for(context, None)
        if context.info()["ranks"] > 1:
            raise ValueError("from_scipy takes a whole matrix on one rank; use Matrix.from_rows() on several")
        result = cls.from_rows(csr, context=context, **options)
        if options.get("updatable"):
            result._places = places_of_duplicates(matrix, csr)
        return result

    @classmethod
    def from_rows(cls, rows, *, first_row=None, context=None, comm=None, dtype=None, **options):
        """The rows of this rank: a sparse matrix of SciPy with all columns of the matrix. Collective.

        first_row: the number of its first row; None: after the rows of the ranks before.
        """
        if remote := _remote():
            remote.refuse("a matrix was asked for by its rows on each rank")
        csr = csr_of(rows)
        context = context_for(context, comm)
        if first_row is None:
            first_row = 0
            if context.comm is not None:
                first_row = context.comm.exscan(csr.shape[0]) or 0
        options["type"] = type_name(dtype)
        handle = native().Matrix.from_rows(context._open(), operator.index(first_row), csr.shape[1], *csr_arrays(csr), options)
        result = cls(handle, context)
        if options.get("updatable"):
            result._places = places_of_duplicates(rows, csr)
        return result

    @classmethod
    def from_triplets(cls, row, column, values, shape, *, first_row=0, own_rows=None, context=None, comm=None, dtype=None,
                      **options):
        """Entries (row, column, value) of any rows; those of the same place are summed. Collective.

        shape: of the whole matrix. This rank will own the rows first_row … first_row + own_rows - 1; None: all from first_row.
        """
        if remote := _remote():
            remote.refuse("a matrix was asked for by its triplets")
        context = context_for(context, comm)
        own_rows = shape[0] - first_row if own_rows is None else own_rows
        row, column, values = indices_of(row), indices_of(column), values_of(values)
        if not len(row) == len(column) == len(values):
            raise ValueError(f"{len(row)} rows, {len(column)} columns and {len(values)} values make no triplets")
        options["type"] = type_name(dtype)
        handle = native().Matrix.from_triplets(context._open(), first_row, own_rows, shape[1], row, column, values, options)
        return cls(handle, context)

    @classmethod
    def from_file(cls, file, *, context=None, comm=None, dtype=None, **options):
        """A matrix file or generator, as ``shardmat multiply`` takes it. Collective; each rank reads its own rows."""
        if remote := _remote():
            return remote.from_file(file, context, comm, dtype, options)
        context = context_for(context, comm)
        options["type"] = type_name(dtype)
        file = os.fspath(file)
        return cls(native().Matrix.from_file(context._open(), file, options), context)

    # ---- what it is ----

    @property
    def shape(self):
        """Rows and columns of the whole matrix."""
        return self._shape

    @property
    def own_shape(self):
        """Entries of y and of x that this rank gives and gets."""
        return self._own_shape

    @property
    def nnz(self):
        """Stored entries of the whole matrix."""
        return self._nnz

    @property
    def dtype(self):
        """NumPy's type of x and of the values (bfloat16 is not one of NumPy's)."""
        import numpy

        return numpy.dtype(self._type)

    @property
    def context(self):
        return self._context

    def row_ids(self):
        """The number in the whole matrix of each row of this rank, in the order of y."""
        return self._open().row_ids()

    def col_ids(self):
        """The number in the whole matrix of each entry of x that this rank has."""
        return self._open().col_ids()

    def info(self):
        """Sizes, memory and place, as a dict. node_block_size: unknowns of a node, as given, stored in the file or found in the
        pattern; 1 without such nodes."""
        return {**self._open().info(), **self._context_info()}

    def _context_info(self):
        try:
            info = self._context.info()
        except ValueError:  # closed
            return {}
        return {key: info[key] for key in ("rank", "ranks", "backend", "name")}

    # ---- products ----

    def product(self, columns=1, *, kernel=None, exchange=None):
        """A product for a number of right-hand sides. Any number of products share the stored rows. Collective."""
        return Product(self, columns, kernel, exchange)

    def __matmul__(self, x):
        """``A @ x``: for one rank all entries, for several those of this rank. x has one or two dimensions. Collective.

        For an x on the matrix's GPU, the result lies there, too, as an array of the library that x is of.
        """
        return self._times(x, False)

    def _times(self, x, transposed):
        y = self._open().matmul(x, transposed)
        return y if y is not None else self._multiply_other(x, transposed)

    def _multiply_other(self, x, transposed):
        """A·x or Aᵀ·x for an x of another type or layout, which is converted."""
        import numpy

        if on_gpu(x):
            y = empty((self._own_shape[1 if transposed else 0], *x.shape[1:]), self._open().info()["sum_type"],
                      context=self._context)
            self._native.multiply(x, y, transposed)
            return in_library_of(x, y)
        x = real(x, "x")
        y = self._native.matmul(numpy.ascontiguousarray(x, dtype=self.dtype), transposed)
        if y is None:
            raise ValueError(f"x cannot be taken as an array of {self._type}")
        return y

    @property
    def T(self):
        """The transpose, for products: it reads the rows of this matrix, which are stored once. ``A.T.T`` is A."""
        return Transpose(self)

    def as_linear_operator(self):
        """A ``scipy.sparse.linalg.LinearOperator`` of this matrix, for one rank, with its transpose."""
        from scipy.sparse.linalg import LinearOperator

        return LinearOperator(self.shape, matvec=self.matvec, matmat=self.matmat, dtype=self.dtype, rmatvec=self.rmatvec,
                              rmatmat=self.rmatmat)

    # ---- values ----

    def update_values(self, values, *, stream=None):
        """New values on the same pattern, in the order in which the entries were given; of an updatable matrix. Collective.

        For ``from_scipy``: as ``data`` of ``matrix.tocsr()``. If entries of it have the same place: all of them, which are
        summed in float64, or as after ``sum_duplicates()``. Also takes arrays on the device by DLPack; there entries of the
        same place must be summed. Products, also those of A.T, take them from then on.
        """
        if not on_gpu(values):
            values = values_of(values)
            if self._places is not None and values.shape == self._places.shape:
                import numpy

                values = numpy.bincount(self._places, values, self._open().info()["own_values"])
        self._open().update_values(values, stream)

    def zero_rows_columns(self, rows, diagonal=1.0, x=None, b=None):
        """Zeros rows and columns and sets their diagonals, for known values x of these rows, as PETSc's MatZeroRowsColumns.

        Of a square, updatable matrix. rows: numbers in the whole matrix; each rank may name any. With x and b (this rank's
        entries), b changes in place: it loses A·x of the zeroed columns, and becomes diagonal·x in the zeroed rows. Collective.
        """
        self._open().zero_rows_columns(indices_of(rows).reshape(-1), diagonal, x, b)

    # ---- solving ----

    def solver(self, solver="auto", preconditioner="auto", **options):
        """A solver of A·X = B that keeps its memory. help(shardmat.Solver) lists the options. Collective."""
        return Solver(self, solver, preconditioner, **options)

    def solve(self, b, x0=None, *, solver="auto", preconditioner="auto", **options):
        """Solves A·x = b once, from x0 or zeros. Returns x; raises NotConvergedError, which has the last x. Collective.

        help(shardmat.Solver) lists the options.
        """
        columns = 1 if getattr(b, "ndim", 1) == 1 else b.shape[1]
        return Solver(self, solver, preconditioner, columns=columns, **options).solve(b, x0)

    def _solver_for_one(self, method, preconditioner, options):
        """A solver for one right-hand side, of the functions that are called as SciPy's."""
        return self.solver(method, preconditioner, **options)

    def _check_callbacks(self):
        """Refuses functions that are called in each iteration, where that cannot be."""

    # ---- life ----

    def close(self):
        """Frees the memory of the matrix, once its products and solvers are gone, too."""
        self._native = None

    def __repr__(self):
        if self._native is None:
            return "<shardmat.Matrix: closed>"
        return f"<shardmat.Matrix: {self._shape[0]}×{self._shape[1]}, {self._nnz} entries of {self._type}>"

    def _repr_html_(self):
        if self._native is None:
            return html.escape(repr(self))
        rows = "".join(f"<tr><th>{html.escape(str(key))}</th><td>{html.escape(str(value))}</td></tr>"
                       for key, value in self.info().items())
        return f"<table><caption>shardmat.Matrix</caption>{rows}</table>"


class Transpose(LinearMap):
    """The transpose of a matrix: products with it read the rows of the matrix, which are stored once. Made by ``A.T``.

    It has the values of the matrix at any time. On several ranks an x has the entries of this rank's rows, and a result those
    of its columns: ``own_shape``. On a GPU, and for some formats, its first product makes a map of 8 bytes an entry.
    """

    def __init__(self, matrix):
        self._matrix = matrix

    @property
    def T(self):
        return self._matrix

    @property
    def shape(self):
        return self._matrix.shape[::-1]

    @property
    def own_shape(self):
        return self._matrix.own_shape[::-1]

    @property
    def nnz(self):
        return self._matrix.nnz

    @property
    def dtype(self):
        return self._matrix.dtype

    @property
    def context(self):
        return self._matrix.context

    def product(self, columns=1):
        """A product for a number of right-hand sides, which can also scale and add. Collective."""
        return Product(self._matrix, columns, transposed=True)

    def __matmul__(self, x):
        """``A.T @ x``, as ``A @ x``. Collective."""
        return self._matrix._times(x, True)

    def as_linear_operator(self):
        """A ``scipy.sparse.linalg.LinearOperator`` of the transpose, for one rank."""
        return self._matrix.as_linear_operator().T

    def solve(self, *arguments, **options):
        """Refused."""
        raise NotImplementedError("systems with the transpose are solved with a matrix of the transposed rows: "
                                  "Matrix.from_scipy(a.T), or from_file(…, transposed=True)")

    solver = solve

    def __repr__(self):
        return f"<shardmat.Transpose of {self._matrix!r}>"


class Product(Handle):
    """Y = alpha·A·X + beta·Y for a number of right-hand sides; made by ``A.T.product()``, of the transpose."""

    def __init__(self, matrix, columns, kernel=None, exchange=None, transposed=False):
        self._matrix = matrix
        self._columns = operator.index(columns)
        self._sum_type = matrix._open().info()["sum_type"]
        self._own_rows = matrix.own_shape[1 if transposed else 0]  # of the result
        self._native = native().Product(matrix._open(), self._columns, kernel, exchange, transposed)

    @property
    def columns(self):
        return self._columns

    def info(self):
        """Kernel and exchange, why they were chosen, and memory, as a dict."""
        return self._open().info()

    def multiply(self, x, out=None, *, alpha=1.0, beta=0.0, stream=None):
        """Returns out = alpha·A·x + beta·out. Collective; alpha and beta must be the same on all ranks, and nobody compares them.

        x and out are arrays of NumPy, or on the matrix's GPU with ``__dlpack__``; without out, the result lies where x does.
        An out of NumPy in Fortran order takes a further copy.
        stream: a CUDA stream, as a number or an object of CuPy or PyTorch; None: returns when out is complete.
        """
        handle = self._open()
        if out is not None:
            flags = getattr(out, "flags", None)  # arrays of other libraries have none, or lie by rows
            by_columns = bool(not on_gpu(out) and getattr(flags, "f_contiguous", False) and not flags.c_contiguous)
            by_rows = out.copy(order="C") if by_columns else out
            handle.multiply(x, by_rows, alpha, beta, stream)
            if by_columns:
                out[...] = by_rows
            return out
        import numpy

        shape = (self._own_rows,) if getattr(x, "ndim", 1) == 1 else (self._own_rows, self._columns)
        if beta != 0:
            raise ValueError("beta needs the out that it is for")
        if on_gpu(x):
            ours = empty(shape, self._sum_type, context=self._matrix.context)
            handle.multiply(x, ours, alpha, 0.0, stream)
            return in_library_of(x, ours)
        out = numpy.empty(shape, self._sum_type)
        handle.multiply(x, out, alpha, 0.0, stream)
        return out

    def __matmul__(self, x):
        return self.multiply(x)
