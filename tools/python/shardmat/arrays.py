"""Matrices and arrays of the caller, as the library takes them."""

import sys

_TYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}


def type_name(dtype):
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


def values_of(array):
    """Values as a contiguous array of f64 or f32."""
    import numpy

    array = real(array, "an array of values")
    return numpy.ascontiguousarray(array, dtype=numpy.float32 if array.dtype == numpy.float32 else numpy.float64)


def indices_of(array):
    """Whole numbers as a contiguous array."""
    import numpy

    array = as_numpy(array)
    if array.dtype.kind not in "iu" and array.size > 0:
        raise ValueError(f"an array of row or column numbers has type {array.dtype}; it must have whole numbers")
    return numpy.ascontiguousarray(array, dtype=numpy.int64)


def csr_of(matrix):
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
        matrix = with_values(matrix, numpy.float64)
    csr = matrix.tocsr()
    indptr, stored = csr.indptr, min(len(csr.indices), len(csr.data))
    if len(indptr) != csr.shape[0] + 1 or indptr[0] != 0 or indptr[-1] > stored or (numpy.diff(indptr) < 0).any():
        raise ValueError(f"indptr of the matrix must ascend from 0 to at most {stored}, the number of its indices and values")
    if csr.nnz > 0 and not 0 <= csr.indices[:csr.nnz].min() <= csr.indices[:csr.nnz].max() < csr.shape[1]:
        raise ValueError(f"column numbers of the matrix must be 0 … {csr.shape[1] - 1}")
    if not csr.has_canonical_format:
        ordered = csr.sorted_indices()
        if not ordered.has_canonical_format:
            csr = with_values(ordered, numpy.float64)
            csr.sum_duplicates()
    with numpy.errstate(over="ignore"):  # the library refuses infinity
        return csr.astype(numpy.float32) if given == numpy.float32 and csr.dtype != given else csr


def with_values(matrix, dtype):
    """The matrix with values of another type. In place of its astype(), which first sums entries of the same place in the old
    type, and in the caller's matrix.
    """
    if matrix.format in ("csr", "csc", "bsr"):
        arrays = matrix.data.astype(dtype), matrix.indices, matrix.indptr
        return type(matrix)(arrays, shape=matrix.shape)
    if matrix.format == "coo":
        return type(matrix)((matrix.data.astype(dtype), (matrix.row, matrix.col)), shape=matrix.shape)
    return matrix.astype(dtype)


def places_of_duplicates(matrix, csr):
    """Which entry of ``csr``, as csr_of() made it, each stored entry of the matrix belongs to; None if each has its own."""
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


def csr_arrays(csr):
    """Where rows begin, column numbers and values, as the library takes them."""
    return indices_of(csr.indptr), indices_of(csr.indices[:csr.nnz]), values_of(csr.data[:csr.nnz])
