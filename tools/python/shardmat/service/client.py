"""A service and what it can be asked: its matrices, vectors, jobs, state."""

import collections
import json
import os
import random
import secrets
import threading
import time
import urllib.parse
import weakref

from .address import address_of
from .arrays import csr_parts
from .batch import multiply_batch
from .calls import Threads
from .connection import UNSET, Breaker, Connections, Deadline
from .errors import AccessError, BusyError, NotFoundError, RefusedError, ServiceError, UnavailableError, UnreachableError, problem_of
from .job import Job
from .library import with_coordinates
from .matrix import Matrix
from .memory import Memory
from .vector import Vector, vector_of

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 30.0  # seconds until a request is sent again
_NOT_BEGUN = ("restarting", "starting", "too_many_connections", "too_many_pages")  # codes of 503 for requests of which nothing was done
_LAST_SECONDS = 2.0  # for what close() still asks for, and to take back what failed


def connect(where=None, *, token=None, token_file=None, timeout=None, ca=None, retries=5):
    """The service that listens at a URL ("https://lab:8980"), at a Unix socket, or for a state folder of ``shardmat serve``.

    where: None: what SHARDMAT_REMOTE says (with SHARDMAT_REMOTE_TOKEN_FILE and SHARDMAT_REMOTE_CA), else the socket in the
    state folder of this user. token: that the server asks for at a URL; token_file: a file with it in its first line.
    timeout: the longest time of each request in seconds, from the first connection to the last byte, its retries included;
    None: no limit. ca: a PEM file with the certificates that are trusted (None: those of this system), or an ssl.SSLContext.
    retries: how often a request is sent again.

    A request that the server refuses before it has begun (429; 503 while the service or its ranks start) is sent again after the
    time that the server says (Retry-After), at most 30 s. If the server may have begun it, or the connection was lost, only one
    that changes nothing, or may come twice, is sent again. Products, solves, eigenvalues and PageRank may, unless their
    result is added to what the service keeps, or lies in shared memory; what makes a job that goes on by itself may not.

    Connects with the first request. Any thread may use a service and all that it gives.
    """
    if where is None and os.environ.get("SHARDMAT_REMOTE"):
        if token is None:
            token_file = token_file or os.environ.get("SHARDMAT_REMOTE_TOKEN_FILE") or None
        ca = ca or os.environ.get("SHARDMAT_REMOTE_CA") or None
    return Service(where, token=token, token_file=token_file, timeout=timeout, ca=ca, retries=retries)


def _tls_of(ca):
    import ssl

    return ca if isinstance(ca, ssl.SSLContext) else ssl.create_default_context(cafile=ca)


def _first_line(file):
    with open(file, encoding="ascii") as lines:
        return lines.readline().strip()


