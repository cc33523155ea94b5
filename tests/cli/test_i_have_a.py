"""The page "I have A as …": every line of it works, on files as the programs that it names write them."""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp
import scipy.sparse.linalg

from support import DATA, PROGRAM, ROOT, CliTest, environment, fem_matrix, write_harwell_boeing

PAGE = (ROOT / "tools" / "i-have-a.md").read_text()
PYTHON_PACKAGE = os.path.join(os.path.dirname(PROGRAM), "python")


def lines_of(page):
    """The command of each row of a table that has one, in order."""
    return re.findall(r"`((?:mpirun|shardmat) [^`]*)` \|$", page, re.M)


def vector(values):
    return np.array([1211214, len(values)], ">i4").tobytes() + np.asarray(values, ">f8").tobytes()


class Page(CliTest):
    def setUp(self):
        super().setUp()
        matrix = sp.csr_matrix(fem_matrix("elasticity_bar") + 1e3 * sp.eye(975))
        ones, lower = np.ones(975), sp.tril(matrix, format="coo")
        sp.save_npz(self.path("A.npz"), matrix)
        for name in ("A.petsc", "A.h5"):
            self.succeed("convert", "A.npz", name)
        shutil.copy(DATA / "elasticity_bar.mtx.gz", self.path("A.mtx.gz"))
        shutil.copy(DATA / "box.h5", self.path("box.h5"))
        for file in (DATA / "hypre").iterdir():
            shutil.copy(file, self.path(file.name))
        scipy.io.mmwrite(self.path("web.mtx"), sp.random(50, 50, 0.1, random_state=1))
        np.save(self.path("x.npy"), ones)
        sp.save_npz(self.path("D.npz"), sp.diags([[-1.0] * 8, np.arange(2.0, 11.0)], [1, 0]))
        with h5py.File(self.path("S.h5"), "w") as file:
            descriptor = {"version": "0.1", "format": "COO", "shape": [975, 975], "number_of_stored_values": int(lower.nnz),
                          "structure": "symmetric_lower",
                          "data_types": {"indices_0": "int32", "indices_1": "int32", "values": "float64"}}
            file.attrs["binsparse"] = json.dumps({"binsparse": descriptor})
            file["indices_0"], file["indices_1"], file["values"] = lower.row, lower.col, lower.data
        with h5py.File(self.path("cells.h5ad"), "w") as file:
            file["X/data"], file["X/indices"], file["X/indptr"] = matrix.data, matrix.indices, matrix.indptr
            file["X"].attrs["encoding-type"], file["X"].attrs["shape"] = "csr_matrix", matrix.shape
        self.write("x.petsc", vector(ones))
        self.write("system.petsc", self.path("A.petsc").read_bytes() + vector(ones))
        with h5py.File(self.path("K.mat"), "w", userblock_size=512) as file:
            columns = matrix.tocsc()
            file["K/jc"], file["K/ir"], file["K/data"] = columns.indptr, columns.indices, columns.data
            file["K"].attrs["MATLAB_sparse"] = 975
            file["b"] = ones[None, :]  # MATLAB's columns are HDF5's rows
            file["b"].attrs["MATLAB_class"] = np.bytes_("double")
        scipy.io.savemat(self.path("old.mat"), {"K": matrix, "b": ones[:, None]})
        with h5py.File(self.path("oct.h5"), "w") as file:  # as Octave's save -hdf5
            for name, parts in (("K/value", {"nr": 975, "cidx": columns.indptr[:, None], "ridx": columns.indices[:, None],
                                             "data": columns.data[:, None]}), ("b", {"value": ones[None, :]})):
                for part, values in parts.items():
                    file[f"{name}/{part}"] = values
                file[name[0]].attrs["OCTAVE_NEW_FORMAT"] = 1
        scipy.io.hb_write(str(self.path("A.rua")), matrix.tocsc())
        shutil.copy(DATA / "freefem" / "S.txt", self.path("F.txt"))
        shutil.copy(DATA / "freefem" / "x.txt", self.path("f.txt"))
        write_harwell_boeing(self.path("B.rua"), matrix, matrix @ ones, ones)
        self.write("job_STIF1.mtx", "1,1, 1,1, 4.\n2,1, 1,1, -1.\n2,1, 2,1, 3.\n")
        self.write("job.sti", "1 1 4.\n1 2 -1.\n2 2 3.\n")
        self.write("job.dof", "1.1\n2.1\n")
        self.write("job.inp", "*NODE\n1, 0, 0, 0\n2, 1, 0, 0\n")
        self.write("mesh.msh", "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n325\n" +
                   "".join(f"{i + 1} {i % 13} {i // 13 % 5} {i // 65}\n" for i in range(325)) + "$EndNodes\n")
        whole = matrix.tocoo()
        for name, entries, base in (("A.ijv", whole, 0), ("L.ijv", lower, 1)):
            self.write(name, "".join(f"{i + base} {j + base} {v!r}\n" for i, j, v in
                                     zip(entries.row.tolist(), entries.col.tolist(), entries.data.tolist())))
        for rank, rows in enumerate((matrix[:500], matrix[500:])):
            with h5py.File(self.path(f"R.{rank:05d}.h5"), "w") as file:
                file["A/ia"], file["A/ja"], file["A/a"] = rows.indptr, rows.indices, rows.data
        with h5py.File(self.path("G.h5"), "w") as file:
            for rank in range(2):
                group = file.create_group(f"rank_{rank:05d}")
                group["rows"], group["columns"], group["values"] = [0, rank], [0, rank], [2.0, 3.0]

        (code,) = [one for one in re.findall(r"```python\n(.*?)```", PAGE, re.S) if "waves" in one]
        directory = os.getcwd()
        os.chdir(self.directory)
        try:
            exec(code, {"scipy": scipy, "numpy": np})
        finally:
            os.chdir(directory)

    def shell(self, line):
        environ = environment(PATH=os.pathsep.join([os.path.dirname(PROGRAM), os.environ["PATH"]]))
        return subprocess.run(["bash", "-c", line], cwd=self.directory, env=environ, capture_output=True, text=True, timeout=600)

    def test_every_line_works(self):
        lines = lines_of(PAGE)
        self.assertGreater(len(lines), 20)
        self.assertEqual(len(lines), PAGE.count("`shardmat ") + PAGE.count("`mpirun -n 2") - PAGE.count("`shardmat info FILE`"))
        in_order = [line for line in lines if "shards" in line or "waves" in line]
        files = [line for line in lines if line not in in_order]
        with ThreadPoolExecutor(2) as pool:  # a start of MPI mostly waits
            results = list(zip(files, pool.map(self.shell, files)))
        results += [(line, self.shell(line)) for line in in_order]  # each needs the one before
        for line, result in results:
            with self.subTest(line=line):
                self.assertEqual(result.returncode, 0, result.stdout[-2000:] + result.stderr)
        np.testing.assert_array_equal((scipy.io.mmread(self.path("back.mtx")) != sp.load_npz(self.path("A.npz"))).nnz, 0)
        waves, x = sp.load_npz(self.path("waves.npz")), np.load(self.path("waves_x.npy"))
        expected = scipy.sparse.linalg.spsolve(waves.tocsc(), np.load(self.path("waves_b.npy")))
        np.testing.assert_allclose(x, expected, atol=1e-5 * abs(expected).max())
        y = np.load(self.path("y.npy"))
        np.testing.assert_allclose(y, sp.load_npz(self.path("A.npz")) @ np.ones(975))
        np.testing.assert_allclose(np.frombuffer(self.path("y.petsc").read_bytes()[8:], ">f8"), y, rtol=1e-12)

    @unittest.skipUnless(shutil.which("FreeFem++"), "this machine has no FreeFEM (deploy/install-dependencies.sh --producers)")
    def test_freefem_writes_where_its_nodes_lie(self):
        subprocess.run([sys.executable, DATA / "make_mesh.py", "8", "3", "3", self.path("box.mesh")], check=True)
        (lines,) = re.findall(r"```freefem\n(.*?)```", PAGE, re.S)
        for degree in ("P1", "P2"):
            problem = (DATA / "elasticity_bar.edp").read_text().replace("P1", degree).replace("elasticity_bar.txt", f"{degree}.txt")
            self.write("job.edp", problem + lines)
            ran = self.shell("FreeFem++ -nw -v 0 job.edp")
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            solve = ("solve", f"{degree}.txt", "--preconditioner", "multigrid", "--backend", "host", "--b", "random")
            blind = self.json_of(*solve)
            for ranks in (1, 2):
                report = self.json_of(*solve, "--coordinates", "xyz.txt", ranks=ranks)
                self.assertEqual(report["multigrid"]["near_null_space"], "6 rigid-body modes")
                self.assertTrue(report["converged"])
                self.assertLessEqual(report["iterations"], blind["iterations"])

    @unittest.skipUnless(os.path.isdir(PYTHON_PACKAGE), "this build has no Python package")
    def test_the_python_lines_work(self):
        (code,) = [one for one in re.findall(r"```python\n(.*?)```", PAGE, re.S) if "shardmat" in one]
        code += "assert numpy.allclose(y, A @ numpy.ones(A.shape[1]))\n"
        result = subprocess.run(["/usr/bin/python3", "-c", code], cwd=self.directory, env=environment(PYTHONPATH=PYTHON_PACKAGE),
                                capture_output=True, text=True, timeout=600)
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main()
