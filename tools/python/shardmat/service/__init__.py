"""A client of the service of Shardmat, in Python alone: ``connect``. It also works as a package of its own, without the rest.

>>> import numpy, shardmat                                        # or, installed alone: import shardmat_service as shardmat
>>> A = shardmat.connect("http://127.0.0.1:8980", token_file="state/token").matrix("bar")   # doctest: +SKIP
>>> y = A @ numpy.ones(A.shape[1])                                # doctest: +SKIP
"""

from .calls import Call
from .client import Service, connect
from .errors import (AccessError, BusyError, Error, NotConvergedError, NotFoundError, RefusedError, ServerError, ServiceError,
                     TimedOut, TooLargeError, UnavailableError, UnreachableError)
from .job import Job
from .matrix import Matrix
from .memory import Memory
from .vector import Vector

__all__ = ["AccessError", "BusyError", "Call", "Error", "Job", "Matrix", "Memory", "NotConvergedError", "NotFoundError", "RefusedError",
           "ServerError", "Service", "ServiceError", "TimedOut", "TooLargeError", "UnavailableError", "UnreachableError",
           "Vector", "connect"]
