"""Exceptions of Shardmat, one for each kind of error, and those of the service, which also say what the server answered."""


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


class ServiceError(Error):
    """The service refused a request, or did not answer.

    status: of HTTP; None if there was no answer. code: a word for programs. request_id: what the server's log calls the
    request. retry_after: seconds, where trying again helps; else None. rank: that was lost, else None. details: all that the
    server said, as a dict. fields: of the answer's header, with names in lower case.
    """

    def __init__(self, message, status=None, details=None, retry_after=None, fields=None):
        super().__init__(message)
        self.status = status
        self.details = details or {}
        self.fields = fields or {}
        self.code = self.details.get("code")
        self.request_id = self.details.get("request_id")
        self.rank = self.details.get("rank")
        self.retry_after = retry_after

    def __str__(self):
        known = [word for word in (self.status, self.code, self.request_id and f"request {self.request_id}") if word]
        return super().__str__() + (f" ({', '.join(map(str, known))})" if known else "")


class RefusedError(ServiceError, InputError):
    """The request is wrong, or does not fit what the server has now."""


class AccessError(ServiceError, PermissionError):
    """There is no token, a wrong one, or one that may not do this."""


class NotFoundError(ServiceError, LookupError):
    """There is no such matrix, vector, job or path; or there was one, and it is lost."""


class BusyError(ServiceError, ResourcesError):
    """Too many requests wait, or the token has used up its quota. Trying again helps."""


class TooLargeError(ServiceError, ResourcesError):
    """The memory of the ranks, of the server or of the token does not suffice."""


class UnavailableError(ServiceError, RankLostError):
    """The service starts, ends, or starts its ranks again after one was lost."""


class ServerError(ServiceError, InternalError):
    """The server failed where it must not."""


class TimedOut(ServiceError, TimeoutError):
    """The time that the caller gave is over. The server drops what it did for the request."""


class UnreachableError(ServiceError, ConnectionError):
    """No service listens there, it does not prove who it is, or it ended before it answered.

    was_sent: whether the request may have reached it.
    """

    was_sent = False


_KINDS = {401: AccessError, 403: AccessError, 404: NotFoundError, 410: NotFoundError, 413: TooLargeError, 429: BusyError,
          500: ServerError, 503: UnavailableError, 504: TimedOut, 507: TooLargeError}


def problem_of(status, fields, body):
    """The exception for an answer that is an error."""
    import json

    try:
        details = json.loads(bytes(body))
        message = details["error"]
    except (ValueError, TypeError, KeyError):
        details, message = {}, f"the server answered {status}: {bytes(body[:200]).decode(errors='replace').strip()}"
    wait = details.get("retry_after_ms")
    if wait is not None:
        wait = float(wait) / 1000
    elif fields.get("retry-after", "").isdigit():
        wait = float(fields["retry-after"])
    return _KINDS.get(status, RefusedError)(message, status, details, wait, fields)
