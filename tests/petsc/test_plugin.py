"""PETSc programs with the plug-in, by options only: as many iterations as without, and what is refused."""

import glob
import os
import re
import subprocess
import tempfile
import unittest

from runs import run

PROGRAMS = os.environ["TEST_PROGRAMS"]  # a folder
TUTORIALS = glob.glob("/usr/share/petsc/*/share/petsc/examples/src/ksp/ksp/tutorials")


def own(name):
    return os.path.join(PROGRAMS, name)


class Programs(unittest.TestCase):
    """The test programs that call PETSc's functions one by one; -malloc_dump prints memory that was not freed."""

    def passes(self, name, ranks, *options):
        done = run(own(name), ranks, *options, "-malloc_debug", "-malloc_dump")
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "passed"), done.stdout + done.stderr)
        self.assertNotIn("bytes", done.stderr)

    def test_matrices(self):
        for ranks in (1, 2, 3):
            with self.subTest(ranks=ranks):
                self.passes("petsc_matrix_test", ranks, "-mat_type", "shardmat")

    def test_solvers(self):
        for ranks, kind in ((1, "shardmat"), (2, "shardmat"), (1, "aij"), (2, "aij")):
            with self.subTest(ranks=ranks, kind=kind):
                self.passes("petsc_solver_test", ranks, "-mat_type", kind)


