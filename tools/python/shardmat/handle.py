"""What all objects share that hold a native one: close(), and use in a with statement."""


class Handle:
    """Holds ``_native`` until close(). Its class name says what is closed."""

    def close(self):
        """Lets go of the memory. Other objects keep what they need until they are closed, too."""
        self._native = None

    def _open(self):
        if self._native is None:
            raise ValueError(f"the {type(self).__name__.lower()} is closed")
        return self._native

    def __reduce_ex__(self, protocol):
        raise TypeError(f"a shardmat.{type(self).__name__} cannot be pickled or copied: it lies on devices. {self._REMEDY}")

    _REMEDY = "Pickle what it was made of, and make it anew"

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
