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


def elastic_plate(columns, rows, seed=3, hold=True):
    """A plate of square elements in plane stress, held at its left edge or by nothing, with its nodes in any order: A, and where the nodes lie."""
    at = np.array([-1, 1]) / np.sqrt(3)
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    law = np.array([[1, 0.3, 0], [0.3, 1, 0], [0, 0, 0.35]]) / 0.91
    element = np.zeros((8, 8))
    for s in at:
        for t in at:
            dx, dy = corners[:, 0] * (1 + corners[:, 1] * t) / 2, corners[:, 1] * (1 + corners[:, 0] * s) / 2
            strain = np.zeros((3, 8))
            strain[0, ::2], strain[1, 1::2], strain[2, ::2], strain[2, 1::2] = dx, dy, dy, dx
            element += strain.T @ law @ strain / 4
    number = np.random.default_rng(seed).permutation((columns + 1) * (rows + 1)).reshape(columns + 1, rows + 1)
    nodes = np.stack([number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]], -1).reshape(-1, 4)
    unknowns = (2 * nodes[:, :, None] + [0, 1]).reshape(-1, 8)
    values = np.tile(element.ravel(), len(nodes))
    a = sp.csr_matrix((values, (np.repeat(unknowns, 8, axis=1).ravel(), np.tile(unknowns, 8).ravel())))
    held = np.zeros(a.shape[0])
    if hold:
        held[[2 * number[0], 2 * number[0] + 1]] = 1
    a = sp.csr_matrix(sp.diags(1 - held) @ a @ sp.diags(1 - held) + sp.diags(held))
    xy = np.empty((number.size, 2))
    xy[number.ravel()] = np.stack(np.meshgrid(np.arange(columns + 1), np.arange(rows + 1), indexing="ij"), -1).reshape(-1, 2)
    return a, xy


def rigid_modes(xy):
    """Two translations and a rotation, with a row for each unknown."""
    modes = np.zeros((2 * len(xy), 3))
    modes[::2, 0] = modes[1::2, 1] = 1
    modes[::2, 2], modes[1::2, 2] = -xy[:, 1], xy[:, 0]
    return modes
