#!/usr/bin/env python3
"""python_overhead.py [--rows N] [--rounds R]: what Python adds to a product, A @ x and product.multiply(x, out=y), over the same product
made by C++ in a loop. Paired: each round times all three, one after another; the medians of the differences are printed."""

import argparse
import statistics
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000, help="rows of a tridiagonal matrix")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--calls", type=int, default=200, help="products of each kind in a round")
    options = parser.parse_args()

    import numpy
    import scipy.sparse
    import shardmat

    n = options.rows
    matrix = scipy.sparse.diags([-1.0, 2.5, -1.0], [-1, 0, 1], shape=(n, n)).tocsr()
    context = shardmat.Context(backend="host", threads=1)
    a = shardmat.Matrix.from_scipy(matrix, context=context)
    product = a.product()
    x, y = numpy.ones(n), numpy.empty(n)

    def seconds(call):
        begin = time.perf_counter()
        for _ in range(options.calls):
            call()
        return (time.perf_counter() - begin) / options.calls

    a @ x
    differences = {"A @ x": [], "product.multiply(x, out=y)": []}
    alone = []
    for _ in range(options.rounds):
        of_cpp = statistics.fmean(product._native.seconds(x, y, options.calls))
        alone.append(of_cpp)
        differences["A @ x"].append(seconds(lambda: a @ x) - of_cpp)
        differences["product.multiply(x, out=y)"].append(seconds(lambda: product.multiply(x, out=y)) - of_cpp)
    print(f"{n} rows, {matrix.nnz} entries; a product of C++: {1e6 * statistics.median(alone):.2f} µs")
    for name, values in differences.items():
        print(f"{name:28} adds {1e6 * statistics.median(values):.2f} µs (median of {options.rounds} paired rounds)")


if __name__ == "__main__":
    main()
