"""Matrices that a service keeps, and their products and solves."""

import json
import operator
import urllib.parse

from .arrays import TYPES, as_bytes, as_columns, is_plain
from .connection import UNSET
from .eigen import Wanted
from .errors import NotConvergedError, NotFoundError, RefusedError, ServiceError, TimedOut, UnreachableError
from .job import Job
from .linear_operator import as_linear_operator
from .vector import Vector, vector_of

_WIDEST_BODY = 32  # columns of a product whose vectors are no vectors of the service
_ALWAYS = 1e9  # seconds: longer than any solve
_BINARY = {"Content-Type": "application/octet-stream"}


class Matrix:
    """A matrix of a service: ``service.matrix(name)`` or ``service.load(name, source)``.

    SciPy's functions take it as a linear operator. ``A.T @ x`` reads the rows that the service stores.
    """

    ndim = 2

    def __init__(self, service, info):
        import numpy

        if "rows" not in info:
            reason = info.get("reason")
            raise RefusedError(f"{info['name']} is {info['state']}{': ' + reason if reason else ''}; load it", None, info)
        self._service = service
        self.name = info["name"]
        self.shape = (info["rows"], info["cols"])
        self.nnz = info["nnz"]
        self.dtype = numpy.dtype(TYPES[info["type"]])
        self._type = info["type"]
        self._path = "/v1/matrices/" + urllib.parse.quote(self.name, safe="")

    def info(self):
        """What the service says of it now, as a dict: state, source, kernels, memory, generation of its values."""
        return self._service.get_json(self._path)

    # ---- products ----

    def multiply(self, x, out=None, *, alpha=1.0, beta=0.0, transpose=False, priority=None, generation=None, timeout=UNSET):
        """alpha·A·x + beta·out, in `out` if it is given; with `transpose` of the transpose of A.

        x and out are arrays of shape (n,) or (n, k), or vectors of the service, which stay there: without out, A·x of a
        vector is a new one. Arrays in memory of ``service.memory`` are not copied, if their columns lie one after another (as
        those of Memory.empty). More than 32 columns take several requests.
        timeout: of all requests together. priority: "high", "normal" or "low". generation: raises RefusedError (412) unless the values have it.
        """
        timeout = self._service.deadline(timeout)
        if beta != 0 and out is None:
            raise ValueError("beta needs the out that it is for")
        if isinstance(x, Vector):
            columns = x.columns
            if out is None:
                out = self.vector(columns, rows=not transpose, timeout=timeout)
        else:
            x = as_columns(x, self.dtype, self.shape[0 if transpose else 1], "x")
            columns = 1 if x.ndim == 1 else x.shape[1]
        if not isinstance(out, Vector):
            out = self._out_for(out, (self.shape[1 if transpose else 0], *x.shape[1:]))
        options = {"alpha": alpha, "beta": beta, "priority": priority, "type": self._type}
        if transpose:
            options["transpose"] = 1
        fields = dict(_BINARY)
        if generation is not None:
            fields["If-Match"] = f'"{int(generation)}"'
        if columns <= _WIDEST_BODY or isinstance(x, Vector) or isinstance(out, Vector):
            self._multiply(x, out, columns, options, fields, timeout)
        else:
            for first in range(0, columns, _WIDEST_BODY):
                part = slice(first, first + _WIDEST_BODY)
                self._multiply(x[:, part], out[:, part], x[:, part].shape[1], options, fields, timeout)
        return out

    def multiply_async(self, x, out=None, **options):
        """A Call of ``multiply``: ``y = await A.multiply_async(x)``. x and out must stay as they are until it has ended."""
        return self._service.call(self.multiply, x, out, **options)

    def _out_for(self, out, shape):
        import numpy

        if out is None:
            return numpy.empty(shape, self.dtype, order="F")
        if not isinstance(out, numpy.ndarray) or out.shape != shape:
            raise ValueError(f"out must be an array of NumPy of shape {shape}, or a vector of the service")
        if not out.flags.writeable:  # now: what was computed could not be written
            raise ValueError("out is read-only")
        return out

    def _multiply(self, x, out, columns, options, fields, timeout):
        """One request."""
        import numpy

        query, body, through, adds = {"k": columns, **options}, [], None, options["beta"] != 0
        memory = None
        if isinstance(x, Vector):
            query["x"] = x.id
        else:
            memory, at = self._service.memory_of(x)
            if memory is not None:
                query["x_at"] = at
            else:
                body.append(as_bytes(x))
        answer = None
        if isinstance(out, Vector):
            query["y"] = out.id
        else:
            lies_in, at = self._service.memory_of(out)
            if lies_in is not None and memory in (None, lies_in) and is_plain(out, self.dtype):
                memory, query["y_at"] = lies_in, at
            else:
                if adds:
                    body.append(as_bytes(numpy.asarray(out, dtype=self.dtype, order="F")))
                # What is sent must stay as it is until the answer is there: it may be sent again.
                direct = is_plain(out, self.dtype) and not adds and not _overlap(x, out)
                answer = out if direct else numpy.empty(out.shape, self.dtype, order="F")
        if memory is not None:
            through = memory.request
        left = timeout.left()
        if left is not None:
            fields = {**fields, "Shardmat-Deadline-Ms": f"{1000 * min(left, _ALWAYS):.3f}"}
        # What is added to, where the service keeps it, must not be added to twice.
        repeatable = not adds or answer is not None
        view = as_bytes(answer) if answer is not None else None
        reply = self._service.request("POST", f"{self._path}/multiply?{_query(query)}", body, fields=fields, timeout=timeout,
                                      repeatable=repeatable, into=view, through=through)
        if answer is None:
            return
        if reply.body is not view:
            raise ServiceError(f"the answer has {reply.body.nbytes} bytes, not {view.nbytes}; the matrix may have been replaced")
        if answer is not out:
            out[...] = answer

    def __matmul__(self, x):
        """``A @ x`` for an array or a vector of the service."""
        return self.multiply(x)

    def dot(self, x):
        return self.multiply(x)

    def matvec(self, x):
        """As SciPy's LinearOperator: x of shape (n,) or (n, 1)."""
        return self.multiply(x)

    def matmat(self, x):
        """As SciPy's LinearOperator: x of shape (n, k)."""
        return self.multiply(x)

    def rmatvec(self, x):
        """As SciPy's LinearOperator: the transpose times x of shape (n,) or (n, 1)."""
        return self.multiply(x, transpose=True)

    def rmatmat(self, x):
        """As SciPy's LinearOperator: the transpose times x of shape (n, k)."""
        return self.multiply(x, transpose=True)

    @property
    def T(self):
        """The transpose, for products: the service reads the rows of this matrix. ``A.T.T`` is A."""
        return Transpose(self)

    def aslinearoperator(self, vectors="auto"):
        """A ``scipy.sparse.linalg.LinearOperator`` of this matrix, with its transpose.

        vectors: "memory": x and y lie in memory that the ranks share, so that a product is one request without a body; on the Unix
        socket only. "bodies": they go through the connection. "auto": memory on the Unix socket if the service has room for it,
        else bodies; the attribute ``vectors`` of what is returned says which. The bits are the same.
        """
        return as_linear_operator(self, vectors)

    # ---- vectors that stay ----

    def vector(self, values=1, *, rows=False, shared=False, timeout=UNSET):
        """A vector that stays on the ranks, distributed as x of this matrix; with `rows` as y.

        values: an array, or how many columns of zeros. shared: True for all tokens, or patterns of their names.
        """
        import numpy

        is_count = isinstance(values, (int, numpy.integer))
        given = None if is_count else as_columns(values, self.dtype, self.shape[0 if rows else 1], "the array")
        columns = int(values) if is_count else 1 if given.ndim == 1 else given.shape[1]
        as_y = rows and self.shape[0] != self.shape[1]  # x and y of a square matrix are distributed alike
        timeout = self._service.deadline(timeout)
        vector = vector_of(self._service, {"matrix": self.name, "layout": "rows" if as_y else "columns", "columns": columns,
                                           "shared": shared}, timeout)
        return vector if is_count else vector.put(given.reshape(vector.shape, order="F"), timeout=timeout)

    # ---- solves ----

    def solve(self, b, x0=None, *, out=None, solver="auto", preconditioner="auto", limit=None, priority=None, timeout=UNSET, **settings):
        """x with A·x = b, of a matrix that was loaded with solvable=True.

        b: an array of shape (n,) or (n, k), or a vector of the service. x0: the same, or a job whose x it is. out: an array
        that x is written to, b or x0 for example. Arrays in memory of ``service.memory`` are not copied, as of multiply().
        settings: names of the options of ``shardmat solve``: rtol, atol, max_iterations, restart … alone=1: not merged with solves of others, so
        that x has the bits of that command. limit: seconds after which the solve ends on the server. The solve also ends when the timeout passes, or with Ctrl-C. Raises NotConvergedError, which has the last x.
        """
        settings.update(solver=solver, preconditioner=preconditioner, limit=limit, priority=priority)
        b = b if isinstance(b, Vector) else as_columns(b, self.dtype, self.shape[0], "b")
        return self._wait_for_x("solve", b, x0, b.shape, settings, timeout, out)

    def _wait_for_x(self, kind, b, x0, shape, settings, timeout, out):
        timeout = self._service.deadline(timeout)
        out = self._out_for(out, shape)
        direct = is_plain(out, self.dtype) and (self._service.memory_of(out)[0] is not None or not (_overlap(b, out) or _overlap(x0, out)))
        x = out if direct else self._out_for(None, shape)
        try:
            reply = self._ask_for_x(kind, b, x0, settings, timeout, wait=_ALWAYS, into=x)
        except ServiceError as error:
            job = self._job_of(error, timeout)
            if job is None and self._service.retries == 0:
                raise
            if job is None:  # forgotten, for all of its answer was sent
                reply = self._ask_for_x(kind, b, x0, settings, timeout, wait=_ALWAYS, into=x)
            else:
                out[...] = job.result(timeout)
                return out
        if reply.status != 204 and reply.body.nbytes != x.nbytes:
            raise ServiceError(f"the answer has {reply.body.nbytes} bytes, not {x.nbytes}; the matrix may have been replaced")
        if x is not out:
            out[...] = x
        return out

    def solve_async(self, b, x0=None, *, solver="auto", preconditioner="auto", limit=None, priority=None, keep=False,
                    timeout=UNSET, **settings):
        """A job that solves A·x = b, as ``solve`` does. With `keep`, the service has the job and its x until job.delete()."""
        settings.update(solver=solver, preconditioner=preconditioner, limit=limit, priority=priority)
        b = b if isinstance(b, Vector) else as_columns(b, self.dtype, self.shape[0], "b")
        reply = self._ask_for_x("solve", b, x0, settings, self._service.deadline(timeout))
        return Job(self._service, json.loads(bytes(reply.body)), keep=keep)

    def pagerank(self, restarts=None, *, out=None, limit=None, priority=None, timeout=UNSET, **settings):
        """The scores of the vertices of a graph, of a matrix that was loaded with solvable=True.

        Entry (i, j) is the weight of an edge from i to j. restarts: where the walk begins anew, a weight for each vertex or
        several columns of them, or a vector of the service; None: anywhere. settings: damping, tolerance, max_iterations and
        unweighted=1, as of ``shardmat pagerank``. out, limit and timeout: as of solve(). Raises NotConvergedError, which has the
        last scores.
        """
        settings.update(limit=limit, priority=priority)
        restarts = self._restarts(restarts)
        return self._wait_for_x("pagerank", restarts, None, self.shape[:1] if restarts is None else restarts.shape, settings, timeout,
                                out)

    def pagerank_async(self, restarts=None, *, limit=None, priority=None, keep=False, timeout=UNSET, **settings):
        """A job that ranks the vertices, as ``pagerank`` does. With `keep`, the service has the job and its x until job.delete()."""
        settings.update(limit=limit, priority=priority)
        reply = self._ask_for_x("pagerank", self._restarts(restarts), None, settings, self._service.deadline(timeout))
        return Job(self._service, json.loads(bytes(reply.body)), keep=keep)

    def eigsh(self, k=6, M=None, sigma=None, which="LM", v0=None, *, tol=0, maxiter=None, return_eigenvectors=True, method=None,
              return_info=False, limit=None, priority=None, timeout=UNSET, **settings):
        """Eigenvalues of A·x = λ·x or A·x = λ·M·x, called as ``scipy.sparse.linalg.eigsh``: returns (w, v), or w alone.

        A and M were loaded with solvable=True, and both are symmetric, M positive definite. M: a matrix of this service, or its name. w is
        ascending; vᵀ·M·v = 1. which, sigma and method: as of ``shardmat.eigsh``: "SM" or "SA" the smallest, "LM", "LA" and "BE" for one
        matrix; with sigma "LM", those nearest to it. tol and maxiter are SciPy's names of the settings tolerance and
        max_iterations; 0 and None: the service's own. settings: the other options of ``shardmat eigen``: basis, seed, confirm, guard,
        inner … v0: a vector to begin with, or several as columns; an array, a vector or a job of the service. Lanczos ("LM", "LA", "BE")
        takes none. "SM", M and sigma want ranks on the host and float64.
        return_info: also returns what the service said of the job, a dict: complete, zero_modes … limit and timeout: as of solve().
        Raises NotConvergedError, which has the last vectors.
        """
        timeout = self._service.deadline(timeout)
        words, options = self._wanted_pairs(k, M, sigma, which, v0, tol, maxiter, method, return_eigenvectors, settings)
        words.update(limit=limit, priority=priority)
        try:
            reply = self._ask_for_x("eigen", None, v0, words, timeout, _ALWAYS)
            job = Job(self._service, json.loads(bytes(reply.body)), **options)
        except ServiceError as error:
            job = self._job_of(error, timeout, **options)
            if job is None:
                raise
        answer = _kept(job, job.result, timeout)
        if not return_info:
            return answer
        return (*(answer if return_eigenvectors else (answer,)), job.info(timeout))

    def eigsh_async(self, k=6, M=None, sigma=None, which="LM", v0=None, *, tol=0, maxiter=None, return_eigenvectors=True, method=None,
                    limit=None, priority=None, keep=False, timeout=UNSET, **settings):
        """A job that finds eigenvalues, as ``eigsh`` does: its result is (w, v), or w alone.

        With `keep`, the service has the job and its vectors until job.delete(); those of "LM" and "BE" are then of both ends.
        """
        words, options = self._wanted_pairs(k, M, sigma, which, v0, tol, maxiter, method, return_eigenvectors, settings)
        words.update(limit=limit, priority=priority)
        reply = self._ask_for_x("eigen", None, v0, words, self._service.deadline(timeout))
        return Job(self._service, json.loads(bytes(reply.body)), keep=keep, **options)

    def _wanted_pairs(self, k, M, sigma, which, v0, tol, maxiter, method, return_eigenvectors, settings):
        """The settings of eigsh() in the service's words, and the options of its Job."""
        for name, given, setting in (("tol", tol != 0, "tolerance"), ("maxiter", maxiter is not None, "max_iterations")):
            if given and setting in settings:
                raise ValueError(f"{name} and {setting} are two words for one thing; give one of them")
        wanted = Wanted(operator.index(k), which, sigma, M is not None, method)
        if v0 is not None and wanted.method == "lanczos":
            raise ValueError("v0 cannot be given to Lanczos: it begins with a vector of its own; seed=N chooses another")
        if not 1 <= wanted.k <= self.shape[0]:
            raise ValueError(f"k is {k}; it must be 1 to {self.shape[0]}, the rows of {self.name}")
        words = {"count": wanted.count, "which": wanted.ends, "method": wanted.method, "shift": wanted.sigma, "mass": self._name_of_mass(M),
                 "tolerance": tol or None, "max_iterations": maxiter, **settings}
        return words, {"choose": wanted.chosen, "with_vectors": bool(return_eigenvectors)}

    def _name_of_mass(self, M):
        if M is None or isinstance(M, str):
            return M
        if not isinstance(M, Matrix):
            raise TypeError(f"M is a matrix of the service or its name, not {type(M).__name__}; send it first: "
                            "service.matrix_from(M, solvable=True)")
        if str(M._service.address) != str(self._service.address):
            raise ValueError(f"M is a matrix of {M._service.address}; {self.name} is one of {self._service.address}")
        if M.shape != self.shape:
            raise ValueError(f"M has shape {M.shape}; {self.name} has {self.shape}")
        return M.name

    def _job_of(self, error, timeout, **options):
        """The job of a request that waited for it, if the answer broke off; None: the service has forgotten it.

        Else raises what became of it.
        """
        if "shardmat-job" not in error.fields:
            raise error
        job = Job(self._service, {"id": error.fields["shardmat-job"], "state": "failed"}, **options)  # result() forgets it
        if isinstance(error, TimedOut) and error.status is None:
            raise _named(error, job)
        if not isinstance(error, UnreachableError):
            failure = _kept(job, job.exception, timeout)
            raise (failure if isinstance(failure, NotConvergedError) else error) from None
        try:
            _kept(job, job.result, timeout)
            return job
        except NotFoundError:
            return None

    def _ask(self, kind, words, body=(), **options):
        query = {name: word_of(name, value) for name, value in words.items() if value is not None}
        query["type"] = self._type
        return self._service.request("POST", f"{self._path}/{kind}?{_query(query)}", body, fields=_BINARY, **options)

    def _restarts(self, given):
        return given if given is None or isinstance(given, Vector) else as_columns(given, self.dtype, self.shape[0], "restarts")

    def _ask_for_x(self, kind, b, x0, settings, timeout, wait=None, into=None, again=True):
        """One request. Arrays stay in the memory of a service if the request waits until the job has ended."""
        query, memory, body, view, made = dict(settings), None, (), None, None

        def lies_in_memory(array, name):
            nonlocal memory
            lies_in, at = self._service.memory_of(array) if wait is not None else (None, None)
            if lies_in is None or memory not in (None, lies_in):
                return False
            memory, query[name] = lies_in, at
            return True

        if isinstance(b, Vector):
            query["b"] = b.id
        elif b is not None:
            query["k"] = 1 if b.ndim == 1 else b.shape[1]
            if not lies_in_memory(b, "b_at"):
                body = (as_bytes(b),)
        if wait is not None:
            query["wait"] = wait
            if into is not None and not lies_in_memory(into, "x_at"):
                view = as_bytes(into)
        if isinstance(x0, (Vector, Job)):
            query["x0"] = x0.id
        elif x0 is not None:
            x0 = as_columns(x0, self.dtype, self.shape[0], "x0" if kind == "solve" else "v0")
            if b is None or x0.shape != b.shape or not lies_in_memory(x0, "x0_at"):
                made = self.vector(x0, timeout=timeout)
                query["x0"] = made.id
        try:
            # In shared memory x may lie where b is, and that memory goes with its connection.
            return self._ask(kind, query, body, timeout=timeout, repeatable=wait is not None and memory is None, into=view,
                             through=None if memory is None else memory.request)
        except NotFoundError as error:
            if made is None or not again or error.code not in ("no_vector", "vector_lost"):
                raise
        finally:
            if made is not None:
                made.discard(timeout)  # the job has read it
        return self._ask_for_x(kind, b, x0, settings, timeout, wait, into, again=False)  # x0 was lost with the ranks

    # ---- values and memory ----

    def update_values(self, values, *, generation=None, timeout=UNSET):
        """New values for the nonzeros, in the order of the shard file, of a matrix that was loaded with updatable=True.

        Returns the generation of the values.
        """
        values = as_columns(values, self.dtype, self.nnz, "the array of values")
        fields = dict(_BINARY)
        if generation is not None:
            fields["If-Match"] = f'"{int(generation)}"'
        reply = self._service.request("PUT", f"{self._path}/values?type={self._type}", (as_bytes(values),), fields=fields,
                                      repeatable=generation is None, timeout=timeout)
        return json.loads(bytes(reply.body))["generation"]

    def pin(self, pinned=True, *, timeout=UNSET):
        """Keeps the matrix when the service needs memory for others; False: no longer."""
        self._service.post_json(self._path + "/pin", {"pinned": bool(pinned)}, repeatable=True, timeout=timeout)

    def unload(self):
        """Frees the matrix on the service, for all its clients."""
        return self._service.unload(self.name)

    def __repr__(self):
        return (f"<shardmat.service.Matrix {self.name}: {self.shape[0]}×{self.shape[1]}, {self.nnz} entries of "
                f"{self.dtype.name} on {self._service.address}>")


