"""Vectors that stay on the ranks."""

from .arrays import TYPES, as_bytes, as_columns, is_plain
from .connection import UNSET
from .errors import NotFoundError, ServiceError

_DISCARD_SECONDS = 5.0


def vector_of(service, wanted, timeout=UNSET):
    """A new vector of zeros. Those whose objects are gone are deleted first."""
    deadline = service.deadline(timeout)
    service.delete_dropped(deadline)
    return Vector(service, service.post_json("/v1/vectors", wanted, timeout=deadline), owned=True)


class Vector:
    """A vector, or several columns, on the ranks of a service: x or y of products, b of solves.

    It is deleted some time after its object is gone, unless ``keep()`` was called, or it was asked for by its id.
    """

    def __init__(self, service, info, owned):
        import numpy

        self._service, self._owned = service, owned
        self.id, self.columns = info["id"], info["columns"]
        self.dtype = numpy.dtype(TYPES[info["type"]])
        self.shape = (info["n"],) if self.columns == 1 else (info["n"], self.columns)

    @property
    def path(self):
        return "/v1/vectors/" + self.id

    def put(self, values, *, timeout=UNSET):
        """Writes its numbers, of an array with its shape."""
        values = as_columns(values, self.dtype, self.shape[0], "the array")
        if values.shape != self.shape:
            raise ValueError(f"the array has shape {values.shape}; the vector has {self.shape}")
        self._service.request("PUT", self.path, (as_bytes(values),), fields={"Content-Type": "application/octet-stream"},
                              timeout=timeout)
        return self

    def get(self, out=None, *, timeout=UNSET):
        """Its numbers as an array of NumPy; into `out`, if it is given."""
        import numpy

        if out is not None and out.shape != self.shape:
            raise ValueError(f"out has shape {out.shape}; the vector has {self.shape}")
        if out is not None and not out.flags.writeable:
            raise ValueError("out is read-only")
        values = out if out is not None and is_plain(out, self.dtype) else numpy.empty(self.shape, self.dtype, order="F")
        view = as_bytes(values)
        reply = self._service.request("GET", self.path, into=view, timeout=timeout)
        if reply.body is not view:
            raise ValueError(f"{self.id} has another size now")
        if out is None or out is values:
            return values
        out[...] = values
        return out

    def __array__(self, dtype=None, copy=None):
        values = self.get()
        return values if dtype is None else values.astype(dtype)

    def __len__(self):
        return self.shape[0]

    def keep(self):
        """The vector outlives this object; its ``id`` finds it again."""
        self._owned = False
        return self

    def delete(self, *, timeout=UNSET):
        """Frees its memory on the ranks."""
        self._owned = False
        self._service.request("DELETE", self.path, timeout=timeout)

    def discard(self, timeout=UNSET):
        """Deletes it now, or later if the service does not answer."""
        try:
            self.delete(timeout=self._service.deadline(timeout).within(_DISCARD_SECONDS))
        except NotFoundError:
            pass  # the ranks were started again
        except ServiceError:
            self._service.drop(self.path)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.delete()

    def __del__(self):
        if getattr(self, "_owned", False):
            self._service.drop(self.path)

    def __repr__(self):
        return f"<shardmat.service.Vector {self.id}: {' × '.join(map(str, self.shape))}, {self.dtype.name}>"
