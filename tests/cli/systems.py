"""Systems that tests solve, and what solves them."""

import json

import numpy as np
import scipy.sparse as sp

from support import CliTest, read_vector, write_binsparse, write_vector

NOT_CONVERGED = 7


def laplacian(n):
    one = sp.diags([-1, 2, -1], [-1, 0, 1], shape=(n, n))
    return sp.csr_matrix(sp.kronsum(one, one))


def convection_diffusion(n, speed):
    one = sp.diags([-1, 2, -1], [-1, 0, 1], shape=(n, n))
    wind = speed * sp.diags([-1, 1], [-1, 0], shape=(n, n))
    return sp.csr_matrix(sp.kronsum(one + wind, one))


def saddle(n):
    """Symmetric and indefinite, as Stokes' equations are."""
    a, rng = laplacian(n), np.random.default_rng(3)
    b = sp.random(n, n * n, density=0.2, random_state=4, data_rvs=rng.standard_normal)
    return sp.csr_matrix(sp.bmat([[a, b.T], [b, None]]))


def stokes(n):
    """Velocities on the edges of n × n cells, and pressures in all but one of them. MUMPS delays pivots, and wants more room."""
    line = lambda k: sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(k, k))
    one, few = sp.eye(n), sp.eye(n - 1)
    difference = sp.diags([-1.0, 1.0], [0, 1], shape=(n - 1, n)).T
    k = sp.block_diag([sp.kron(line(n - 1), one) + sp.kron(few, line(n)), sp.kron(line(n), few) + sp.kron(one, line(n - 1))])
    b = sp.csr_matrix(sp.hstack([sp.kron(difference, one), sp.kron(one, difference)]))[1:]
    return sp.csr_matrix(sp.bmat([[k, b.T], [b, None]]))


def badly_scaled(n):
    scale = sp.diags(10.0 ** np.linspace(-1.5, 1.5, n * n))
    return sp.csr_matrix(scale @ laplacian(n) @ scale)


def cantilever(counts, size, free=False):
    """Stiffness of a regular mesh of Q4 (plane stress) or Hex8 elements of this size, held where x = 0 unless free; a load at
    the other end."""
    d = len(counts)
    corners = np.array(np.meshgrid(*[[0, 1]] * d, indexing="ij")).reshape(d, -1).T
    signs = 2 * corners - 1
    young, nu = 210e9, 0.3
    if d == 2:
        law = young / (1 - nu**2) * np.array([[1, nu, 0], [nu, 1, 0], [0, 0, (1 - nu) / 2]])
    else:
        law = np.zeros((6, 6))
        law[:3, :3] = young * nu / ((1 + nu) * (1 - 2 * nu))
        law += young / (2 * (1 + nu)) * np.diag([2, 2, 2, 1, 1, 1])
    shears = [(i, j) for i in range(d) for j in range(i + 1, d)]
    element = 0
    for point in signs / np.sqrt(3):
        one = 1 + signs * point
        gradient = [signs[:, i] * np.prod(np.delete(one, i, 1), axis=1) / 2**d * 2 / size[i] for i in range(d)]
        strain = np.zeros((d + len(shears), d * len(signs)))
        for i in range(d):
            strain[i, i::d] = gradient[i]
        for row, (i, j) in enumerate(shears, d):
            strain[row, i::d], strain[row, j::d] = gradient[j], gradient[i]
        element = element + strain.T @ law @ strain * np.prod(size) / 2**d
    nodes = np.arange(np.prod(np.array(counts) + 1)).reshape(np.array(counts) + 1)
    cells = np.array([[nodes[tuple(cell + corner)] for corner in corners] for cell in np.ndindex(*counts)])
    unknowns = (cells[:, :, None] * d + np.arange(d)).reshape(len(cells), -1)
    width = unknowns.shape[1]
    matrix = sp.coo_matrix((np.tile(element.ravel(), len(cells)),
                            (np.repeat(unknowns, width, axis=1).ravel(), np.tile(unknowns, (1, width)).ravel()))).tocsr()
    end = nodes[-1].size * d
    b = np.zeros(matrix.shape[0])
    b[-end + d - 1::d] = -1000
    return (matrix, b) if free else (matrix[end:, end:].tocsr(), b[end:])


class Solving(CliTest):
    def solution(self, matrix, b, *options, ranks=0, code=0):
        """x and the report's first column."""
        write_binsparse(self.path("a.h5"), matrix)
        write_vector(self.path("b.npy"), b)
        result = self.call("solve", "a.h5", "--b", "b.npy", "--output", "x.npy", "--json", "report.json", "--force", *options,
                           ranks=ranks)
        self.assertEqual(result.code, code, result)
        return read_vector(self.path("x.npy"), "x"), json.loads(self.path("report.json").read_text())
