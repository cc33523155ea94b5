"""Arrays of the caller as the service takes them: little-endian, columns one after another."""

TYPES = {"f64": "<f8", "f32": "<f4"}


def as_columns(array, dtype, rows, what):
    """An array in host memory as one of NumPy of this type, (rows,) or (rows, k) with its columns one after another.

    Without a copy where it lies so already. Arrays of other libraries come by DLPack.
    """
    import numpy

    if hasattr(array, "__dlpack_device__") and array.__dlpack_device__()[0] not in (1, 3):
        raise TypeError(f"{what} lies on a device; copy it to host memory first: the service takes bytes")
    if hasattr(array, "__dlpack__") and not hasattr(array, "__array__"):
        array = numpy.from_dlpack(array)
    array = numpy.asarray(array)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{what} has type {array.dtype}; it must have real numbers")
    if array.ndim not in (1, 2) or array.shape[0] != rows:
        raise ValueError(f"{what} has shape {array.shape}; it must be ({rows},) or ({rows}, k)")
    if array.ndim == 2 and array.shape[1] == 0:
        raise ValueError(f"{what} has no columns")
    return numpy.asarray(array, dtype=dtype, order="F")


def as_bytes(array):
    """The memory of an array whose columns lie one after another."""
    return memoryview(array.T).cast("B")


def is_plain(array, dtype):
    """Whether an array can get bytes as they come."""
    return array.dtype == dtype and array.flags.f_contiguous and array.flags.writeable
