"""Runs the shardmat program (TEST_PROGRAM; the program refuses SHARDMAT_ variables that it does not know) in a temporary
directory, alone or under mpirun, always with a time limit. TEST_BACKEND=cuda runs the tests of the service on GPUs, each with as
many ranks as it wants and there are GPUs."""

import functools
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
FEM = ("convection", "elasticity_bar", "stokes")
PROGRAM = os.environ.get("TEST_PROGRAM") or shutil.which("shardmat") or str(ROOT / "build" / "tools" / "shardmat")
BACKEND = os.environ.get("TEST_BACKEND", "host")
if not os.access(PROGRAM, os.X_OK):
    sys.exit(f"{PROGRAM}: there is no such program; set TEST_PROGRAM to the shardmat that was built")
sys.path.insert(0, str(ROOT / "tests" / "fault"))
from growing_deadline import with_growing_deadline  # noqa: E402
from ranks import Ranks  # noqa: E402

LIMIT = 600  # seconds of one command: a hang, however busy the machine is
UNIT_ROUNDOFF = {"f64": 2.0**-53, "f32": 2.0**-24}

OK, USAGE, INPUT, RESOURCES, RANK_LOST, VERIFICATION = 0, 2, 3, 4, 5, 6


@functools.cache
def most_ranks():
    """The most ranks that a command or service on TEST_BACKEND may have here: with cuda one for each GPU."""
    if BACKEND == "host":
        return sys.maxsize
    return int(subprocess.run([ROOT / "deploy" / "gpu-count.sh"], capture_output=True, text=True, check=True).stdout)


_CACHE = tempfile.TemporaryDirectory(prefix="shardmat_cache_")  # removed when the tests end


def environment(**more):
    """This one with what mpirun wants in containers, as root and with more ranks than cores."""
    ours = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none",
                OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_odls_base_sigkill_timeout="1", OMP_NUM_THREADS="1", SHARDMAT_CACHE_DIR=_CACHE.name)
    return ours | more


def file_size_limit(limit_bytes):
    """For preexec_fn: a disk that is full after so many bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))


def address_space_limit(limit_bytes):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))


def read_terminal(ours):
    """What a program wrote to the other side of a terminal, which it has closed; closes this one."""
    text = b""
    try:
        while data := os.read(ours, 65536):
            text += data
    except OSError:  # the end of a terminal
        pass
    os.close(ours)
    return text


def own_lines(errors):
    """Without what MPI's topology library says where /sys is not mounted."""
    return [line for line in errors.splitlines() if not line.startswith("[hwloc/")]


def words_of(picture):
    """What is written in an SVG file."""
    return re.findall("<!-- (.*?) -->", picture.read_text(), re.DOTALL)


def has_matplotlib():
    """True if a Python that the program tries can draw."""
    attempts = [[python, "-c", "import matplotlib"] for python in ("python3", "/usr/bin/python3") if shutil.which(python)]
    return any(subprocess.run(attempt, capture_output=True).returncode == 0 for attempt in attempts)


def write_harwell_boeing(path, matrix, rhs, solution):
    """A Harwell-Boeing file with a right-hand side and the exact solution. SciPy writes those of a matrix alone."""
    scipy.io.hb_write(str(path), sp.csc_matrix(matrix))
    lines = path.read_text().splitlines()
    vectors = ["".join(f"{value:25.16E}" for value in vector[i:i + 3])
               for vector in (rhs, solution) for i in range(0, len(vector), 3)]
    lines[1] = lines[1][:56] + f"{len(vectors):14d}"
    lines[3] = lines[3][:52].ljust(52) + "(3E25.16)"
    lines.insert(4, f"F X{1:25d}{0:14d}")
    path.write_text("\n".join(lines + vectors) + "\n")


