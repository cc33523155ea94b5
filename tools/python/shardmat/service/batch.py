"""Batches of many small matrices, multiplied by the service."""

import urllib.parse

from .arrays import as_columns
from .connection import UNSET
from .errors import ServiceError


def _csr(matrix, dtype):
    """(rows, cols, row_ptr, columns, values) of a sparse matrix of SciPy, or of a dense array."""
    import numpy
    import scipy.sparse

    csr = scipy.sparse.csr_matrix(matrix)
    if numpy.iscomplexobj(csr.data):
        raise ValueError("a batch has real matrices")
    return csr.shape[0], csr.shape[1], csr.indptr, csr.indices[:csr.nnz], csr.data[:csr.nnz].astype(dtype)


def _bytes(array):
    """The memory of an array whose rows lie one after another."""
    return memoryview(array).cast("B") if array.size else memoryview(b"")


def multiply_batch(service, matrices, x, *, dtype="float64", alone=False, priority=None, timeout=UNSET):
    import numpy

    dtype = numpy.dtype(dtype)
    type = {"float64": "f64", "float32": "f32"}.get(dtype.name)
    if type is None:
        raise ValueError(f"a batch of the service is of float64 or float32, not {dtype.name}")
    parts = [_csr(matrix, dtype) for matrix in matrices]
    if not parts:
        raise ValueError("there are no matrices to multiply")

    def offsets(lengths):
        return numpy.concatenate([[0], numpy.cumsum(lengths, dtype=numpy.int64)]).astype("<i8")

    first_row, first_col = offsets([part[0] for part in parts]), offsets([part[1] for part in parts])
    first_entry = offsets([len(part[3]) for part in parts])
    is_list = isinstance(x, (list, tuple))
    if is_list:
        if len(x) != len(parts):
            raise ValueError(f"{len(x)} arrays x for {len(parts)} matrices")
        x = numpy.concatenate([as_columns(one, dtype, part[1], "x") for one, part in zip(x, parts)])
    x = numpy.ascontiguousarray(as_columns(x, dtype, int(first_col[-1]), "x"))
    row_ptr = numpy.concatenate([[0], *(part[2][1:] + begin for part, begin in zip(parts, first_entry))]).astype("<i8")
    values = numpy.concatenate([part[4] for part in parts]).astype(dtype.newbyteorder("<"))
    columns = numpy.concatenate([part[3] for part in parts]).astype("<i4")
    query = {"count": len(parts), "rows": int(first_row[-1]), "cols": int(first_col[-1]), "nnz": int(first_entry[-1]),
             "k": 1 if x.ndim == 1 else x.shape[1], "type": type}
    if alone:
        query["alone"] = 1
    if priority is not None:
        query["priority"] = priority
    y = numpy.empty((query["rows"], *x.shape[1:]), dtype)
    view = _bytes(y)
    body = [_bytes(array) for array in (first_row, first_col, row_ptr, values, x, columns)]
    reply = service.request("POST", "/v1/batches?" + urllib.parse.urlencode(query), body, timeout=timeout, repeatable=True,
                            fields={"Content-Type": "application/octet-stream"}, into=view)
    if reply.body is not view:
        raise ServiceError(f"the answer has {reply.body.nbytes} bytes, not {view.nbytes}")
    return [y[begin:end] for begin, end in zip(first_row, first_row[1:])] if is_list else y
