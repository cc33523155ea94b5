"""What the test programs of the Python package share."""

import numpy as np
import scipy.sparse as sp


def refused(kind, words, call):
    """Asserts that a call raises an exception of this kind, with these words."""
    try:
        call()
    except kind as error:
        assert words in str(error), str(error)
        return
    raise AssertionError(f"no {kind.__name__}")


def tridiagonal(n, dtype=np.float64):
    return sp.diags([-1.0, 2.5, -0.5], [-1, 0, 1], shape=(n, n), dtype=dtype).tocsr()
