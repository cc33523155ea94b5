"""Memory that a program on the server's host shares with the ranks, so that vectors are not copied through a socket."""

import json
import mmap
import operator
import os
import threading

from .errors import UnreachableError


class Memory:
    """Arrays of ``empty`` lie in it: as x and out of products of the service they are not copied.

    It belongs to a connection, and is no longer shared when this connection ends: with close(), or when a product of it
    times out or is cancelled. Its arrays stay valid. One product of it is asked for at a time.
    """

    def __init__(self, service, bytes):
        if service.address.path is None:
            raise ValueError("memory is shared with a service on the same host, over its Unix socket; connect to its path")
        self._service = service
        self._lock, self._process = threading.Lock(), os.getpid()
        self._connection = None
        self._used = 0
        try:
            service.request("POST", f"/v1/memory?bytes={operator.index(bytes)}", through=self._open)
        except BaseException:
            self.close()
            raise
        descriptor = self._connection.descriptor
        try:
            self._map = mmap.mmap(descriptor, 0)
        finally:
            os.close(descriptor)
        self.nbytes = len(self._map)
        self._first = self._array(0, (self.nbytes,), "u1").__array_interface__["data"][0]

    def _open(self, method, target, fields, body, deadline, into):
        self.close()
        self._connection = self._service._connections.connect(deadline)
        reply = self._connection.request(method, target, fields, body, deadline, with_descriptor=True)
        if reply.status == 201 and self._connection.descriptor is None:
            raise UnreachableError(f"no memory came with the answer {json.loads(bytes(reply.body))}")
        return reply

    def _array(self, at, shape, dtype):
        import numpy

        return numpy.ndarray(shape, dtype, self._map, at, order="F")

    def empty(self, shape, dtype="float64"):
        """An array in this memory, in Fortran order. Raises MemoryError when no more fits."""
        import math

        import numpy

        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        dtype = numpy.dtype(dtype)
        at = -(-self._used // 64) * 64
        size = math.prod(shape) * dtype.itemsize
        if at + size > self.nbytes:
            raise MemoryError(f"an array of {size} bytes does not fit: {at} of {self.nbytes} bytes of this memory are taken")
        self._used = at + size
        return self._array(at, shape, dtype)

    def is_shared(self):
        """Whether the ranks have it. Not in a child of this process, whose requests would meet those of its parent."""
        return self._connection is not None and self._connection.is_open() and self._process == os.getpid()

    def place_of(self, array):
        """Where an array lies in this memory, in bytes; None if it does not, or is not shared any more."""
        if not self.is_shared():
            return None
        at = array.__array_interface__["data"][0] - self._first
        return at if 0 <= at and at + array.nbytes <= self.nbytes else None

    def request(self, method, target, fields, body, deadline, into):
        """A request over the connection that has this memory."""
        with deadline.holding(self._lock):
            if not self.is_shared():
                raise UnreachableError("this memory is not shared any more: its connection was closed")
            return self._connection.request(method, target, fields, body, deadline, into)

    def close(self):
        """Ends the sharing. Arrays stay valid."""
        if self._connection is not None:
            self._connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        return f"<shardmat.service.Memory: {self.nbytes} bytes, {self._used} taken>"
