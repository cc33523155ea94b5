"""Arrays of the caller as the service takes them: little-endian, columns one after another."""

TYPES = {"f64": "<f8", "f32": "<f4"}


def as_columns(array, dtype, rows, what):
    """An array in host memory as one of NumPy of this type, (rows,) or (rows, k) with its columns one after another.

    Without a copy where it lies so already. Arrays of other libraries come by DLPack.
    """
    import numpy

    if hasattr(array, "__dlpack_device__") and array.__dlpack_device__()[0] not in (1, 3):
        raise TypeError(f"{what} lies on a device; copy it to host memory first: the service takes bytes")
    if hasattr(array, "__dlpack__") and not hasattr(array, "__array__"):
        array = numpy.from_dlpack(array)
    array = numpy.asarray(array)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{what} has type {array.dtype}; it must have real numbers")
    if array.ndim not in (1, 2) or array.shape[0] != rows:
        raise ValueError(f"{what} has shape {array.shape}; it must be ({rows},) or ({rows}, k)")
    if array.ndim == 2 and array.shape[1] == 0:
        raise ValueError(f"{what} has no columns")
    return numpy.asarray(array, dtype=dtype, order="F")


def csr_parts(a):
    """The first line of a sparse matrix as the service takes it, its three arrays, and the name of the type of its values."""
    import numpy
    import scipy.sparse

    a = scipy.sparse.csr_matrix(a) if not scipy.sparse.issparse(a) else a.tocsr()
    if a.ndim != 2:
        raise ValueError(f"the matrix has shape {a.shape}; it must have rows and columns")
    if a.dtype.kind not in "biuf":
        raise ValueError(f"the matrix has type {a.dtype}; it must have real numbers")
    if not a.has_canonical_format:
        a = a.copy()
        a.sum_duplicates()
    values = numpy.ascontiguousarray(a.data, dtype="<f4" if a.dtype == numpy.float32 else "<f8")
    word = {4: "i32", 8: "i64"}
    offsets, columns = (numpy.ascontiguousarray(array, dtype=f"<i{array.dtype.itemsize}") for array in (a.indptr, a.indices))
    line = (f"%%Shardmat CSR rows={a.shape[0]} cols={a.shape[1]} nonzeros={a.indptr[-1]} offsets={word[offsets.itemsize]} "
            f"columns={word[columns.itemsize]} values=f{8 * values.itemsize}")
    line += " " * (-(len(line) + 1) % 64) + "\n"
    nnz = int(a.indptr[-1])
    return line.encode(), [memoryview(array).cast("B") for array in (offsets, columns[:nnz], values[:nnz]) if array.size], values.dtype.name


def as_bytes(array):
    """The memory of an array whose columns lie one after another."""
    return memoryview(array.T).cast("B")


def is_plain(array, dtype):
    """Whether an array can get bytes as they come."""
    return array.dtype == dtype and array.flags.f_contiguous and array.flags.writeable
