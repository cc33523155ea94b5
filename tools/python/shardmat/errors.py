"""Exceptions of Shardmat, one for each kind of error."""


class Error(Exception):
    """Any error of Shardmat: what went wrong, where, and what to do about it."""


class InternalError(Error, RuntimeError):
    """A broken invariant, or an unexpected failure of a library."""


class UsageError(Error, ValueError):
    """A wrong argument or option."""


class InputError(Error, ValueError):
    """An invalid file or matrix."""


class ResourcesError(Error, MemoryError):
    """Memory, a device or a disk is missing or full."""


class RankLostError(Error, RuntimeError):
    """Another rank died or did not answer in time. The context is broken: end the program with ``comm.Abort()``."""


class VerificationError(Error, ArithmeticError):
    """A computed product is wrong."""


class NotConvergedError(Error, ArithmeticError):
    """A solver ended without convergence.

    ``x`` is as far as it came, ``results`` has a dict for each column, as ``Solver.results``.
    """

    def __init__(self, message, x=None, results=None):
        super().__init__(message)
        self.x = x
        self.results = results


_EXCEPTIONS = (InternalError, UsageError, InputError, ResourcesError, RankLostError, VerificationError, NotConvergedError)


def exception_of(status):
    """The exception for a status of the C interface."""
    return _EXCEPTIONS[status - 1] if 1 <= status <= len(_EXCEPTIONS) else InternalError
