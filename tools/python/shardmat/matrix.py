"""Matrices that stay on the devices, their products and solvers."""

import html
import operator
import sys
import weakref

from .context import context_for, empty, native
from .errors import NotConvergedError
from .handle import Handle

_TYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}


def _type_name(dtype):
    """"f64" of None, "f64", "float64" or a NumPy dtype."""
    if dtype is None or dtype in _TYPES.values():
        return dtype
    import numpy

    name = str(dtype) if str(dtype) in _TYPES else numpy.dtype(dtype).name
    if name not in _TYPES:
        raise ValueError(f"a matrix cannot have values of {name}; choose float64, float32, float16 or bfloat16")
    return _TYPES[name]


def on_gpu(array):
    """Whether an array that speaks DLPack lies on a device."""
    return getattr(array, "__dlpack_device__", lambda: (1, 0))()[0] not in (1, 3)


def in_library_of(array, ours):
    """Memory of a context as an array of the library that made `array`, such as CuPy or PyTorch."""
    namespace = getattr(array, "__array_namespace__", None)
    library = namespace() if namespace is not None else sys.modules[type(array).__module__.partition(".")[0]]
    return library.from_dlpack(ours)


def as_numpy(array):
    """An array in host memory as one of NumPy."""
    import numpy

    if hasattr(array, "__dlpack__") and not hasattr(array, "__array__"):
        return numpy.from_dlpack(array)
    return numpy.asarray(array)


def real(array, what):
    """An array in host memory as one of NumPy, with real numbers."""
    array = as_numpy(array)
    require_real(array.dtype, what)
    return array


def require_real(dtype, what):
    """Raises ValueError for a type of NumPy whose values are no real numbers."""
    if dtype.kind == "c":
        raise ValueError(f"{what} has type {dtype}; it must have real numbers. A complex system has a real equivalent with 2 × 2 "
                         "blocks: scipy.sparse.kron(A.real, [[1, 0], [0, 1]]) + scipy.sparse.kron(A.imag, [[0, -1], [1, 0]]), "
                         "with b.view(float) and x.view(complex)")
    if dtype.kind not in "biuf":
        raise ValueError(f"{what} has type {dtype}; it must have real numbers")


def _values(array):
    """Values as a contiguous array of f64 or f32."""
    import numpy

    array = real(array, "an array of values")
    return numpy.ascontiguousarray(array, dtype=numpy.float32 if array.dtype == numpy.float32 else numpy.float64)


def _indices(array):
    """Whole numbers as a contiguous array."""
    import numpy

    array = as_numpy(array)
    if array.dtype.kind not in "iu" and array.size > 0:
        raise ValueError(f"an array of row or column numbers has type {array.dtype}; it must have whole numbers")
    return numpy.ascontiguousarray(array, dtype=numpy.int64)


def _csr(matrix):
    """The matrix as CSR of SciPy with values of float64 or float32, in which no column comes twice in a row, without changing
    the caller's. Entries keep their order but where such columns are summed. Sums are formed in float64, because those of a
    small type would overflow.
    """
    import numpy
    import scipy.sparse

    if not scipy.sparse.issparse(matrix):
        raise TypeError(f"a sparse matrix of SciPy is wanted, not {type(matrix).__name__}")
    require_real(matrix.dtype, "the matrix")
    if len(matrix.shape) != 2:
        raise ValueError(f"the sparse array has {len(matrix.shape)} dimensions; a matrix has two")
    given = matrix.dtype
    if given != numpy.float64 and (given != numpy.float32 or matrix.format == "coo"):  # tocsr() of COO sums
        matrix = _with_values(matrix, numpy.float64)
    csr = matrix.tocsr()
    indptr, stored = csr.indptr, min(len(csr.indices), len(csr.data))
    if len(indptr) != csr.shape[0] + 1 or indptr[0] != 0 or indptr[-1] > stored or (numpy.diff(indptr) < 0).any():
        raise ValueError(f"indptr of the matrix must ascend from 0 to at most {stored}, the number of its indices and values")
    if csr.nnz > 0 and not 0 <= csr.indices[:csr.nnz].min() <= csr.indices[:csr.nnz].max() < csr.shape[1]:
        raise ValueError(f"column numbers of the matrix must be 0 … {csr.shape[1] - 1}")
    if not csr.has_canonical_format:
        ordered = csr.sorted_indices()
        if not ordered.has_canonical_format:
            csr = _with_values(ordered, numpy.float64)
            csr.sum_duplicates()
    with numpy.errstate(over="ignore"):  # the library refuses infinity
        return csr.astype(numpy.float32) if given == numpy.float32 and csr.dtype != given else csr


