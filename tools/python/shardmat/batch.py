"""Batches of many small matrices, all multiplied in one launch."""

from .arrays import csr_of, on_gpu, real, values_of
from .context import context_for, native


class Batch:
    """Many small sparse matrices that stay on the device; X and Y are stacked, the rows for one matrix after those for another.

    Made by ``Batch.from_scipy``. Works on this rank alone.
    """

    def __init__(self, arrays, context):
        self._arrays = arrays
        self._context = context
        self._products = {}

    @classmethod
    def from_scipy(cls, matrices, *, dtype=None, context=None):
        """Sparse matrices of SciPy with any shapes. dtype: float32, float64 or float16; None: that of the first, if it is one."""
        import numpy

        csrs = [csr_of(matrix) for matrix in matrices]
        if dtype is None:
            dtype = csrs[0].dtype if csrs and csrs[0].dtype in (numpy.float32, numpy.float64) else numpy.float64

        def offsets(lengths):
            return numpy.concatenate([[0], numpy.cumsum(lengths, dtype=numpy.int64)]).astype(numpy.int64)

        def joined(parts, of):
            return numpy.concatenate([numpy.empty(0, of), *parts]).astype(of)

        first_row = offsets([csr.shape[0] for csr in csrs])
        first_col = offsets([csr.shape[1] for csr in csrs])
        first_entry = offsets([csr.nnz for csr in csrs])
        if first_entry[-1] >= 2**31 - 4096:
            raise ValueError(f"{first_entry[-1]} entries are too many for one batch; make several")
        row_ptr = joined([csr.indptr[:-1] + begin for csr, begin in zip(csrs, first_entry)] + [first_entry[-1:]], numpy.int32)
        columns = joined([csr.indices[:csr.nnz] for csr in csrs], numpy.int32)
        with numpy.errstate(over="ignore"):
            values = joined([values_of(csr.data[:csr.nnz]) for csr in csrs], numpy.dtype(dtype))
        if not numpy.isfinite(values).all():
            raise ValueError(f"a value is not finite, or too large for {values.dtype}")
        return cls((first_row, first_col, first_entry, row_ptr, columns, values), context_for(context, None))

    def __len__(self):
        return len(self._arrays[0]) - 1

    @property
    def shape(self):
        """Rows of the stacked Y and of the stacked X."""
        return int(self._arrays[0][-1]), int(self._arrays[1][-1])

    @property
    def nnz(self):
        return int(self._arrays[2][-1])

    @property
    def dtype(self):
        return self._arrays[5].dtype

    def product(self, columns=1, *, kernel=None):
        """The native product for a number of columns, which is kept."""
        self._require_open()
        key = columns, kernel
        if key not in self._products:
            self._products[key] = native().Batch(self._context._open(), *self._arrays, columns, kernel)
        return self._products[key]

    def multiply(self, x, out=None, *, alpha=1.0, beta=0.0, kernel=None, stream=None):
        """Returns out = alpha·A·x + beta·out, matrix by matrix. Arrays and stream: as of ``Product.multiply``."""
        import numpy

        self._require_open()
        if out is None:
            if beta != 0:
                raise ValueError("beta needs the out that it is for")
            if on_gpu(x):
                raise ValueError("x is on a GPU; give out, too, for example an empty array like it")
            x = numpy.ascontiguousarray(real(x, "x"), dtype=self.dtype)
            sums = numpy.float64 if self.dtype == numpy.float64 else numpy.float32
            out = numpy.empty((self.shape[0],) + x.shape[1:], sums)
        columns = 1 if len(x.shape) == 1 else x.shape[1]
        self.product(columns, kernel=kernel).multiply(x, out, alpha, beta, stream)
        return out

    def __matmul__(self, x):
        """``batch @ X`` of a stacked X; or of a list with an X for each matrix, which gives a list of the Y."""
        if not isinstance(x, (list, tuple)):
            return self.multiply(x)
        import numpy

        self._require_open()
        if len(x) != len(self):
            raise ValueError(f"{len(x)} arrays for a batch of {len(self)} matrices")
        sizes = numpy.diff(self._arrays[1])
        for i, (part, size) in enumerate(zip(x, sizes)):
            if len(part) != size:
                raise ValueError(f"the X of matrix {i} has {len(part)} rows; it must have {size}")
        return numpy.split(self.multiply(numpy.concatenate(x)), self._arrays[0][1:-1])

    def info(self):
        """Sizes, type, and the kernels of the products made so far, as a dict."""
        return {"matrices": len(self), "shape": self.shape, "nnz": self.nnz, "type": self.dtype.name,
                "kernels": {columns: product.kernel() for (columns, _), product in self._products.items()}}

    def close(self):
        """Lets go of the memory."""
        self._products = self._arrays = None

    def _require_open(self):
        if self._arrays is None:
            raise ValueError("the batch is closed")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        if self._arrays is None:
            return "<shardmat.Batch: closed>"
        return f"<shardmat.Batch: {len(self)} matrices, {self.nnz} entries of {self.dtype.name}>"
