"""newton_check.py OUTPUT...: Newton's method converged quadratically in each output of newton and newton.py, and T and its
changes are those that SciPy finds another way: by a direct solver, with differences of two solutions for the changes."""

import re
import sys

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

n = 40
y, x = np.divmod(np.arange(n * n), n)
line = sp.diags([-np.ones(n - 1), np.r_[1, 2 * np.ones(n - 2), 1], -np.ones(n - 1)], [-1, 0, 1])
conduction = sp.csc_matrix(sp.kronsum(line, line))
radiates = np.where(x == n - 1, 0.1, 0)


def quarter(k):
    return ((x == 0) & (y // (n // 4) == k)).astype(float)


def temperature(heat, t):
    """T with conduction·T + 0.1 (T⁴ − 1) on the cold edge = heat."""
    for _ in range(30):
        change = sp.linalg.spsolve(conduction + sp.diags(4 * radiates * t**3).tocsc(), heat - conduction @ t - radiates * (t**4 - 1))
        t = t + change
        if np.linalg.norm(change) < 1e-12 * np.linalg.norm(t):
            return t
    sys.exit("newton_check.py: SciPy's own iterations did not converge")


expected = temperature(2 * quarter(0), np.ones(n * n))
STEP = 1e-4
changes = [(temperature(2 * quarter(0) + STEP * quarter(k), expected)[0] - temperature(2 * quarter(0) - STEP * quarter(k), expected)[0])
           / (2 * STEP) for k in range(4)]
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for load in ("0.5", "1.0"):
        steps = [(float(r), int(i)) for r, i in re.findall(rf"^load {load} step \d+ residual (\S+) iterations (\d+) ", text, re.M)]
        residuals = [r for r, _ in steps]
        assert 4 <= len(steps) <= 10 and steps[-1][1] == 0 and all(i > 0 for _, i in steps[:-1]), (path, load, steps)
        # Quadratic: the constant r_{k+1} / r_k² stays, until rounding errors.
        constants = [after / before**2 for before, after in zip(residuals, residuals[1:]) if after > 1e-9]
        assert len(constants) >= 2 and constants[-1] <= 2 * constants[-2], (path, load, residuals)
        assert any(before > 1e-5 and after < before**1.5 for before, after in zip(residuals, residuals[1:])), (path, load, residuals)
    corner, far, *found = re.search(r"^corner (\S+) far (\S+) changes (\S+) (\S+) (\S+) (\S+)$", text, re.M).groups()
    np.testing.assert_allclose([float(corner), float(far)], [expected[0], expected[-1]], rtol=1e-8, err_msg=path)
    np.testing.assert_allclose([float(f) for f in found], changes, rtol=1e-6, err_msg=path)
print("Newton's method:", *(f"{len(re.findall('^load', open(path, encoding='utf-8').read(), re.M))} steps in {path};" for path in sys.argv[1:]))
