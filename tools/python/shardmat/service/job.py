"""Solves, and other jobs, that a service works on while the program does something else."""

import asyncio
import concurrent.futures
import contextlib
import json
import threading
import time

from .arrays import TYPES
from .connection import UNSET, Deadline
from .errors import NotConvergedError, NotFoundError, ServiceError, problem_of

_ENDED = ("done", "failed", "cancelled")
_UNFINISHED = ("not_converged", "time_limit")  # failed, with an x that is as far as it came


def _pauses():
    """Seconds between looks at a job: short ones for short solves."""
    pause = 0.002
    while True:
        yield pause
        pause = min(1.5 * pause, 0.25)


class Job:
    """A job of the service, a solve for example, as a future of concurrent.futures, and to be awaited.

    ``result()`` fetches x, and then the service forgets the job; with keep=True it stays, and ``x`` is a vector there.
    Of a job that finds eigenvalues, the result is (values, vectors), and x has a vector in each column.
    """

    def __init__(self, service, info, keep=False, choose=None, with_vectors=True):
        """Of eigenvalues: `choose` returns the places of the wanted ones; without `with_vectors` the values are the result."""
        self._service, self._keep = service, keep
        self._choose, self._with_vectors = choose, with_vectors
        self.id = info["id"]
        self._path = "/v1/jobs/" + self.id
        self._lock = threading.Lock()
        self._outcome = None  # (x, exception) once it was fetched
        self._info = info

    # ---- how far it is ----

    def info(self, timeout=UNSET):
        """What the service says of the job now, as a dict; its last words once it has forgotten the job."""
        deadline = self._service.deadline(timeout)
        with deadline.holding(self._lock):
            if self._outcome is None:
                self._info = self._service.get_json(self._path, timeout=deadline)
            return self._info

    @property
    def state(self):
        """"queued", "running", "done", "failed" or "cancelled"."""
        return self.info()["state"]

    @property
    def iteration(self):
        return self.info()["iteration"]

    @property
    def residual(self):
        """Its norm at this iteration, the largest of all columns; None before the first one."""
        return self.info().get("residual")

    @property
    def history(self):
        """(iteration, residual) from the first to the present one; of long solves every second one, every fourth …"""
        return [tuple(pair) for pair in self.info().get("history", [])]

    @property
    def results(self):
        """At the end, a dict for each column."""
        return self.info().get("result", [])

    @property
    def x(self):
        """x of a job that was kept, as a vector that stays on the ranks."""
        info = self.info()
        if "x" not in info:
            raise NotFoundError(f"{self.id} is {info['state']}: it has no x")
        return self._service.vector(info["x"])

    # ---- as a future ----

    def done(self):
        """Whether it has ended, in whatever way."""
        return self._has_ended() or self.state in _ENDED

    def running(self):
        return not self._has_ended() and self.state == "running"

    def cancelled(self):
        return self.state == "cancelled"

    def cancel(self, timeout=UNSET):
        """Ends the job between two iterations. Returns whether it was cancelled: False if it had ended before."""
        deadline = self._service.deadline(timeout)
        if self._has_ended() or self.info(deadline)["state"] in _ENDED:
            return self._info["state"] == "cancelled"
        reply = self._service.request("DELETE", self._path, repeatable=False, timeout=deadline)  # returns once it has ended
        with deadline.holding(self._lock):
            if reply.status == 204:  # it ended meanwhile, and the service has forgotten it
                self._info = {**self._info, "state": "cancelled"}
                self._outcome = self._fetch_outcome(deadline)
            else:
                self._info = json.loads(bytes(reply.body))
            return self._info["state"] == "cancelled"

    def result(self, timeout=None):
        """x, as soon as the job has ended.

        Raises NotConvergedError, which has the last x and results, ServiceError for another failure, CancelledError, and
        TimedOut after `timeout` seconds, which leaves the job as it is.
        """
        x, error = self._fetch(timeout)
        if error is not None:
            raise error
        return x

    def exception(self, timeout=None):
        """Why the job failed, or None. Raises CancelledError and TimedOut as result() does."""
        _, error = self._fetch(timeout)
        if isinstance(error, concurrent.futures.CancelledError):
            raise error
        return error

    def add_done_callback(self, function):
        """Calls function(job) in another thread once the job has ended, or cannot be asked for any more."""
        def wait():
            try:
                self._fetch(None)
            finally:
                function(self)

        threading.Thread(target=wait, name=f"callback of {self.id}", daemon=True).start()

    def __await__(self):
        return self._await().__await__()

    async def _await(self):
        loop = asyncio.get_running_loop()
        try:
            for pause in _pauses():
                if await loop.run_in_executor(None, self.done):
                    return await loop.run_in_executor(None, self.result)
                await asyncio.sleep(pause)
        except asyncio.CancelledError:  # as awaiting a future does
            await loop.run_in_executor(None, self.cancel)
            raise

    def _has_ended(self):
        return self._outcome is not None

    def _fetch(self, timeout):
        """(x, exception), after the end. `timeout`: seconds of all requests together, None, or a Deadline."""
        deadline = timeout if isinstance(timeout, Deadline) else Deadline(timeout)
        for pause in _pauses():
            if self._has_ended() or self.info(deadline)["state"] in _ENDED:
                break
            left = deadline.left()
            time.sleep(pause if left is None else min(pause, left))
        with deadline.holding(self._lock):
            if self._outcome is None:
                self._outcome = self._fetch_outcome(deadline)
                if not self._keep:
                    with contextlib.suppress(ServiceError):  # x is here, whatever the service says now; it forgets old jobs by itself
                        self._forget(deadline)
            return self._outcome

    def _fetch_outcome(self, deadline):
        info = self._info
        if info["state"] == "cancelled":
            return None, concurrent.futures.CancelledError(f"{self.id} was cancelled")
        if info["state"] != "done" and info.get("code") not in _UNFINISHED:
            return None, problem_of(409, {}, _as_problem(info))
        is_of_pairs = info.get("kind") == "eigen"
        has_x = (info["state"] == "done" or "x" in info) and (self._with_vectors or not is_of_pairs)
        x, results = self._read_x(info, deadline) if has_x else None, info.get("result", [])
        values = None
        if is_of_pairs:
            x, results = self._chosen(x, results)
            values = _values_of(results)
        if info["state"] != "done":
            return x, NotConvergedError(info["reason"], x, results)
        if not is_of_pairs:
            return x, None
        return (values, x) if self._with_vectors else values, None

    def _chosen(self, x, pairs):
        """Those of the eigenvectors and of what the service says of each that are wanted."""
        if x is not None and x.ndim == 1:
            x = x.reshape((-1, 1))
        kept = self._choose(_values_of(pairs)) if self._choose is not None and pairs else None
        return (x, pairs) if kept is None else (None if x is None else x[:, kept], [pairs[place] for place in kept])

    def _read_x(self, info, deadline):
        import numpy

        dtype = numpy.dtype(TYPES[info["type"]])
        reply = self._service.request("GET", self._path + "/x", timeout=deadline)
        values = numpy.frombuffer(reply.body, dtype)
        columns = info["columns"]
        return values if columns == 1 else values.reshape((-1, columns), order="F")

    def _forget(self, deadline):
        try:
            self._service.request("DELETE", self._path, timeout=deadline)
        except NotFoundError:
            pass  # the 64 jobs that ended last are kept, without being asked

    def delete(self, timeout=UNSET):
        """Cancels the job if it has not ended; the service forgets it, and its x."""
        deadline = self._service.deadline(timeout)
        self.cancel(deadline)
        with deadline.holding(self._lock):
            if self._outcome is None or self._keep:
                self._forget(deadline)
            self._outcome = self._outcome or (None, NotFoundError(f"{self.id} was deleted"))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.delete()

    def __repr__(self):
        return f"<shardmat.service.Job {self.id} of {self._info.get('matrix')}: {self._info['state']}>"


def _values_of(pairs):
    import numpy

    return numpy.array([numpy.nan if pair.get("value") is None else pair["value"] for pair in pairs], dtype=float)


def _as_problem(info):
    return json.dumps({"error": info.get("reason", "the solve failed"), "code": info.get("code", "failed")}).encode()