class Service:
    """A service, as ``connect`` makes it."""

    def __init__(self, where=None, *, token=None, token_file=None, timeout=None, ca=None, retries=5):
        if token is not None and token_file is not None:
            raise ValueError("token and token_file are two words for one thing; give one of them")
        self.address = address_of(where)
        if token_file is not None:
            token = _first_line(token_file)
        if token is not None and not (token.isascii() and token.isprintable() and token and " " not in token):
            raise ValueError("this is no token: it must have printable characters of ASCII alone, without spaces")
        if ca is not None and not self.address.tls:
            raise ValueError(f"ca is of no use for {self.address}, which has no TLS")
        Deadline(timeout)
        self.timeout, self.retries = timeout, retries
        self._fields = {"Authorization": f"Bearer {token}"} if token is not None and self.address.path is None else {}
        self._connections = Connections(self.address, _tls_of(ca) if self.address.tls else None)
        self._memories, self._lock = weakref.WeakSet(), threading.Lock()
        self._threads = Threads()
        self._dropped = collections.deque()  # paths of vectors whose objects are gone

    # ---- requests ----

    def deadline(self, timeout=UNSET):
        """The limit of a request, or of several together, that gets this timeout: seconds, None, a Deadline, or UNSET."""
        if isinstance(timeout, Deadline):
            return timeout.within(self.timeout)
        return Deadline(self.timeout if timeout is UNSET else timeout)

    def request(self, method, target, body=(), *, fields=None, repeatable=None, timeout=UNSET, into=None, through=None):
        """The reply to a request, as (status, fields, body); raises ServiceError for an error.

        body: bytes, or objects with their memory, one after another. repeatable: whether it may come twice; None: if it is a
        GET, PUT or DELETE. into: a memoryview that gets a body of its size. through: a function (deadline) that sends the request.
        """
        deadline = self.deadline(timeout)
        repeatable = method in ("GET", "PUT", "DELETE") if repeatable is None else repeatable
        body = (body,) if isinstance(body, (bytes, bytearray, memoryview)) else body
        fields = {**self._fields, **(fields or {})}
        pause = _FIRST_PAUSE
        for attempt in range(self.retries + 1):
            try:
                reply = (self._once if through is None else through)(method, target, fields, body, deadline, into)
                if reply.status < 400:
                    return reply
                problem = problem_of(*reply)
            except UnreachableError as error:
                problem = error
            wait = self._pause_before(problem, pause, repeatable)
            if wait is None or attempt == self.retries or not deadline.allows(wait):
                raise problem
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _pause_before(self, problem, pause, repeatable):
        """Seconds until a request that failed is sent again; None: never."""
        wait = problem.retry_after if problem.retry_after is not None else pause
        wait *= 1 + 0.1 * random.random()  # not all clients at once
        if "shardmat-job" in problem.fields:
            return None  # the job tells more: it began a second time by itself, or it has ended
        if isinstance(problem, BusyError) or problem.code in _NOT_BEGUN:  # was refused before anything was done
            return wait if wait <= _LONGEST_PAUSE else None
        if isinstance(problem, UnavailableError):
            return wait if repeatable and problem.code != "draining" and wait <= _LONGEST_PAUSE else None
        if isinstance(problem, UnreachableError) and problem.was_sent and repeatable:
            return wait
        return None

    def _once(self, method, target, fields, body, deadline, into):
        connection = self._connections.borrow(deadline)
        try:
            reply = connection.request(method, target, fields, body, deadline, into)
        except UnreachableError as error:
            error.was_sent = True
            raise
        self._connections.give_back(connection)
        return reply

    def call(self, function, *arguments, timeout=UNSET, **options):
        """A Call of a function of this client, whose requests another thread makes. The timeout counts from now on."""
        deadline = self.deadline(timeout)
        deadline.breaker = Breaker()
        return self._threads.call(deadline.breaker, lambda: function(*arguments, timeout=deadline, **options))

    def get_json(self, target, **options):
        return json.loads(bytes(self.request("GET", target, **options).body))

    def post_json(self, target, value=None, **options):
        body = b"" if value is None else json.dumps(value).encode()
        reply = self.request("POST", target, body, fields={"Content-Type": "application/json"}, **options)
        return json.loads(bytes(reply.body))

    # ---- state ----

    def ready(self, timeout=UNSET):
        """Whether products are taken now. Raises UnreachableError if nobody listens."""
        deadline = self.deadline(timeout)
        return self._once("GET", "/v2/health/ready", self._fields, (), deadline, None).status == 200

    def status(self):
        """State, ranks, restarts and memory of the service, as a dict."""
        return self.get_json("/v1/ranks")

    def metrics(self):
        """Figures in Prometheus text."""
        return bytes(self.request("GET", "/metrics").body).decode()

    def events(self):
        """What happens from now on: an iterator over (event, dict) that ends with the service. Close it to end it before."""
        deadline = Deadline(self.timeout)
        connection = self._connections.connect(deadline)
        status, fields, body, lines = connection.stream("/v1/events", self._fields, deadline)
        if status != 200:
            connection.close()
            raise problem_of(status, fields, body)
        return _events(lines)

    # ---- matrices ----

    def matrices(self):
        """A dict for each matrix: name, state, sizes."""
        return self.get_json("/v1/matrices")["matrices"]

    def matrix(self, name):
        """A matrix that the service has. Raises NotFoundError, or RefusedError if it is not loaded."""
        return Matrix(self, self.get_json(_matrix_path(name)))

    def load(self, name, source, *, type="f64", timeout=UNSET, **options):
        """Loads a matrix file of the server's library, waits until it is there, and returns the matrix.

        source: path of the file in the library; or a sparse matrix of SciPy, as for ``matrix_from``.

        Options: solvable (for solve), updatable (for update_values), pinned: True; kernel, exchange, sort: names. coordinates
        (with solvable): where the nodes are, for multigrid with rigid-body modes: the path of a file in the library, or an array
        with a row of 2 or 3 numbers for each node, which is sent there.
        A matrix that is loaded from this source in the same way is returned as it is.
        """
        if not isinstance(source, (str, os.PathLike)):
            return self.matrix_from(source, name, type=type, timeout=timeout, **options)
        source = os.fspath(source)
        deadline = self.deadline(timeout)
        wanted = {"source": source, "type": type, **with_coordinates(self, options, deadline)}
        while True:
            try:
                return Matrix(self, self.post_json(_matrix_path(name) + "/load?wait=1", wanted, timeout=deadline))
            except RefusedError as error:
                if error.code == "loaded":
                    break
                if error.code != "loading":
                    raise
            time.sleep(_FIRST_PAUSE)  # another client loads it, or the ranks were started again
        matrix = Matrix(self, self.get_json(_matrix_path(name), timeout=deadline))
        if options.get("pinned"):
            matrix.pin(timeout=deadline)
        return matrix

    def load_async(self, name, source, **options):
        """A Call that loads a matrix, as ``load``: ``A = await service.load_async(name, source)``."""
        return self.call(self.load, name, source, **options)

    def matrix_from_async(self, a, name=None, **options):
        """A Call that sends a matrix, as ``matrix_from``. Its arrays must stay as they are until it has ended."""
        return self.call(self.matrix_from, a, name, **options)

    def matrix_from(self, a, name=None, *, type=None, timeout=UNSET, **options):
        """Sends the arrays of a sparse matrix, waits until the ranks have loaded it, and returns the matrix.

        a: a matrix or array of scipy.sparse, or a dense array. name: in the service; a matrix of this name is replaced. None:
        a new name. type: "f64" or "f32" of the products; None: that of the values, if it is one of these. Options as for
        ``load``. The service keeps the arrays on its disk until the matrix is unloaded: it has them after a restart, too. It
        must take files (--upload-limit), and a token needs the scopes admin and library. A matrix with a new name is unloaded if
        its answer does not come in time, or never.
        """
        line, parts, dtype = csr_parts(a)
        is_new = name is None
        name = f"arrays-{secrets.token_hex(6)}" if is_new else name
        query = {"type": type or ("f32" if dtype == "float32" else "f64")}
        timeout = self.deadline(timeout)
        options = with_coordinates(self, options, timeout)
        query.update({key: int(value) if isinstance(value, bool) else value for key, value in options.items()})
        try:
            # Sent a second time it would replace the first one.
            reply = self.request("PUT", f"{_matrix_path(name)}?{urllib.parse.urlencode(query)}", (line, *parts),
                                 fields={"Content-Type": "application/octet-stream"}, repeatable=False, timeout=timeout)
            return Matrix(self, json.loads(bytes(reply.body)))
        except BaseException as error:
            if is_new and not self._take_back(name, error) and isinstance(error, ServiceError):
                error.args = (f"{error.args[0]}; the service may keep the matrix as {name}: unload it", *error.args[1:])
            raise

    def _take_back(self, name, error):
        """Unloads a matrix whose name nobody else knows, after an error of its load. Whether the service is without it now."""
        refused = isinstance(error, (AccessError, BusyError)) or getattr(error, "code", None) in _NOT_BEGUN
        if refused or (isinstance(error, UnreachableError) and not error.was_sent):
            return True  # nothing was begun
        deadline, missing = Deadline(_LAST_SECONDS), 0
        while True:
            try:
                self.post_json(_matrix_path(name) + "/unload", timeout=deadline)
                return True
            except NotFoundError:  # perhaps what was sent becomes a matrix in a moment
                missing += 1
                if missing == 3:
                    return True
            except ServiceError as problem:
                if problem.code != "loading":
                    return False
            if not deadline.allows(_FIRST_PAUSE):
                return False
            time.sleep(_FIRST_PAUSE)

    def unload(self, name):
        """Frees a matrix of the service."""
        return self.post_json(_matrix_path(name) + "/unload")

    def multiply_batch(self, matrices, x, *, dtype="float64", alone=False, priority=None, timeout=UNSET):
        """A·x of many small matrices of SciPy or NumPy, which are sent along: matrix by matrix, in one launch.

        x: an array for each matrix, of its columns × k, and the answer is a list, too; or one array with the rows for one
        matrix after those for another, as the answer then is. alone: True: not multiplied together with batches of others.
        """
        return multiply_batch(self, matrices, x, dtype=dtype, alone=alone, priority=priority, timeout=timeout)

    def multiply_batch_async(self, matrices, x, **options):
        """A Call of ``multiply_batch``. The arrays must stay as they are until it has ended."""
        return self.call(self.multiply_batch, matrices, x, **options)

    # ---- vectors, jobs, memory ----

    def vectors(self):
        """A dict for each vector that stays on the ranks."""
        return self.get_json("/v1/vectors")["vectors"]

    def vector(self, id):
        """A vector that stays on the ranks, by its id."""
        for info in self.vectors():
            if info["id"] == id:
                return Vector(self, info, owned=False)
        raise NotFoundError(f"there is no vector {id}")

    def make_vector(self, n, columns=1, *, dtype="float64", shared=False):
        """A vector of zeros in equal parts on the ranks. See Matrix.vector for one that fits a matrix."""
        import numpy

        return vector_of(self, {"n": n, "columns": columns, "type": {"float64": "f64", "float32": "f32"}.get(
            numpy.dtype(dtype).name, str(dtype)), "shared": shared})

    def jobs(self):
        """A dict for each job that waits, runs, or has ended."""
        return self.get_json("/v1/jobs")["jobs"]

    def job(self, id):
        """A job by its id."""
        return Job(self, self.get_json(f"/v1/jobs/{urllib.parse.quote(id, safe='')}"), keep=True)

    def memory(self, bytes):
        """Memory that this program shares with the ranks, for arrays that no product copies. On the Unix socket only."""
        memory = Memory(self, bytes)
        with self._lock:
            self._memories.add(memory)
        return memory

    def _all_memories(self):
        with self._lock:
            return list(self._memories)

    def memory_of(self, array):
        """The shared memory in which an array of NumPy lies, and where, in bytes; (None, None) for another."""
        for memory in self._all_memories():
            at = memory.place_of(array)
            if at is not None:
                return memory, at
        return None, None

    def drop(self, path):
        """Deletes a vector soon: its object is gone. For __del__, which may run in any thread at any time."""
        self._dropped.append(path)

    def delete_dropped(self, timeout=UNSET):
        deadline = self.deadline(timeout)
        while True:
            try:
                path = self._dropped.popleft()
            except IndexError:  # other threads delete, too
                return
            try:
                self.request("DELETE", path, timeout=deadline)
            except NotFoundError:
                pass  # the ranks were started again
            except BaseException:
                self._dropped.appendleft(path)
                raise

    # ---- life ----

    def close(self):
        """Closes the connections. What the service keeps stays there, but for vectors whose objects are gone.

        Takes a moment at most: a service that does not answer, or is gone, keeps those vectors, too.
        """
        try:
            self.delete_dropped(Deadline(_LAST_SECONDS))
        except ServiceError:
            self._dropped.clear()
        for memory in self._all_memories():
            memory.close()
        self._connections.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        return f"<shardmat.service.Service: {self.address}>"


def _matrix_path(name):
    return "/v1/matrices/" + urllib.parse.quote(name, safe="")


def _events(lines):
    event = "message"
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "event":
            event = value
        elif name == "data":
            yield event, json.loads(value)