class Transpose:
    """The transpose of a matrix of a service, for products; made by ``A.T``."""

    ndim = 2

    def __init__(self, matrix):
        self.T = matrix
        self.shape = matrix.shape[::-1]
        self.dtype = matrix.dtype

    def multiply(self, x, out=None, **options):
        """As Matrix.multiply."""
        return self.T.multiply(x, out, transpose=True, **options)

    def multiply_async(self, x, out=None, **options):
        """As Matrix.multiply_async."""
        return self.T.multiply_async(x, out, transpose=True, **options)

    def __matmul__(self, x):
        return self.multiply(x)

    dot = matvec = matmat = __matmul__

    def rmatvec(self, x):
        """As SciPy's LinearOperator: the matrix times x of shape (n,) or (n, 1)."""
        return self.T.multiply(x)

    rmatmat = rmatvec

    def aslinearoperator(self, vectors="auto"):
        """A ``scipy.sparse.linalg.LinearOperator`` of the transpose, as Matrix.aslinearoperator."""
        operator = self.T.aslinearoperator(vectors)
        transposed = operator.T
        transposed.vectors = operator.vectors
        return transposed

    def __repr__(self):
        return f"<the transpose of {self.T!r}>"


def _query(parameters):
    return urllib.parse.urlencode({name: value for name, value in parameters.items() if value is not None})


def _kept(job, fetch, timeout):
    """What a job has found. The service keeps it if it cannot be fetched now, and the error says where."""
    try:
        return fetch(timeout)
    except (TimedOut, UnreachableError) as error:
        raise _named(error, job)


def _named(error, job):
    """The error, which also says where the service keeps what a job has found."""
    error.args = (f"{error.args[0]}; the service keeps what it has found: service.job({job.id!r}).result()", *error.args[1:])
    return error


def _overlap(sent, received):
    """Whether an array that is sent, if it is one, may share memory with an array that gets the answer."""
    import numpy

    return isinstance(sent, numpy.ndarray) and numpy.may_share_memory(sent, received)


def word_of(name, value):
    """A setting of a solver as the service takes it."""
    if isinstance(value, str):
        return value
    try:
        return int(operator.index(value))
    except TypeError:
        pass
    try:
        return repr(float(value))
    except (TypeError, ValueError):
        raise TypeError(f"{name} is a {type(value).__name__}; the service takes settings that are words or numbers") from None