def _with_values(matrix, dtype):
    """The matrix with values of another type. In place of its astype(), which first sums entries of the same place in the old
    type, and in the caller's matrix.
    """
    if matrix.format in ("csr", "csc", "bsr"):
        arrays = matrix.data.astype(dtype), matrix.indices, matrix.indptr
        return type(matrix)(arrays, shape=matrix.shape)
    if matrix.format == "coo":
        return type(matrix)((matrix.data.astype(dtype), (matrix.row, matrix.col)), shape=matrix.shape)
    return matrix.astype(dtype)


def _places_of_duplicates(matrix, csr):
    """Which entry of ``csr``, as _csr() made it, each stored entry of the matrix belongs to; None if each has its own."""
    import numpy

    if matrix.format not in ("csr", "csc", "bsr"):  # of the others, tocsr() has no entries of the same place
        return None
    stored = matrix.tocsr()
    if stored.nnz == csr.nnz:
        return None

    def places(of):
        rows = numpy.repeat(numpy.arange(of.shape[0], dtype=numpy.int64), numpy.diff(of.indptr))
        return rows * of.shape[1] + of.indices[:of.nnz]

    return numpy.searchsorted(places(csr), places(stored))


def _csr_arrays(csr):
    """Where rows begin, column numbers and values, as the library takes them."""
    return _indices(csr.indptr), _indices(csr.indices[:csr.nnz]), _values(csr.data[:csr.nnz])


_OPTIONS = """solver: "cg", "gmres", "fgmres", "bicgstab", "minres", "chebyshev", or "auto" (by the matrix).
    preconditioner: "none", "jacobi", "block_jacobi" or "chebyshev".

    Options, by keyword:
    rtol: of the norm of b. 1e-8, for a matrix in float32 1e-5.
    atol: of the residual. 0.
    divergence_tolerance: a residual so many times the first one ends the solve. 1e5.
    max_iterations: 10000.
    restart: iterations of gmres and fgmres until they begin anew. 30.
    columns: right-hand sides that are solved at once. 1; Matrix.solve takes those of b.
    node_block_size: the unknowns a node, for block_jacobi. Found in the pattern.
    degree: of the polynomial of chebyshev. 4.
    null_space: "none", or "constant" for a matrix with A·1 = 0.
    residual_norm: "unpreconditioned" or "preconditioned", for the test of convergence.
    assume_symmetric: True skips the test that cg, minres and chebyshev make.
    variant: of cg: "auto", "classic", or "single_reduction" with one sum over the ranks an iteration.
    penalty_rows: rows that state a known value by a diagonal above 1e8 times all else, as FreeFEM's tgv. "auto": they give
        x = b / diagonal, and the others are solved for; "known": all such rows, and one at least; "keep": rows like
        others. ``results`` tell how many; norm_of_b, residual and true_residual are those of the other rows.
    monitor: called now and then with the iterations and the norm of each column's residual; True ends the solve. Ctrl-C ends
        it, too."""


