"""A matrix of a service as a LinearOperator of SciPy. Its vectors lie in memory that the ranks share, where that can be."""

import os
import threading

from .arrays import as_columns
from .errors import NotFoundError, TooLargeError, UnreachableError

_WORDS = ("auto", "memory", "bodies")


def as_linear_operator(matrix, vectors="auto"):
    """See Matrix.aslinearoperator."""
    from scipy.sparse.linalg import LinearOperator

    if vectors not in _WORDS:
        raise ValueError(f"vectors is {vectors!r}; it must be one of {', '.join(_WORDS)}")
    products = _bodies(matrix)
    if vectors != "bodies" and (vectors == "memory" or matrix._service.address.path is not None):
        try:
            products, vectors = _InMemory(matrix).functions(), "memory"
        except TooLargeError:
            if vectors == "memory":
                raise
    forward, transposed = products
    operator = LinearOperator(matrix.shape, matvec=forward, rmatvec=transposed, matmat=forward, rmatmat=transposed, dtype=matrix.dtype)
    operator.vectors = "bodies" if vectors == "auto" else vectors
    return operator


def _bodies(matrix):
    return matrix.multiply, lambda x: matrix.multiply(x, transpose=True)


class _InMemory:
    """Products whose x and y lie in memory that the ranks share: a request has its header alone. Any thread."""

    def __init__(self, matrix):
        self._matrix, self._lock, self._process = matrix, threading.Lock(), os.getpid()
        self._most = None  # columns for which there is room, once there was none for more
        self._share(1)

    def _share(self, columns):
        """Shares memory for so many columns."""
        rows, cols = self._matrix.shape
        size = self._matrix.dtype.itemsize * columns
        memory = self._matrix._service.memory(rows * size + cols * size + 64)
        self._x = memory.empty((cols, columns), self._matrix.dtype)
        self._y = memory.empty((rows, columns), self._matrix.dtype)
        self._memory, self._columns = memory, columns

    def functions(self):
        return self.multiply, lambda x: self.multiply(x, transpose=True)

    def multiply(self, x, transpose=False):
        import numpy

        given = as_columns(x, self._matrix.dtype, self._matrix.shape[0 if transpose else 1], "x")
        values = given.reshape((given.shape[0], -1), order="F")
        y = numpy.empty((self._matrix.shape[1 if transpose else 0], values.shape[1]), self._matrix.dtype, order="F")
        if self._process != os.getpid():  # after fork(): a thread of the parent may hold the lock
            self._lock, self._process = threading.Lock(), os.getpid()
        with self._lock:
            self._make_room(values.shape[1])
            for first in range(0, values.shape[1], self._columns):
                part = slice(first, first + self._columns)
                try:
                    self._product(values[:, part], y[:, part], transpose)
                except (UnreachableError, NotFoundError):  # the memory went with its connection, or new ranks do not have it
                    self._share(self._columns)
                    self._product(values[:, part], y[:, part], transpose)
        return y.reshape((y.shape[0], *given.shape[1:]), order="F")

    def _make_room(self, columns):
        if columns > self._columns and self._most is None:
            try:
                return self._share(columns)
            except TooLargeError:
                self._most = self._columns
        if not self._memory.is_shared():
            self._share(self._columns)

    def _product(self, values, result, transpose):
        x, y = (self._y, self._x) if transpose else (self._x, self._y)
        x, y = x[:, :values.shape[1]], y[:, :values.shape[1]]
        x[...] = values
        result[...] = self._matrix.multiply(x, out=y, transpose=transpose)
