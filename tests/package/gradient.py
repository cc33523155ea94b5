"""The gradient of ‖A·x − b‖², where A is a matrix of Shardmat: products with A forward, with A.T backward, of one stored matrix.

With PyTorch as a function that autograd differentiates (twice, too), checked by torch.autograd.gradcheck; without it
by differences of the norm. Says which of both it was."""

import numpy as np
import scipy.sparse as sp

import shardmat

random = np.random.default_rng(4)
matrix = sp.random(60, 35, 0.15, random_state=4).tocsr()
a = shardmat.Matrix.from_scipy(matrix)
b = random.standard_normal(60)


def norm_and_gradient(x):
    """‖A·x − b‖² and 2·Aᵀ·(A·x − b)."""
    r = a @ x - b
    return r @ r, 2 * (a.T @ r)


x = random.standard_normal(35)
_, gradient = norm_and_gradient(x)
step = 1e-6
for j in range(35):
    e = step * (np.arange(35) == j)
    slope = (norm_and_gradient(x + e)[0] - norm_and_gradient(x - e)[0]) / (2 * step)
    assert abs(slope - gradient[j]) < 1e-6 * (1 + abs(gradient).max()), (j, slope, gradient[j])
np.testing.assert_allclose(gradient, 2 * matrix.T @ (matrix @ x - b), atol=1e-12)

try:
    import torch
except ImportError:
    print("gradient: checked by differences; there is no PyTorch here (package python3-torch)")
    raise SystemExit

class Multiply(torch.autograd.Function):
    """y = M·x for a matrix or its transpose; its derivative is a product with M.T."""

    @staticmethod
    def forward(context, x, m):
        context.m = m
        return torch.from_numpy(m @ x.detach().numpy())

    @staticmethod
    def backward(context, of_y):
        return Multiply.apply(of_y, context.m.T), None


t = torch.from_numpy(x).requires_grad_()
right = torch.from_numpy(b)


def norm(t):
    return ((Multiply.apply(t, a) - right) ** 2).sum()


norm(t).backward()
np.testing.assert_allclose(t.grad.numpy(), gradient, atol=1e-12)
assert torch.autograd.gradcheck(norm, (t,)) and torch.autograd.gradgradcheck(norm, (t,))
print("gradient: checked by PyTorch")
