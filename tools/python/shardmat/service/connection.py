"""Requests over one connection, and the connections that a client keeps. Bodies go from and to memory of the caller.

The standard library's client takes no descriptors from a Unix socket, and has a time limit for each step alone, not for the
request. This one has both, and knows no more of HTTP than the service speaks.
"""

import array
import collections
import contextlib
import os
import queue
import select
import socket
import struct
import threading
import time

from .errors import ServiceError, TimedOut, UnreachableError

_MOST_AT_ONCE = 16 << 20  # bytes of a step; TLS takes no more than 2 GiB
_LONGEST_HEADER = 64 << 10
_MOST_IDLE = 8
_LEAVE = struct.pack("ii", 1, 0)  # close() resets, also when this program is killed: the server drops what it did for us
_LONGEST_SILENCE = 30.0  # seconds between lines of a stream; the server sends one every 15 s
_LONGEST_WAIT = 2e6  # seconds of one call of the system, which counts them in milliseconds of 31 bits
_LATE = "has not answered in time: it is busy or stopped, or the time was too short"

UNSET = object()  # a time limit that was not given: that of the service object counts

Reply = collections.namedtuple("Reply", "status fields body")


class Breaker:
    """Ends requests that are under way, from another thread."""

    def __init__(self):
        self._lock, self._sockets, self.is_over = threading.Lock(), [], False

    def end(self):
        with self._lock:
            self.is_over = True
            for one in self._sockets:
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(one, socket.SHUT_RDWR)  # that of TLS takes itself apart, while another thread reads

    @contextlib.contextmanager
    def watching(self, one):
        """This socket is in use."""
        with self._lock:
            self._sockets.append(one)
        try:
            yield
        finally:
            with self._lock:
                self._sockets.remove(one)


class Deadline:
    """A time limit of a request as a whole; `seconds` is None for none. With a `breaker` it may be over at any time."""

    breaker = None

    def __init__(self, seconds):
        if seconds is not None and not seconds > 0:
            raise ValueError(f"the timeout is {seconds}; it must be a number of seconds above 0, or None for no limit")
        self._end = None if seconds is None else time.monotonic() + seconds

    def within(self, seconds):
        """A limit that is also over after so many seconds; None: this one."""
        other = Deadline(seconds)
        other.breaker = self.breaker
        if self._end is not None and (other._end is None or self._end < other._end):
            other._end = self._end
        return other

    def allows(self, seconds):
        """Whether so many seconds are left."""
        return not self._is_broken() and (self._end is None or time.monotonic() + seconds < self._end)

    def _is_broken(self):
        return self.breaker is not None and self.breaker.is_over

    def watching(self, one):
        """While a socket is in use, which the breaker ends."""
        return contextlib.nullcontext() if self.breaker is None else self.breaker.watching(one)

    def left(self):
        """Seconds until then, 23 days at most, or None; raises TimedOut."""
        if self._is_broken():
            raise TimedOut("the call was cancelled")
        if self._end is None:
            return None
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimedOut(f"the service {_LATE}")
        return min(left, _LONGEST_WAIT)

    @contextlib.contextmanager
    def holding(self, lock):
        """Holds a lock; raises TimedOut if it is not free in time."""
        while not lock.acquire(timeout=-1 if (left := self.left()) is None else left):
            pass
        try:
            yield
        finally:
            lock.release()


def _find_addresses(address, deadline):
    """What getaddrinfo() says. A thread of its own asks name servers, which may not answer before the deadline."""
    answers = queue.SimpleQueue()

    def look_up():
        try:
            answers.put((socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM), None))
        except Exception as error:  # also of names that cannot be written in IDNA
            answers.put((None, error))

    threading.Thread(target=look_up, name="shardmat-names", daemon=True).start()
    try:
        found, error = answers.get(timeout=deadline.left())
    except queue.Empty:
        raise TimedOut(f"no name server has told the address of {address.host} in time") from None
    if error is not None:
        raise error
    return found


