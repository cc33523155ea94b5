"""Matrices that stay on the devices, and their products."""

import html
import operator
import weakref

from .arrays import (csr_arrays, csr_of, in_library_of, indices_of, on_gpu, places_of_duplicates,
                     real, type_name, values_of)
from .context import context_for, empty, native
from .handle import Handle
from .solver import Solver, lists_options


class Matrix(Handle):
    """A sparse matrix, spread by rows over the ranks of a context, that stays on their devices.

    Made by ``from_scipy``, ``from_rows``, ``from_triplets`` or ``from_file``, which take these options as keywords:

    dtype: of the stored values and of x: float64, float32, float16 or bfloat16; None: as given. method: partitioner ("nnz",
    "rows"). kernel, policy, exchange: names; None: chosen. storage: "general", or "symmetric" for half of a matrix on the
    host that is symmetric within rounding; where a_ij and a_ji differ, their mean is stored. products: how many are expected; few: kernels are chosen without measuring. columns: right-hand sides of the
    first product. updatable: new values may come later. reproducible: the same bits in every run. drop_rows: frees the rows
    in host memory when the first product is made. node_block_size: unknowns of a node, whose rows a partitioner keeps together
    and block_jacobi takes as a block; None: as the file says, else found in the pattern.

    One rank has all of x and y. With several, each has the entries of its own rows, ``own_shape``.
    """

    _REMEDY = "Save the matrix with SciPy (scipy.sparse.save_npz), and make it anew with from_scipy or from_file"

    def __init__(self, handle, context, transpose=None):
        self._native = handle
        self._context = context
        self._make_transpose = transpose
        self._transpose = None
        self._transpose_of = None  # a weak reference, so that a matrix that is deleted frees its memory
        self._places = None  # of an updatable matrix with entries of the same place: where the values given are summed
        info = handle.info()
        self._shape = info["shape"]
        self._own_shape = (info["own_rows"], info["own_cols"])
        self._nnz = info["nnz"]
        self._type = info["type"]

    # ---- making ----

    @classmethod
    def from_scipy(cls, matrix, *, context=None, **options):
        """A matrix of SciPy in any format, on a context of one rank. Entries of the same place are summed. Copied.

        ``A.T`` keeps the SciPy matrix as long as it is not asked for, and is then a second matrix on the device.
        """
        csr = csr_of(matrix)
        context = context_for(context, None)
        if context.info()["ranks"] > 1:
            raise ValueError("from_scipy takes a whole matrix on one rank; use Matrix.from_rows() on several")
        result = cls.from_rows(csr, context=context, **options)
        if options.get("updatable"):
            result._places = places_of_duplicates(matrix, csr)
        result._make_transpose = lambda: _Transposed(csr, context, options)
        return result

    @classmethod
    def from_rows(cls, rows, *, first_row=None, context=None, comm=None, dtype=None, **options):
        """The rows of this rank: a sparse matrix of SciPy with all columns of the matrix. Collective.

        first_row: the number of its first row; None: after the rows of the ranks before.
        """
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
        import os

        context = context_for(context, comm)
        options["type"] = type_name(dtype)
        file = os.fspath(file)
        result = cls(native().Matrix.from_file(context._open(), file, options), context)
        if context.info()["ranks"] == 1 and not options.get("updatable"):
            turned = {**options, "transposed": not options.get("transposed", False)}
            result._make_transpose = lambda: _TransposedFile(cls(native().Matrix.from_file(context._open(), file, turned), context))
        return result

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

    ndim = 2

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
        y = self._open().matmul(x)
        return y if y is not None else self._multiply_other(x)

    def _multiply_other(self, x):
        """A·x for an x of another type or layout, which is converted."""
        import numpy

        if on_gpu(x):
            y = empty((self._own_shape[0], *x.shape[1:]), self._open().info()["sum_type"], context=self._context)
            self._native.multiply(x, y)
            return in_library_of(x, y)
        x = real(x, "x")
        y = self._native.matmul(numpy.ascontiguousarray(x, dtype=self.dtype))
        if y is None:
            raise ValueError(f"x cannot be taken as an array of {self._type}")
        return y

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

    @property
    def T(self):
        """The transpose, a second matrix on the device; on one rank, of a matrix from SciPy or of a file. ``A.T.T`` is A."""
        if self._transpose_of is not None:
            before = self._transpose_of()
            if before is None or before._native is None:
                raise NotImplementedError("the matrix of which this is the transpose was closed or deleted; keep it, for "
                                          "A.T.T is A")
            return before
        if self._transpose is None:
            if self._make_transpose is None:
                raise NotImplementedError("there is no product with the transpose of this matrix, but of one that from_scipy or "
                                          "from_file made on one rank, before its values changed. Make a second matrix of the "
                                          "transposed rows, or use from_file(…, transposed=True)")
            self._transpose = self._make_transpose()
            self._make_transpose = None
            self._transpose.matrix._transpose_of = weakref.ref(self)
        return self._transpose.matrix

    def as_linear_operator(self):
        """A ``scipy.sparse.linalg.LinearOperator`` of this matrix, for one rank. It has A.T where there is one."""
        from scipy.sparse.linalg import LinearOperator

        has_transpose = self._transpose is not None or self._make_transpose is not None
        return LinearOperator(self.shape, matvec=self.matvec, matmat=self.matmat, dtype=self.dtype,
                              rmatvec=self.rmatvec if has_transpose else None,
                              rmatmat=self.rmatmat if has_transpose else None)

    # ---- values ----

    def update_values(self, values, *, stream=None):
        """New values on the same pattern, in the order in which the entries were given; of an updatable matrix. Collective.

        For ``from_scipy``: as ``data`` of ``matrix.tocsr()``. If entries of it have the same place: all of them, which are
        summed in float64, or as after ``sum_duplicates()``. Also takes arrays on the device by DLPack, which end an A.T; there
        entries of the same place must be summed. There is A.T of updated values only if it was asked for before.
        """
        if not on_gpu(values):
            values = values_of(values)
            if self._places is not None and values.shape == self._places.shape:
                import numpy

                values = numpy.bincount(self._places, values, self._open().info()["own_values"])
        self._open().update_values(values, stream)
        self._make_transpose = self._transpose_of = None  # the values of SciPy's matrix are no longer ours
        if self._transpose is None:
            return
        if on_gpu(values):
            self._transpose.matrix._transpose_of = self._transpose = None  # it would take its values through host memory
        else:
            self._transpose.update(values)
            self._transpose.matrix._transpose_of = weakref.ref(self)

    def zero_rows_columns(self, rows, diagonal=1.0, x=None, b=None):
        """Zeros rows and columns and sets their diagonals, for known values x of these rows, as PETSc's MatZeroRowsColumns.

        Of a square, updatable matrix. rows: numbers in the whole matrix; each rank may name any. With x and b (this rank's
        entries), b changes in place: it loses A·x of the zeroed columns, and becomes diagonal·x in the zeroed rows. Collective.
        """
        self._open().zero_rows_columns(indices_of(rows).reshape(-1), diagonal, x, b)
        self._transpose_of = None
        if self._transpose is not None:
            self._transpose.matrix.zero_rows_columns(rows, diagonal)
            self._transpose.matrix._transpose_of = weakref.ref(self)
        else:
            self._make_transpose = None  # the values of SciPy's matrix are no longer ours

    # ---- solving ----

    @lists_options
    def solver(self, solver="auto", preconditioner="auto", **options):
        """A solver of A·X = B that keeps its memory. Collective.

    {options}
        """
        return Solver(self, solver, preconditioner, **options)

    @lists_options
    def solve(self, b, x0=None, *, solver="auto", preconditioner="auto", **options):
        """Solves A·x = b once, from x0 or zeros. Returns x; raises NotConvergedError, which has the last x. Collective.

    {options}
        """
        columns = 1 if getattr(b, "ndim", 1) == 1 else b.shape[1]
        return Solver(self, solver, preconditioner, columns=columns, **options).solve(b, x0)

    # ---- life ----

    def close(self):
        """Frees the memory of the matrix, once its products and solvers are gone, too."""
        self._native = None
        self._transpose = self._make_transpose = None

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