class Result:
    def __init__(self, command, code, out, err):
        self.command, self.code, self.out, self.err = " ".join(map(str, command)), code, out, err

    @property
    def messages(self):
        return [line for line in self.err.splitlines() if line.startswith("shardmat: ")]

    def __str__(self):
        return f"$ {self.command}\n{self.out[-3000:]}{self.err[-3000:]}\nexit code {self.code}"


def run(command, cwd, env=None, limit=LIMIT, preexec_fn=None):
    process = subprocess.Popen(list(map(str, command)), cwd=cwd, env=environment(**(env or {})), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=preexec_fn)
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)  # mpirun ends its ranks
        try:
            out, err = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        raise AssertionError(f"not done in {limit} s:\n{Result(command, None, out, err)}") from None
    return Result(command, process.returncode, out, err)


class CliTest(unittest.TestCase):
    """Every test has an empty directory in which its commands run."""

    maxDiff = 2000

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="shardmat_cli_"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def path(self, name):
        return self.directory / name

    def write(self, name, content):
        data = content if isinstance(content, bytes) else content.encode()
        self.path(name).write_bytes(data)
        return name

    def files(self):
        return sorted(p.name for p in self.directory.iterdir())

    def call(self, *arguments, ranks=0, **options):
        """shardmat ARGUMENTS, under mpirun if ranks are given."""
        if "cuda" in arguments:
            ranks = min(ranks, most_ranks())
        launcher = ["mpirun", "-n", ranks] if ranks else []
        return run([*launcher, PROGRAM, *arguments], self.directory, **options)

    def succeed(self, *arguments, **options):
        result = self.call(*arguments, **options)
        self.assertEqual(result.code, OK, result)
        self.assertEqual(result.messages, [], result)
        return result

    def outlast_the_deadline(self, *arguments, slow_bytes, deadlines=(0.5, 4, 60)):
        """Two ranks succeed although one needs longer than --timeout: it sleeps before it gets a buffer of at least `slow_bytes`."""
        library = os.environ.get("TEST_SLOW_CALLS")
        if not library:
            self.skipTest("nothing can be loaded before programs with sanitizers")

        def attempt(timeout):
            marker = self.path("slept")
            marker.unlink(missing_ok=True)
            self.succeed(*arguments, "--timeout", timeout, ranks=2, env={
                "LD_PRELOAD": library, "SLOW_BYTES": str(slow_bytes), "SLOW_SECONDS": str(1.5 * timeout), "SLOW_MARKER": str(marker)})
            self.assertTrue(marker.exists(), "no rank was slow")

        with_growing_deadline(attempt, deadlines)

    def interrupted(self, *arguments, number=signal.SIGUSR1, ranks=0, **more):
        """Exit code and output of a command with --monitor that got a signal, or mpirun for it, after its first iteration."""
        launcher = ["mpirun", "-n", str(ranks)] if ranks else []
        process = subprocess.Popen([*launcher, PROGRAM, *map(str, arguments), "--monitor"], cwd=self.directory, env=environment(**more),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        line = process.stderr.readline()
        while line and not line.strip()[:1].isdigit():
            line = process.stderr.readline()
        for _ in range(20 if ranks else 0):  # then all ranks iterate
            process.stderr.readline()
        process.send_signal(number)
        out, _ = process.communicate(timeout=LIMIT)
        return process.returncode, out

    def fail_with(self, code, *arguments, says=(), only=True, **options):
        """One line of message with each of the texts (and no other line if `only`), the code, and the directory as it was."""
        before = self.files()
        result = self.call(*arguments, **options)
        self.assertEqual(result.code, code, result)
        self.assertEqual(len(result.messages), 1, result)
        if only and not options.get("ranks"):
            self.assertEqual(len(own_lines(result.err)), 1, result)
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, result.messages[0], result)
        self.assertEqual(self.files(), before, result)
        return result

    def fail_on_every_rank(self, code, *arguments, ranks=3, says=(), env=None):
        """As fail_with, but with the exit code of each rank."""
        before = self.files()
        with tempfile.TemporaryDirectory(prefix="shardmat_ranks_") as record:
            with Ranks([PROGRAM, *arguments], ranks, record, env=environment(**(env or {})), cwd=self.directory) as started:
                codes = started.wait_for_exit(range(ranks), LIMIT)
                report = started.report()
                lines = [line for r in range(ranks) for line in own_lines(started.errors(r))]
        self.assertEqual(codes, [code] * ranks, report)
        self.assertEqual(len(lines), 1, report)
        for text in ["shardmat: ", *([says] if isinstance(says, str) else says)]:
            self.assertIn(text, lines[0], report)
        self.assertEqual(self.files(), before, report)

    def json_of(self, *arguments, **options):
        return json.loads(self.succeed(*arguments, "--json", "-", **options).out)


