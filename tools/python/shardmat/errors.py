"""Exceptions of Shardmat, one for each kind of error. They are those of `service`, which also works without this package."""

from .service.errors import (Error, InputError, InternalError, NotConvergedError, RankLostError, ResourcesError,  # noqa: F401
                             UsageError, VerificationError)

_EXCEPTIONS = (InternalError, UsageError, InputError, ResourcesError, RankLostError, VerificationError, NotConvergedError)


def exception_of(status):
    """The exception for a status of the C interface."""
    return _EXCEPTIONS[status - 1] if 1 <= status <= len(_EXCEPTIONS) else InternalError