class _Transposed:
    """The transpose of a matrix from SciPy, which follows new values."""

    def __init__(self, csr, context, options):
        self._shape = csr.shape
        self._pattern = (csr.indices, csr.indptr)
        self._order = None
        transposed = csr.T.tocsr()
        self.matrix = Matrix.from_rows(transposed, context=context, **options)

    def update(self, values):
        import numpy
        import scipy.sparse

        if self._order is None:
            indices, indptr = self._pattern
            numbers = scipy.sparse.csr_matrix((numpy.arange(len(indices)), indices, indptr), shape=self._shape)
            self._order = numbers.T.tocsr().data
        self.matrix.update_values(values[self._order])


class _TransposedFile:
    """The transpose of a file, whose values stay."""

    def __init__(self, matrix):
        self.matrix = matrix


class Product(Handle):
    """Y = alpha·A·X + beta·Y for a number of right-hand sides."""

    def __init__(self, matrix, columns, kernel=None, exchange=None):
        self._matrix = matrix
        self._columns = operator.index(columns)
        self._sum_type = matrix.info()["sum_type"]
        self._native = native().Product(matrix._open(), self._columns, kernel, exchange)

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

        shape = self._matrix.own_shape[:1] if getattr(x, "ndim", 1) == 1 else (self._matrix.own_shape[0], self._columns)
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
