#!/usr/bin/env python3
"""Arrays of CuPy and PyTorch on a GPU: products, solutions and new values without a way through the host.

Exit code 77 without a GPU, or without both libraries.
"""

import importlib
import sys

import numpy as np
import scipy.sparse as sp

import shardmat
from checks import refused

N = 3000
A = (sp.random(N, N, 0.002, random_state=1) + sp.diags([-1.0, 5.0, -1.0], [-1, 0, 1], shape=(N, N))).tocsr()
RANDOM = np.random.default_rng(2)


class CuPy:
    def __init__(self):
        self.module = importlib.import_module("cupy")
        self.module.cuda.runtime.getDeviceCount()

    def to_gpu(self, array):
        return self.module.asarray(array)

    def to_host(self, array):
        return self.module.asnumpy(array)

    def stream(self):
        return self.module.cuda.Stream(non_blocking=True)

    def on(self, stream):
        return stream

    def array_type(self):
        return self.module.ndarray


class PyTorch:
    def __init__(self):
        self.module = importlib.import_module("torch")
        if not self.module.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU")

    def to_gpu(self, array):
        return self.module.from_numpy(np.ascontiguousarray(array)).cuda()

    def to_host(self, array):
        return array.cpu().numpy()

    def stream(self):
        return self.module.cuda.Stream()

    def on(self, stream):
        return self.module.cuda.stream(stream)

    def array_type(self):
        return self.module.Tensor


def products(library):
    for dtype, bound in ((np.float64, 1e-10), (np.float32, 1e-3)):
        m = shardmat.Matrix.from_scipy(A, dtype=dtype)
        wide = RANDOM.random((N, 5)).astype(dtype)
        whole = RANDOM.random((N, 8)).astype(dtype)
        for x in (wide[:, 0].copy(), wide, np.asfortranarray(wide)):
            y = m @ library.to_gpu(x)
            assert isinstance(y, library.array_type()) and y.shape == x.shape
            np.testing.assert_allclose(library.to_host(y), A @ x, rtol=bound)
            np.testing.assert_allclose(m @ x, A @ x, rtol=bound)
        columns = library.to_gpu(whole)[:, 2:5]  # with gaps, and not where an allocation begins
        np.testing.assert_allclose(library.to_host(m @ columns), A @ whole[:, 2:5], rtol=bound)
        with m.product(5) as product:
            x, y = library.to_gpu(wide), library.to_gpu(np.ones((N, 5), dtype))
            assert product.multiply(x, out=y, alpha=2, beta=3) is y
            np.testing.assert_allclose(library.to_host(y), 2 * (A @ wide) + 3, rtol=bound)
            np.testing.assert_allclose(library.to_host(product.multiply(x)), A @ wide, rtol=bound)
            np.testing.assert_allclose(product.multiply(x, out=np.empty((N, 5), dtype)), A @ wide, rtol=bound)


def streams(library):
    """Work of one stream: x is written, multiplied twice and read without waiting."""
    m = shardmat.Matrix.from_scipy(A)
    product, stream = m.product(3), library.stream()
    x = RANDOM.random((N, 3))
    expected = A @ (A @ (2 * x))
    for _ in range(20):
        with library.on(stream):
            on_gpu = library.to_gpu(x) * 2
            middle, y = on_gpu * 0, on_gpu * 0
            product.multiply(on_gpu, out=middle, stream=stream)
            product.multiply(middle, out=y, stream=stream)
            result = library.to_host(y)
        np.testing.assert_allclose(result, expected, rtol=1e-10)


def values(library):
    m = shardmat.Matrix.from_scipy(A, updatable=True)
    x = RANDOM.random(N)
    m.update_values(library.to_gpu(3 * A.data))
    np.testing.assert_allclose(library.to_host(m @ library.to_gpu(x)), 3 * (A @ x), rtol=1e-10)


def solutions(library):
    m = shardmat.Matrix.from_scipy(A)
    x = RANDOM.random((N, 2))
    b = library.to_gpu(A @ x)
    for right, expected in ((b, x), (library.to_gpu(A @ x[:, 0]), x[:, 0])):
        y = m.solve(right, solver="bicgstab", preconditioner="jacobi", rtol=1e-12)
        assert isinstance(y, library.array_type())
        np.testing.assert_allclose(library.to_host(y), expected, atol=1e-8)
    again = m.solver("bicgstab", "jacobi", columns=2, rtol=1e-12)
    near = again.solve(b, x0=library.to_gpu(x))
    np.testing.assert_allclose(library.to_host(near), x, atol=1e-8)
    assert again.results[0]["iterations"] <= 1, again.results[0]


def own_memory(library):
    ours = shardmat.empty((4, 3))
    theirs = library.module.from_dlpack(ours)
    del ours
    theirs[...] = 7
    assert library.to_host(theirs).sum() == 84


def mistakes(library):
    on_host = shardmat.Context(backend="host")
    m = shardmat.Matrix.from_scipy(A, context=on_host)
    refused(ValueError, "the matrix is on the host", lambda: m @ library.to_gpu(np.ones(N)))
    m = shardmat.Matrix.from_scipy(A)
    refused(ValueError, "the product takes", lambda: m @ library.to_gpu(np.ones(N - 1)))


def main():
    done = 0
    for library_class in (CuPy, PyTorch):
        try:
            library = library_class()
        except Exception as why:  # not installed, or without a GPU
            print(f"{library_class.__name__} is left out: {why}")
            continue
        for part in (products, streams, values, solutions, own_memory, mistakes):
            part(library)
            print(f"{library_class.__name__}: {part.__name__} passed", flush=True)
        done += 1
    return 0 if done else 77


if __name__ == "__main__":
    sys.exit(main())