class Unchanged(unittest.TestCase):
    """A program that knows nothing of Shardmat."""

    program = own("petsc_program")
    pattern = r"iterations (?P<iterations>\d+) reason (?P<reason>\w+) error (?P<error>\S+)"

    def solved(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return re.search(self.pattern, done.stdout).groupdict()

    def compare(self, ranks, preconditioner):
        options = ("-pc_type", preconditioner)
        plain = self.solved(run(self.program, ranks, *options, plugin=False))
        done = run(self.program, ranks, *options, "-mat_type", "shardmat", "-ksp_view_mat", "::ascii_info")
        ours = self.solved(done)
        self.assertLessEqual(abs(int(ours["iterations"]) - int(plain["iterations"])), 1)
        self.assertAlmostEqual(float(ours["error"]), float(plain["error"]), delta=0.1 * float(plain["error"]))
        products = int(re.search(r"Shardmat: products=(\d+)", done.stdout).group(1))
        self.assertGreater(products, int(ours["iterations"]))

    def test_preconditioners_of_petsc(self):
        for ranks in (1, 2):
            for preconditioner in ("jacobi", "bjacobi", "asm", "gamg"):
                with self.subTest(ranks=ranks, preconditioner=preconditioner):
                    self.compare(ranks, preconditioner)

    def test_half_of_symmetric_matrices(self):
        done = run(self.program, 2, "-pc_type", "gamg", "-mat_type", "shardmat", "-mat_shardmat_storage", "symmetric",
                   "-shardmat_backend", "host", "-ksp_view_mat", "::ascii_info")
        self.assertGreater(int(self.solved(done)["iterations"]), 0)
        self.assertRegex(done.stdout, "Shardmat: kernel=[a-z_]*sym")

    def test_whole_solver(self):
        for ranks, preconditioner in ((1, "none"), (2, "none"), (1, "jacobi"), (2, "pbjacobi")):
            with self.subTest(ranks=ranks, preconditioner=preconditioner):
                options = ("-pc_type", preconditioner, "-ksp_norm_type", "unpreconditioned")
                plain = self.solved(run(self.program, ranks, *options, plugin=False))
                ours = self.solved(run(self.program, ranks, *options, "-ksp_type", "shardmat", "-mat_type", "shardmat"))
                self.assertLessEqual(abs(int(ours["iterations"]) - int(plain["iterations"])), 1)
                self.assertEqual(ours["reason"], "CONVERGED_RTOL")
                self.assertLess(float(ours["error"]), 1e-6)


    def test_blocks_of_one_are_jacobi(self):
        for ranks in (1, 2, 3):
            with self.subTest(ranks=ranks):
                options = ("-bs", "1", "-ksp_norm_type", "unpreconditioned", "-ksp_type", "shardmat", "-mat_type", "shardmat")
                jacobi, blocks = (self.solved(run(self.program, ranks, "-pc_type", kind, *options)) for kind in ("jacobi", "pbjacobi"))
                self.assertEqual(jacobi["iterations"], blocks["iterations"])
                self.assertGreater(int(jacobi["iterations"]), 5)
                self.assertAlmostEqual(float(jacobi["error"]), float(blocks["error"]), delta=1e-3 * float(jacobi["error"]))


class Refused(unittest.TestCase):
    program = own("petsc_program")

    def refused(self, *options, words, ranks=1):
        done = run(self.program, ranks, *options)
        self.assertNotEqual(done.returncode, 0)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_other_preconditioners(self):
        for name in ("ilu", "bjacobi"):
            with self.subTest(name=name):
                self.refused("-ksp_type", "shardmat", "-pc_type", name,
                             words=(f"does not apply -pc_type {name}", "none, jacobi, pbjacobi"))

    def test_other_matrices(self):
        self.refused("-ksp_type", "shardmat", "-pc_type", "jacobi", "-mat_type", "baij",
                     words=("-mat_type aij and shardmat", "baij"))

    def test_names_that_shardmat_does_not_know(self):
        self.refused("-mat_type", "shardmat", "-shardmat_backend", "host", "-mat_shardmat_kernel", "csr_hots",
                     words=("Shardmat: ", "csr_host"), ranks=2)
        self.refused("-mat_type", "shardmat", "-shardmat_backend", "abacus", words=("Shardmat: ", "abacus", "host or cuda"))


class Help(unittest.TestCase):
    def test_options_are_listed(self):
        done = run(own("petsc_program"), 1, "-help", "-mat_type", "shardmat", "-ksp_type", "shardmat", "-pc_type", "jacobi")
        self.assertEqual(done.returncode, 0, done.stderr)
        for option in ("-ksp_shardmat_method", "-ksp_shardmat_restart", "-ksp_shardmat_settings", "-mat_shardmat_kernel", "-mat_shardmat_storage",
                       "-mat_shardmat_products", "-shardmat_backend", "-shardmat_threads", "-shardmat_timeout"):
            self.assertTrue(option in done.stdout, option)


@unittest.skipUnless(TUTORIALS, "PETSc's tutorials are not installed (package libpetsc3.18-dev-examples)")
class Tutorial(Unchanged):
    """ex2.c of PETSc's tutorials, compiled as it is."""

    pattern = r"Norm of error (?P<error>\S+) iterations (?P<iterations>\d+)"

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.program = os.path.join(cls.folder.name, "ex2")
        source = os.path.join(TUTORIALS[0], "ex2.c")
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "petsc"], check=True, capture_output=True, text=True)
        subprocess.run([os.environ["TEST_MPICC"], source, "-o", cls.program, *flags.stdout.split(), "-lm"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_whole_solver(self):
        for ranks, preconditioner in ((1, "none"), (2, "jacobi"), (2, "pbjacobi")):
            with self.subTest(ranks=ranks, preconditioner=preconditioner):
                options = ("-pc_type", preconditioner, "-ksp_norm_type", "unpreconditioned")
                plain = self.solved(run(self.program, ranks, *options, "-ksp_type", "cg", plugin=False))
                ours = self.solved(run(self.program, ranks, *options, "-ksp_type", "shardmat", "-mat_type", "shardmat"))
                self.assertLessEqual(abs(int(ours["iterations"]) - int(plain["iterations"])), 1)
                self.assertAlmostEqual(float(ours["error"]), float(plain["error"]), delta=0.1 * float(plain["error"]))


if __name__ == "__main__":
    unittest.main()
