"""Matrix files of the caller, as the commands with ``--remote`` take them: they are sent once, and found by their content."""

import hashlib
import io
import mmap
import os
import pathlib
import urllib.parse

from .connection import UNSET
from .errors import AccessError, RefusedError, ServiceError
from .matrix import Matrix

_LIBRARY = "library:"


def matrix_of_file(service, file, *, type=None, kernel="auto", exchange="auto", solvable=True, timeout=UNSET):
    """The matrix of a file of this machine, which is sent unless the library has its bytes; or of a file of the library, if
    there is none here of this name or it says ``library:``; or the matrix of this name in the service.

    It is loaded unless one that suits is there, under the name that the commands give it. ``type``: f64 without it; a matrix
    of the service may be of any type then.
    """
    deadline, file = service.deadline(timeout), os.fspath(file)
    there = service.get_json("/v1/matrices", timeout=deadline)["matrices"]
    for info in there:
        if info["name"] == file:
            return _as_wanted(service, info, type)
    type = type or "f64"
    source = _source_of(service, file, deadline)
    plain = (kernel, exchange) == ("auto", "auto")
    for info in there:
        if (plain and info["state"] == "ready" and info["source"] == source and info["type"] == type
                and not info.get("updatable") and "coordinates" not in info and (info.get("solvable") or not solvable)):
            return Matrix(service, info)
    name = _name_of(source, type, kernel, exchange, solvable)
    options = {"kernel": kernel, "exchange": exchange, "solvable": solvable}
    try:
        return service.load(name, source, type=type, timeout=deadline, **options)
    except AccessError as error:
        if error.status != 403:
            raise
        raise AccessError(f"the service has no {source}, and this token may load none: {error.args[0]}", error.status,
                          error.details) from None


def _as_wanted(service, info, type):
    if info["state"] == "ready" and type not in (None, info["type"]):
        raise RefusedError(f"{info['name']} is of type {info['type']} in the service", None, info)
    return Matrix(service, info)  # says so if it is not ready


def _name_of(source, type, kernel, exchange, solvable):
    """As the commands: the same name for the same file and the same way of loading (tools/client/remote_matrix.cpp)."""
    stem = _plain(source, b"")[:40]
    wanted = "\n".join((source, type, kernel, exchange, "auto", str(solvable).lower()))
    return f"remote-{stem}-{hashlib.sha256(wanted.encode()).hexdigest()[:8]}"


def _plain(path, marks):
    """The name of a file as letters, digits and these marks; each other byte is a "-"."""
    return "".join(chr(c) if c < 128 and (chr(c).isalnum() or c in marks) else "-" for c in os.fsencode(pathlib.PurePath(path).name))


def _source_of(service, file, deadline):
    """The path of the file in the library, to which it is sent if need be."""
    if file.startswith(_LIBRARY):
        return file[len(_LIBRARY):]
    if not os.path.isfile(file):
        return file
    with open(file, "rb") as opened:
        size = os.fstat(opened.fileno()).st_size
        # Not closed here: while an error passes, its frames still hold views of it.
        data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        digest = hashlib.sha256(data).hexdigest()

        def has(source):
            try:
                info = service.get_json("/v1/library?" + urllib.parse.urlencode({"source": source}), timeout=deadline)
            except ServiceError as error:
                if error.status is None or error.status in (401, 429, 503, 504):
                    raise
                return False
            return info.get("sha256") == digest

        if has(file):
            return file
        names = [f"{digest[:digits]}-{_plain(file, b'_.-')[-(63 - digits):]}" for digits in (16, 32)]  # the suffix tells the format
        for one in names:
            if has(one):
                return one
            view = memoryview(data)
            try:
                service.request("PUT", f"/v1/library/{urllib.parse.quote(one)}?sha256={digest}", view, timeout=deadline)
                return one
            except AccessError as error:
                if error.status != 403:
                    raise
                raise AccessError(f"{file} is a file here, which the service does not have and cannot get: {error.args[0]}; a "
                                  f"file {file} of its library is library:{file}", error.status, error.details) from None
            except RefusedError as error:
                if error.status != 409:
                    raise
                if has(one):
                    return one  # another program was faster
            finally:
                view.release()
        raise RefusedError(f"{file} cannot be sent: the library of the service has other files with the names {names[0]} and "
                           f"{names[1]}; take one away: shardmat client delete-file {names[1]}")


def with_coordinates(service, options, deadline):
    """The options of a load, with the path in the library in place of an array of coordinates, which is sent if need be."""
    given = options.get("coordinates")
    if given is None or isinstance(given, (str, os.PathLike)):
        kept = {key: value for key, value in options.items() if key != "coordinates"}
        return kept if given is None else {**kept, "coordinates": os.fspath(given)}
    import numpy

    nodes = numpy.ascontiguousarray(given, dtype=float)
    if nodes.ndim != 2:
        raise ValueError(f"coordinates of shape {nodes.shape}; they have a row of 2 or 3 numbers for each node")
    file = io.BytesIO()
    numpy.save(file, nodes)
    digest = hashlib.sha256(file.getbuffer()).hexdigest()
    name = f"coordinates-{digest[:32]}.npy"
    try:
        service.request("PUT", f"/v1/library/{name}?sha256={digest}", file.getbuffer(), timeout=deadline)
    except RefusedError as error:
        if error.status != 409:  # else it is there already
            raise
    return {**options, "coordinates": name}
