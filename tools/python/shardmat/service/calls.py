"""Calls of this client that other threads make: futures of concurrent.futures, and to be awaited."""

import asyncio
import collections
import concurrent.futures
import os
import threading

_MOST_THREADS = 32


class Call(concurrent.futures.Future):
    """A call that another thread makes, a product for example. ``await call`` gives its result, and so does ``call.result()``.

    cancel() ends it, also while it runs: its connection is closed, and the service drops a product or a solve.
    """

    def __init__(self, breaker):
        super().__init__()
        self._breaker, self._ends, self._has_ended = breaker, threading.Lock(), False

    def cancel(self):
        if super().cancel():
            return True
        with self._ends:
            if not self._has_ended:
                self._breaker.end()
        return self._breaker.is_over

    def cancelled(self):
        return super().cancelled() or (self.done() and self._breaker.is_over)

    def __await__(self):
        return asyncio.wrap_future(self).__await__()

    def carry_out(self, function):
        """Calls function(), unless the call was cancelled."""
        if not self.set_running_or_notify_cancel():
            return
        try:
            answer, error = function(), None
        except BaseException as problem:
            answer, error = None, problem
        with self._ends:
            self._has_ended = True
        if self._breaker.is_over:
            self.set_exception(concurrent.futures.CancelledError())
        elif error is not None:
            self.set_exception(error)
        else:
            self.set_result(answer)


class Threads:
    """Makes calls, 32 at a time, in threads that end when there are none. They do not keep the program alive."""

    def __init__(self):
        self._begin()

    def _begin(self):
        self._lock, self._waiting, self._running, self._process = threading.Lock(), collections.deque(), 0, os.getpid()

    def call(self, breaker, function):
        """A Call of function(), whose requests the breaker ends."""
        if self._process != os.getpid():  # after fork(): those threads are the parent's
            self._begin()
        call = Call(breaker)
        with self._lock:
            self._waiting.append((call, function))
            begins = self._running < _MOST_THREADS
            self._running += begins
        if begins:
            threading.Thread(target=self._work, name="shardmat-calls", daemon=True).start()
        return call

    def _work(self):
        while True:
            with self._lock:
                if not self._waiting:
                    self._running -= 1
                    return
                call, function = self._waiting.popleft()
            call.carry_out(function)
            del call, function