def fem_matrix(name):
    return sp.csr_matrix(scipy.io.mmread(str(DATA / f"{name}.mtx.gz")))


def write_vector(path, x, dataset="x"):
    if path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            file[dataset] = x
    elif path.suffix == ".npy":
        np.save(path, x)
    else:
        wide = x.astype(float)  # some versions of SciPy cut numbers of f32 off
        scipy.io.mmwrite(str(path), wide if x.ndim == 2 else wide[:, None], precision=17)
    return path.name


def read_vector(path, dataset="y"):
    if path.suffix == ".h5":
        with h5py.File(path, "r") as file:
            return file[dataset][()]
    if path.suffix == ".npy":
        return np.load(path)
    array = scipy.io.mmread(str(path))
    return array.ravel() if array.shape[1] == 1 else array


def write_binsparse(path, matrix, index_type=np.int64, value_type=np.float64):
    """A Binsparse file as another program writes it: variable-length descriptor, no /shardmat."""
    matrix = sp.csr_matrix(matrix)
    matrix.sort_indices()
    descriptor = {"version": "0.1", "format": "CSR", "shape": list(matrix.shape),
                  "number_of_stored_values": int(matrix.nnz),
                  "data_types": {"pointers_to_1": np.dtype(index_type).name, "indices_1": np.dtype(index_type).name,
                                 "values": np.dtype(value_type).name}}
    with h5py.File(path, "w") as file:
        file.attrs["binsparse"] = json.dumps({"binsparse": descriptor})
        file["pointers_to_1"] = matrix.indptr.astype(index_type)
        file["indices_1"] = matrix.indices.astype(index_type)
        file.create_dataset("values", data=matrix.data.astype(value_type), chunks=matrix.nnz > 0 or None,
                            compression="gzip" if matrix.nnz > 0 else None)
    return path.name


def read_binsparse(path):
    """Descriptor, matrix and arrays, by h5py and SciPy alone."""
    with h5py.File(path, "r") as file:
        descriptor = json.loads(file.attrs["binsparse"])["binsparse"]
        arrays = {name: file[name][()] for name in ("pointers_to_1", "indices_1", "values")}
    matrix = sp.csr_matrix((arrays["values"], arrays["indices_1"], arrays["pointers_to_1"]),
                           shape=tuple(descriptor["shape"]))
    return descriptor, matrix, arrays


def assert_product(test, y, matrix, x, alpha=1, beta=0, y0=None, type="f64", context=""):
    """y = alpha A x + beta y0, each row within its rounding bound. Matrix and vectors are rounded to f32 first if `type` is."""
    u = UNIT_ROUNDOFF[type]
    y0 = np.zeros(matrix.shape[0]) if y0 is None else y0
    expected = alpha * (matrix @ x) + beta * y0
    terms = np.diff(matrix.indptr) + 6
    bound = 2 * u * terms * (abs(alpha) * (abs(matrix) @ abs(x)) + abs(beta * y0))
    test.assertEqual(y.shape, expected.shape, context)
    wrong = np.flatnonzero(~(abs(y - expected) <= bound))
    test.assertEqual(wrong.size, 0, f"{context}: {wrong.size} wrong rows, first {wrong[:5]}: {y[wrong[:5]]}, not {expected[wrong[:5]]}")
