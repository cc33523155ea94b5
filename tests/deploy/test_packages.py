#!/usr/bin/env python3
"""Makes the packages of Debian and the archive, and installs, uses and removes them in a fresh Debian, which has nothing of this
machine. TEST_PACKAGES_BASE=DIR takes a tree of debootstrap (--variant=minbase) that was made before."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from trees import BUILD, ROOT, Tree, call, why_not

if why_not:
    print("skipped:", why_not)
    sys.exit(0)
FOREIGN = """
import h5py, numpy, scipy.sparse
a = scipy.sparse.random(40, 40, 0.2, format="csr", random_state=1)
with h5py.File("a.h5ad", "w") as file:
    for name in ("data", "indices", "indptr"):
        file[f"X/{name}"] = getattr(a, name)
    file["X"].attrs["encoding-type"], file["X"].attrs["shape"] = "csr_matrix", a.shape
"""
MULTIPLY = """
import numpy, scipy.sparse, shardmat
a = scipy.sparse.random(50, 50, 0.2, format="csr", random_state=1)
x = numpy.arange(50.0)
assert numpy.allclose(shardmat.Matrix.from_scipy(a) @ x, a @ x)
print(shardmat.Matrix.from_file("a.h5ad"), shardmat.__file__)
"""
C_PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(consumer LANGUAGES C CXX)
find_package(Shardmat 0.2 REQUIRED)
add_executable(c_interface c_interface.c)
target_link_libraries(c_interface PRIVATE shardmat::c)
add_executable(consumer consumer.cpp)
target_link_libraries(consumer PRIVATE shardmat::shardmat)
"""


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="shardmat_packages_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        made = cls.folder / "made"
        for form in ("DEB", "TGZ"):
            call(os.environ["TEST_CPACK"], "-G", form, "-B", made, cwd=BUILD)
        cls.packages = {file.name.split("_")[0]: file for file in made.glob("*.deb")}
        [cls.archive] = made.glob("*.tar.gz")
        cls.tree = Tree(cls.folder)
        (cls.tree.root / "packages").mkdir()
        for file in (*cls.packages.values(), cls.archive):
            shutil.copy(file, cls.tree.root / "packages")
        cls.tree.run("apt-get update")

    def use_programs(self, programs="/usr/bin"):
        """The main job, as a user who is not root."""
        job = (f"export PATH={programs}:$PATH; shardmat generate elasticity --n 8 --clamp 0.1 bar.h5 --force && "
               "shardmat partition bar.h5 cut.h5 --parts 2 --force && mpirun -n 2 shardmat multiply cut.h5 --verify && "
               "mpirun -n 2 shardmat solve cut.h5 --output x.npy && shardmat bench spmm poisson7:n=4 --backend host --rhs 2 --repetitions 1 && "
               "shardmat serve --help && shardmat info a.h5ad")
        said = self.tree.run(job, "tester")
        for words in ("verification   passed", "converged_rtol", "40 × 40"):
            self.assertIn(words, said)

    def test_1_lintian(self):
        if shutil.which("lintian") is None:
            self.skipTest("there is no lintian")
        result = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", *self.packages.values()], stdout=subprocess.PIPE, text=True)
        self.assertEqual((result.returncode, re.findall("^E: .*", result.stdout, re.M)), (0, []), result.stdout)

    def test_2_packages(self):
        self.assertLessEqual({"shardmat", "libshardmat-dev", "python3-shardmat"}, set(self.packages))
        names = ["shardmat", "libshardmat-dev", "python3-shardmat"]
        control = {name: call("dpkg-deb", "--field", self.packages[name], "Depends") for name in names}
        for name, depends in control.items():
            self.assertNotRegex(depends, "cuda|cusparse|nccl|cublas", name)
        # The programs alone, then what takes the libraries.
        self.tree.run(f"apt-get install --yes --no-install-recommends /packages/{self.packages['shardmat'].name} python3-h5py python3-scipy man-db")
        (self.tree.root / "home" / "tester" / "foreign.py").write_text(FOREIGN)
        self.tree.run("python3 foreign.py", "tester")
        self.use_programs()
        self.assertIn("--preconditioner", self.tree.run("MANROFFSEQ= man shardmat | sed 's/.\\x08//g'", "tester"))
        for path in ("/usr/share/doc/shardmat/README.md", "/usr/share/doc/shardmat/copyright", "/usr/share/doc/shardmat/tools/i-have-a.md",
                     "/usr/share/bash-completion/completions/shardmat", "/usr/share/zsh/vendor-completions/_shardmat", "/usr/share/man/man1/shardmat.1.gz",
                     "/usr/share/shardmat/schemas/solve.schema.json", "/usr/share/shardmat/systemd/shardmat.service"):
            self.assertTrue((self.tree.root / path[1:]).is_file(), path)
        unit = (self.tree.root / "usr/share/shardmat/systemd/shardmat.service").read_text()
        self.assertIn("ExecStart=/usr/bin/shardmat serve ", unit)
        self.tree.run("apt-get install --yes --no-install-recommends g++ gcc cmake make pkg-config "
                      + " ".join(f"/packages/{self.packages[name].name}" for name in names[1:]))
        home = self.tree.root / "home" / "tester"
        for name in ("c_interface.c", "consumer.cpp"):
            shutil.copy(ROOT / "tests" / "package" / name, home)
        (home / "CMakeLists.txt").write_text(C_PROJECT)
        (home / "multiply.py").write_text(MULTIPLY)
        self.assertIn("/usr/lib/python3/dist-packages/shardmat/", self.tree.run("python3 multiply.py", "tester"))
        self.tree.run("cd /home/tester; python3 multiply.py")  # by root, who may write compiled modules
        self.tree.run("cc c_interface.c -o by_pkg_config $(pkg-config --cflags --libs shardmat) && ./by_pkg_config && "
                      "cmake -S . -B build && cmake --build build && build/c_interface && mpirun -n 2 build/consumer", "tester")
        owned = {path for name in self.packages if name in names for path in self.tree.run(f"dpkg --listfiles {name}").splitlines()}
        self.tree.run("apt-get purge --yes " + " ".join(names))
        folders = {path for path in owned if (self.tree.root / path[1:]).is_dir()}
        left = [path for path in owned - folders if os.path.lexists(self.tree.root / path[1:])]
        self.assertEqual(left, [])
        self.assertEqual([path for path in self.tree.files() if "shardmat" in path.lower()], [])

    def test_3_an_archive_runs_wherever_it_is_unpacked(self):
        """Behind the packages: what they depend on is there still."""
        self.tree.run(f"mkdir /opt/first && tar -xzf /packages/{self.archive.name} -C /opt/first --strip-components=1")
        for place in ("/opt/first", "/srv/second place"):
            if place != "/opt/first":
                self.tree.run(f"mv /opt/first '{place}'")
            self.use_programs(f"'{place}/bin'")
            self.tree.run(f"export PYTHONPATH=$(echo '{place}'/lib/python3*/site-packages); python3 multiply.py", "tester")


if __name__ == "__main__":
    unittest.main(failfast=True)