def _lists_options(documented):
    """Puts the options of a solver into a docstring, so that help() shows them."""
    documented.__doc__ = documented.__doc__.replace("{options}", _OPTIONS)
    return documented


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
        csr = _csr(matrix)
        context = context_for(context, None)
        if context.info()["ranks"] > 1:
            raise ValueError("from_scipy takes a whole matrix on one rank; use Matrix.from_rows() on several")
        result = cls.from_rows(csr, context=context, **options)
        if options.get("updatable"):
            result._places = _places_of_duplicates(matrix, csr)
        result._make_transpose = lambda: _Transposed(csr, context, options)
        return result

    @classmethod
    def from_rows(cls, rows, *, first_row=None, context=None, comm=None, dtype=None, **options):
        """The rows of this rank: a sparse matrix of SciPy with all columns of the matrix. Collective.

        first_row: the number of its first row; None: after the rows of the ranks before.
        """
        csr = _csr(rows)
        context = context_for(context, comm)
        if first_row is None:
            first_row = 0
            if context.comm is not None:
                first_row = context.comm.exscan(csr.shape[0]) or 0
        options["type"] = _type_name(dtype)
        handle = native().Matrix.from_rows(context._open(), operator.index(first_row), csr.shape[1], *_csr_arrays(csr), options)
        result = cls(handle, context)
        if options.get("updatable"):
            result._places = _places_of_duplicates(rows, csr)
        return result

    @classmethod
    def from_triplets(cls, row, column, values, shape, *, first_row=0, own_rows=None, context=None, comm=None, dtype=None,
                      **options):
        """Entries (row, column, value) of any rows; those of the same place are summed. Collective.

        shape: of the whole matrix. This rank will own the rows first_row … first_row + own_rows - 1; None: all from first_row.
        """
        context = context_for(context, comm)
        own_rows = shape[0] - first_row if own_rows is None else own_rows
        row, column, values = _indices(row), _indices(column), _values(values)
        if not len(row) == len(column) == len(values):
            raise ValueError(f"{len(row)} rows, {len(column)} columns and {len(values)} values make no triplets")
        options["type"] = _type_name(dtype)
        handle = native().Matrix.from_triplets(context._open(), first_row, own_rows, shape[1], row, column, values, options)
        return cls(handle, context)

    @classmethod
    def from_file(cls, file, *, context=None, comm=None, dtype=None, **options):
        """A matrix file or generator, as ``shardmat multiply`` takes it. Collective; each rank reads its own rows."""
        import os

        context = context_for(context, comm)
        options["type"] = _type_name(dtype)
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
            values = _values(values)
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
        self._open().zero_rows_columns(_indices(rows).reshape(-1), diagonal, x, b)
        self._transpose_of = None
        if self._transpose is not None:
            self._transpose.matrix.zero_rows_columns(rows, diagonal)
            self._transpose.matrix._transpose_of = weakref.ref(self)
        else:
            self._make_transpose = None  # the values of SciPy's matrix are no longer ours

    # ---- solving ----

    @_lists_options
    def solver(self, solver="cg", preconditioner="none", **options):
        """A solver of A·X = B that keeps its memory. Collective.

    {options}
        """
        return Solver(self, solver, preconditioner, **options)

    @_lists_options
    def solve(self, b, x0=None, *, solver="cg", preconditioner="none", **options):
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


_AT_LEAST = {"max_iterations": 1, "restart": 1, "columns": 1, "degree": 1, "node_block_size": 0}


def _checked(name, value):
    """An option of a solver as the library takes it: 0 there means the default, and an rtol below 0 means none."""
    if value is None:
        return None
    if name in _AT_LEAST:
        value = operator.index(value)
        if value < _AT_LEAST[name]:
            raise ValueError(f"{name} is {value}; it must be at least {_AT_LEAST[name]}")
        most = 2**31 - 1 if name in ("degree", "node_block_size") else 2**63 - 1
        if value > most:
            raise ValueError(f"{name} is {value}; it must be at most {most}")
    elif name in ("rtol", "atol", "divergence_tolerance"):
        value = float(value)
        if not value >= 0 or name == "divergence_tolerance" and value == 0:
            raise ValueError(f"{name} is {value}; it must be {'more than 0' if name == 'divergence_tolerance' else '0 or more'}")
        if name == "rtol" and value == 0:
            return -1.0
    return value


@_lists_options
class Solver(Handle):
    """Solves A·X = B by Krylov methods; all vectors and sums stay on the devices.

    {options}
    """

    def __init__(self, matrix, solver="cg", preconditioner="none", **options):
        self._matrix = matrix
        self._sum_type = matrix.info()["sum_type"]
        self._native = native().Solver(matrix._open(), {"solver": solver, "preconditioner": preconditioner,
                                                        **{name: _checked(name, of) for name, of in options.items()}})
        self.results = []

    def refresh(self):
        """Takes the new values of the matrix into the preconditioner. Collective."""
        self._open().refresh()

    def solve(self, b, x0=None):
        """x with A·x = b, begun from x0 or zeros. Collective. ``results`` then has a dict for each column.

        A column converged if its true_residual meets the tolerance, or with the reason "converged_attainable" if it is at most
        ``floor``, which rounding errors allow: 2 ε ‖ |A|·|x| ‖. Then ``backward_error``, ‖b − A·x‖ / ‖ |A|·|x| ‖, is told, too.

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
