"""Newton's method from Python: heat that enters a plate on one edge leaves the opposite one by radiation, 0.1 (T⁴ − 1).

A step solves J(T)·T_new = 0.3 T⁴ + 0.1 + q from the T at hand, so that its first residual is that of T. Then the changes of T
by four other heats in one solve. newton_check.py compares what is printed with SciPy."""

import time

import numpy as np
import scipy.sparse as sp

import shardmat

n = 40
y, x = np.divmod(np.arange(n * n), n)
line = sp.diags([-np.ones(n - 1), np.r_[1, 2 * np.ones(n - 2), 1], -np.ones(n - 1)], [-1, 0, 1])
conduction = sp.csr_matrix(sp.kronsum(line, line))
conduction.sort_indices()
diagonal = np.flatnonzero(conduction.indices == np.repeat(np.arange(n * n), np.diff(conduction.indptr)))
radiates = np.where(x == n - 1, 0.1, 0)
heat = np.where((x == 0) & (y < n // 4), 2.0, 0)
cases = ((x == 0) & (y // (n // 4) == np.arange(4)[:, None])).T.astype(float)


def jacobian(t):
    matrix = conduction.copy()
    matrix.data[diagonal] += 4 * radiates * t**3
    return matrix


t = np.ones(n * n)
a = shardmat.Matrix.from_scipy(jacobian(t), updatable=True)
solver = a.solver("cg", "jacobi", rtol=1e-13)
for load in (0.5, 1.0):  # the second one begins with the T of the first
    for step in range(20):
        times = [time.perf_counter()]
        a.update_values(jacobian(t).data)
        times.append(time.perf_counter())
        solver.refresh()
        times.append(time.perf_counter())
        t = solver.solve(radiates * (3 * t**4 + 1) + load * heat, x0=t)
        times.append(time.perf_counter())
        result = solver.results[0]
        total, (values, refresh, solve) = 1e3 * (times[-1] - times[0]), 1e3 * np.diff(times)
        print(f"load {load} step {step} residual {result['history'][0]:.3e} iterations {result['iterations']} ms {total:.2f} = "
              f"values {values:.2f} + refresh {refresh:.2f} + solve {solve:.2f}")
        if result["iterations"] == 0:  # T solves it
            break
changes = a.solver("cg", "jacobi", rtol=1e-10, columns=4)
by_case = changes.solve(cases)
print(f"corner {t[0]:.10f} far {t[-1]:.10f} changes", *(f"{c:.8f}" for c in by_case[0]))