class Connection:
    """A connected socket. One thread at a time. It is closed if a request fails on the way."""

    def __init__(self, address, tls, deadline):
        """`tls`: an ssl.SSLContext for an address that needs one."""
        self._address = address
        self._received = bytearray()
        self.descriptor = None  # that came with the last reply
        try:
            if address.path is not None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self._connect_unix(address.path, deadline)
            else:
                self._connect_tcp(address, deadline)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LEAVE)
                if address.tls:
                    self._socket.settimeout(deadline.left())
                    self._socket = tls.wrap_socket(self._socket, server_hostname=address.host)
        except TimedOut:
            self.close()
            raise
        except socket.timeout:
            self.close()
            raise TimedOut(f"{address} {_LATE}") from None
        except OSError as error:
            self.close()
            raise UnreachableError(self._why(error)) from error

    def _connect_unix(self, path, deadline):
        while True:
            self._socket.settimeout(deadline.left())
            try:
                return self._socket.connect(path)
            except BlockingIOError:  # the queue of a server that takes no connections is full
                time.sleep(0.01)

    def _connect_tcp(self, address, deadline):
        """To the first address of the host that answers. They share the time that is left."""
        found = _find_addresses(address, deadline)
        for number, (family, kind, protocol, _, where) in enumerate(found):
            left = deadline.left()
            try:
                self._socket = socket.socket(family, kind, protocol)
                self._socket.settimeout(left if left is None else left / (len(found) - number))
                return self._socket.connect(where)
            except OSError:
                self.close()
                if number == len(found) - 1:
                    raise

    def _why(self, error):
        text = getattr(error, "verify_message", None)
        if text:
            return f"{self._address} does not prove who it is ({text}); name the certificates that you trust with ca=FILE"
        if self._address.tls and type(error).__name__.startswith("SSL"):
            return f"{self._address} does not answer in TLS ({error}); write http:// if it has none"
        return (f"no service listens on {self._address} ({getattr(error, 'strerror', None) or error}); "
                "start it with: shardmat serve --library DIR")

    def close(self):
        if hasattr(self, "_socket"):
            self._socket.close()

    __del__ = close

    def has_ended(self):
        """Whether the server closed the connection while nobody used it."""
        waits = select.poll()
        try:
            waits.register(self._socket, select.POLLIN)
            return bool(waits.poll(0))
        except (OSError, ValueError):
            return True

    def request(self, method, target, fields, body, deadline, into=None, with_descriptor=False):
        """Sends a request with the parts of `body` one after another. The reply's body is in `into`, if it has that size.

        Raises UnreachableError if the connection ends before the reply, TimedOut after the deadline. They have the fields of a
        reply that broke off.
        """
        self._fields = {}
        try:
            with self._closed_by_errors(), deadline.watching(self._socket):
                parts = [memoryview(part).cast("B") for part in body if memoryview(part).nbytes > 0]
                self._send(method, target, fields, parts, deadline)
                return self._receive(deadline, into, with_descriptor)
        except ServiceError as error:
            error.fields = self._fields
            raise

    @contextlib.contextmanager
    def _closed_by_errors(self):
        try:
            yield
        except ServiceError:
            self.close()
            raise
        except socket.timeout:
            self.close()
            raise TimedOut(f"{self._address} {_LATE}") from None
        except OSError as error:
            self.close()
            raise UnreachableError(f"{self._address} ended the connection before it answered: {error}") from error
        except BaseException:
            self.close()
            raise

    def stream(self, target, fields, deadline):
        """Status and fields of the reply to a GET, its body if it is no stream, and an iterator over the lines of a stream.

        Raises as request() does, and so does the iterator.
        """
        with self._closed_by_errors():
            self._send("GET", target, fields, [], deadline)
            status, known = self._head(deadline, False)
            return status, known, self._body(status, known, deadline, None), self._lines()

    def _lines(self):
        """Lines until the connection ends. Raises UnreachableError when none has come for long: the server or its host is dead."""
        with contextlib.closing(self), self._closed_by_errors():
            self._socket.settimeout(_LONGEST_SILENCE)
            while True:
                *lines, rest = bytes(self._received).split(b"\n")
                self._received = bytearray(rest)
                for line in lines:
                    yield line.decode()
                try:
                    more = self._socket.recv(65536)
                except socket.timeout:
                    raise UnreachableError(f"{self._address} has sent nothing for {_LONGEST_SILENCE:g} s, not even the line that says "
                                           "that it is there") from None
                if not more:
                    return
                self._received += more

    def _send(self, method, target, fields, parts, deadline):
        head = [f"{method} {target} HTTP/1.1", f"Host: {self._address.authority}"]
        head += [f"{name}: {value}" for name, value in fields.items()]
        head += [f"Content-Length: {sum(part.nbytes for part in parts)}", "", ""]
        data = "\r\n".join(head).encode("ascii")
        if sum(part.nbytes for part in parts) <= 65536:
            data, parts = b"".join([data, *parts]), []
        try:
            for part in (memoryview(data), *parts):
                for first in range(0, part.nbytes, _MOST_AT_ONCE):
                    self._socket.settimeout(deadline.left())
                    self._socket.sendall(part[first:first + _MOST_AT_ONCE])
        except (BrokenPipeError, ConnectionResetError):
            pass  # the server may have answered before it closed

    def _more(self, deadline, with_descriptor):
        self._socket.settimeout(deadline.left())
        if with_descriptor:
            data, ancillary, _, _ = self._socket.recvmsg(65536, socket.CMSG_SPACE(4))
            for level, kind, raw in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    descriptors = array.array("i")
                    descriptors.frombytes(raw[:4])
                    self.descriptor = descriptors[0]
                    os.set_inheritable(self.descriptor, False)
        else:
            data = self._socket.recv(65536)
        if not data:
            raise UnreachableError(f"{self._address} ended the connection before it answered")
        self._received += data

    def _head(self, deadline, with_descriptor):
        """Status and fields of the next reply."""
        while True:
            while (end := self._received.find(b"\r\n\r\n")) < 0:
                if len(self._received) > _LONGEST_HEADER:
                    raise UnreachableError(f"{self._address} does not speak HTTP")
                self._more(deadline, with_descriptor)
            lines = bytes(self._received[:end]).decode("latin-1").split("\r\n")
            del self._received[:end + 4]
            words = lines[0].split(" ", 2)
            if not words[0].startswith("HTTP/1.") or len(words) < 2 or not words[1].isdigit():
                raise UnreachableError(f"{self._address} does not speak HTTP: {lines[0][:60]!r}")
            if words[1] == "100":  # Continue
                continue
            fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            return int(words[1]), fields

    def _receive(self, deadline, into, with_descriptor):
        status, fields = self._head(deadline, with_descriptor)
        self._fields = fields
        body = self._body(status, fields, deadline, into)
        if fields.get("connection", "").lower() == "close":
            self.close()
        return Reply(status, fields, body)

    def _body(self, status, fields, deadline, into):
        length = int(fields.get("content-length", 0))
        body = into if into is not None and status == 200 and into.nbytes == length else memoryview(bytearray(length))
        got = min(len(self._received), length)
        body[:got] = self._received[:got]
        del self._received[:got]
        while got < length:
            self._socket.settimeout(deadline.left())
            more = self._socket.recv_into(body[got:got + _MOST_AT_ONCE])
            if more == 0:
                raise UnreachableError(f"{self._address} ended the connection in the middle of its answer")
            got += more
        return body

    def is_open(self):
        return self._socket.fileno() >= 0


class Connections:
    """Idle connections to one address. Any thread."""

    def __init__(self, address, tls):
        self.address = address
        self._tls = tls
        self._lock = threading.Lock()
        self._idle, self._process = [], os.getpid()

    def connect(self, deadline):
        """A new connection, which is not kept here."""
        return Connection(self.address, self._tls, deadline)

    def borrow(self, deadline):
        """A connection for one request, to be given back if it is still open."""
        with self._lock:
            if self._process != os.getpid():  # after fork(): those are the parent's
                self._idle, self._process = [], os.getpid()
            while self._idle:
                connection = self._idle.pop()
                if not connection.has_ended():
                    return connection
                connection.close()
        return self.connect(deadline)

    def give_back(self, connection):
        with self._lock:
            if connection.is_open() and len(self._idle) < _MOST_IDLE and self._process == os.getpid():
                self._idle.append(connection)
                return
        connection.close()

    def close(self):
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
