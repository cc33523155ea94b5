"""Which eigenvalues are wanted: the words of scipy.sparse.linalg.eigsh, and those of the commands and of the service."""


class Wanted:
    """What eigsh() was asked for. ``method``: None for the service's own choice of the smallest pairs; ``sigma``: or None."""

    def __init__(self, k, which, sigma, has_mass, method):
        if which not in ("LM", "SM", "LA", "SA", "BE"):
            raise ValueError(f"which is {which!r}; it must be 'LM', 'SM', 'LA', 'SA' or 'BE'")
        if method not in (None, "lobpcg", "shift_invert", "lanczos"):
            raise ValueError(f"method is {method!r}; it must be 'lobpcg', 'shift_invert' or 'lanczos'")
        self.k, self.sigma = int(k), None if sigma is None else float(sigma)
        self._which, self.method = _checked(which, sigma, has_mass, method)
        self._is_of_both_ends = self._which in ("BE", "magnitude")
        self.ends = "both" if self._is_of_both_ends else "largest" if which == "LA" else "smallest"

    @property
    def count(self):
        """How many eigenvalues are computed: of both ends, of each."""
        return self.k if self._which != "BE" else (self.k + 1) // 2

    def chosen(self, values):
        """Places of the wanted ones among computed values, which ascend; None: all of them."""
        import numpy

        if not self._is_of_both_ends:
            return None
        if self._which == "magnitude":
            return numpy.sort(numpy.argsort(-numpy.abs(values), kind="stable")[:self.k])
        # The half of each end, one more of the high end.
        return numpy.r_[numpy.arange(self.k // 2), numpy.arange(len(values) - (self.k - self.k // 2), len(values))]


def _checked(which, sigma, has_mass, method):
    """Which and the method."""
    if sigma is not None:
        if which != "LM":
            raise ValueError("with sigma, which is 'LM': the eigenvalues nearest to sigma")
        if method not in (None, "shift_invert"):
            raise ValueError("only the method shift_invert takes sigma")
        return which, "shift_invert"
    if method in ("lobpcg", "shift_invert"):
        if which not in ("SM", "SA"):
            raise ValueError(f"{method} without sigma gives the smallest eigenvalues: which='SM'")
        return which, method
    if has_mass and which not in ("SM", "SA"):
        raise ValueError("of A x = λ M x the smallest eigenvalues are computed (which='SM'), or those nearest to sigma")
    if method == "lanczos" and has_mass:
        raise ValueError("lanczos takes no M; take lobpcg or shift_invert")
    if has_mass or (which == "SM" and method is None):
        return which, "lobpcg"
    return "magnitude" if which == "LM" else which, "lanczos"
