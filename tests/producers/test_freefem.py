"""FreeFEM assembles matrices and multiplies them; Shardmat reads what FreeFEM printed. Then FreeFEM reads a solution that
Shardmat wrote."""

import os
import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from support import INPUT, CliTest, run  # noqa: E402

FREEFEM = os.environ["TEST_FREEFEM"]
PROBLEM = """
mesh Th = square(9, 7);
fespace Vh(Th, P2);
varf convection(u, v) = int2d(Th)(dx(u) * dx(v) + dy(u) * dy(v) + u * v + 3 * dx(u) * v);
varf diffusion(u, v) = int2d(Th)(dx(u) * dx(v) + dy(u) * dy(v) + u * v) + on(1, u = 0);
varf rhs(u, v) = int2d(Th)(x * v) + on(1, u = 0);
matrix A = convection(Vh, Vh);
matrix S = diffusion(Vh, Vh, sym = true);
real[int] b = rhs(0, Vh);
"""
PRINT = "{{ ofstream file(\"{0}.txt\"); file.precision(17); file << {0} << endl; }}\n"


class FreeFem(CliTest):
    def freefem(self, script):
        self.write("script.edp", script)
        result = run([FREEFEM, "-nw", "-v", 0, "script.edp"], self.directory)
        self.assertEqual(result.code, 0, result)
        return result.out

    def test_products_and_solutions_agree(self):
        self.freefem(PROBLEM + """
            real[int] p(Vh.ndof);
            for (int i = 0; i < p.n; i++) p[i] = sin(i + 1.);
            real[int] q = A * p;
            real[int] r = S * p;
            matrix<complex> C = convection(Vh, Vh);
            """ + "".join(map(PRINT.format, "ASbpqrC")))
        for matrix, product in (("A.txt", "q.txt"), ("S.txt", "r.txt")):
            self.succeed("multiply", matrix, "--x", "p.txt", "--output", "y.npy", "--iterations", 0)
            expected = np.array(self.path(product).read_text().split()[1:], float)
            # Rows of boundary conditions have 1e30 on the diagonal.
            np.testing.assert_allclose(np.load(self.path("y.npy")), expected, rtol=1e-12, atol=1e-12)
        self.fail_with(INPUT, "convert", "C.txt", "o.npz", says=["C.txt:4", "complex"])

        self.succeed("solve", "S.txt", "--b", "b.txt", "--preconditioner", "jacobi", "--rtol", "1e-12", "--output", "u.txt")
        said = self.freefem(PROBLEM + """
            real[int] u = S^-1 * b, ours(u.n);
            { ifstream file("u.txt"); for (int i = 0; i < u.n; i++) file >> ours[i]; }
            ours -= u;
            cout << "difference " << ours.linfty << " of " << u.linfty << endl;
            """).split()
        at = said.index("difference")
        self.assertLess(float(said[at + 1]), 1e-8 * float(said[at + 3]))


if __name__ == "__main__":
    unittest.main()
