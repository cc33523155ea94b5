"""Where matrices live: the ranks, the device of this rank, its host threads."""

import threading

from .handle import Handle

_default = None
_lock = threading.Lock()


def native():
    """The native module. Loaded here and only here, so that ``import shardmat`` loads no library."""
    from . import _shardmat

    return _shardmat


class Context(Handle):
    """The ranks of a communicator of mpi4py, or this process alone.

    backend: "auto", "host" or "cuda". threads: host threads of each rank; 0: its share of the cores. timeout: the longest
    wait for other ranks, in seconds. Collective with a communicator, as is everything that works with its matrices: all
    ranks call it in the same order.

    With more ranks than GPUs, one rank for each GPU owns it; the others, its feeders, hand their rows and vectors to it.
    Their arrays lie in host memory or on the owner's GPU. feeders=False refuses that. owners: on the host, ranks of each host
    that own rows; 0: all.
    """

    def __init__(self, comm=None, *, backend="auto", threads=0, timeout=60.0, owners=0, feeders=True):
        handle = None if comm is None else comm.py2f()
        self._native = native().Context(backend, threads, timeout, handle, owners, feeders)
        self._comm = comm

    @property
    def comm(self):
        """The communicator that was given, or None."""
        return self._comm

    def info(self):
        """Rank, ranks, backend, device and threads, and whether this rank is a feeder, as a dict."""
        return self._open().info()

    def __repr__(self):
        if self._native is None:
            return "<shardmat.Context: closed>"
        info = self.info()
        return f"<shardmat.Context: rank {info['rank']} of {info['ranks']} on {info['name']}, {info['threads']} threads>"


def context_for(context, comm):
    """The context that a matrix was asked to live in."""
    global _default
    if context is not None and comm is not None:
        raise ValueError("give context or comm, not both")
    if context is not None:
        return context
    if comm is not None:
        return Context(comm)
    with _lock:
        if _default is None:
            _default = Context()
        return _default


def empty(shape, dtype="float64", *, context=None):
    """An array on the context's device, for ``out`` and x of products. Other libraries take it by ``from_dlpack``.

    dtype: float64, float32 or float16. Its memory goes with the last array that shares it.
    """
    import numpy

    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return native().Array(context_for(context, None)._open(), list(shape), numpy.dtype(dtype))
