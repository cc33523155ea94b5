#!/usr/bin/env python3
"""The job scripts of deploy/slurm on a cluster of one node, and what Slurm says of them for several nodes (test-only)."""

import json
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time
import unittest

from slurm_cluster import Cluster, missing

if missing():
    print("skipped:", missing())
    sys.exit(0)
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from support import DATA, OK, PROGRAM, environment, fem_matrix, read_vector, run  # noqa: E402
from test_doctor import FOUND, Folder  # noqa: E402

SCRIPTS = ROOT / "deploy" / "slurm"
TWO_RANKS = ("--gpus-per-node=0", "--ntasks-per-node=2", "--cpus-per-task=1")
# Comes nearer to its end all the time, but takes longer than anyone waits.
ENDLESS = ("elasticity:n=24,clamp=0.02", "--solver", "gmres", "--restart", 2, "--preconditioner", "none", "--max-iterations", 10**9,
           "--rtol", "1e-14", "--no-measure", "--no-advice", "--monitor", "--backend", "host")


def environment_of_jobs(folder):
    """Jobs find shardmat as a user's PATH says, and nvidia-smi as a node with GPUs has it."""
    (folder / "bin").mkdir()
    smi = folder / "bin" / "nvidia-smi"
    smi.write_text('#!/bin/sh\ncase $* in *--query-gpu=pci.bus_id*) echo "00000000:0${*##*--id=}:00.0" ;; *) exit 9 ;; esac\n')
    smi.chmod(0o755)
    return os.pathsep.join([str(folder / "bin"), str(pathlib.Path(PROGRAM).parent), os.environ["PATH"]])


def processes(words):
    """Process ids of shardmat whose command line has the words."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "comm").read_text() == "shardmat\n" and words in (entry / "cmdline").read_text().replace("\0", " "):
                found.append(int(entry.name))
        except OSError:
            continue
    return sorted(found)


class SlurmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="shardmat_slurm_"))
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        path = environment_of_jobs(folder)
        cls.cluster = Cluster(folder / "cluster")
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.cluster.environment |= {name: value for name, value in environment().items() if name.startswith(("OMPI_", "SHARDMAT_"))}
        cls.cluster.environment["PATH"] = path

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="shardmat_job_"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def submit(self, script, *arguments, options=TWO_RANKS, **variables):
        job = self.cluster.submit("--chdir", self.directory, *options, SCRIPTS / script, *arguments, **variables)
        self.addCleanup(self.cluster.call, "scancel", job, check=False)
        return job

    def log(self, job):
        return "".join(path.read_text() for path in self.directory.glob(f"*-{job}.log"))

    def until(self, job, pattern):
        """The match in the log of the job."""
        def look():
            found = re.search(pattern, self.log(job), re.M)
            if not found and self.cluster.state(job) in ("FAILED", "COMPLETED", "CANCELLED"):
                raise AssertionError(f"job {job} ended without '{pattern}':\n{self.log(job)}")
            return found

        return self.cluster.wait_for(f"'{pattern}' of job {job}", look)

    def end(self, job):
        """State and exit code."""
        return self.cluster.wait_for_end(job)


class Solve(SlurmTest):
    def test_a_solve(self):
        shutil.copy(DATA / "elasticity_bar.mtx.gz", self.directory)
        job = self.submit("solve.slurm", "elasticity_bar.mtx.gz", "--rtol", "1e-10", "--null-space", "none", options=("--gpus-per-node=2", *TWO_RANKS[1:]))
        self.assertEqual(self.end(job), ("COMPLETED", "0:0"), self.log(job))
        x = read_vector(self.directory / f"solve-{job}" / "x.h5", "x")
        matrix = fem_matrix("elasticity_bar")
        self.assertLess(abs(matrix @ x - 1).max(), 1e-7)
        report = json.loads((self.directory / f"solve-{job}" / "report.json").read_text())
        self.assertEqual(len(report["ranks"]), 2)
        # Each rank has its core and the GPU of its number.
        for rank in range(2):
            self.assertRegex(self.log(job), rf"(?m)^rank {rank} on n1: cores {rank}, GPU {rank} of 0,1 00000000:0{rank}:00.0$")
        self.assertNotIn("WARNING", self.log(job))

    def test_gpus_that_ranks_hide_from_each_other(self):
        job = self.submit("solve.slurm", "elasticity:n=5,clamp=0.1", options=("--gpus-per-node=2", "--gpus-per-task=1", *TWO_RANKS[1:]))
        self.assertEqual(self.end(job)[0], "COMPLETED", self.log(job))
        self.assertRegex(self.log(job), r"(?m)^rank 1 on n1: cores 1, GPU 1 of 1 .*WARNING: .*give --gpus-per-node, not --gpus-per-task$")

    def test_a_job_goes_on_from_its_last_x(self):
        """The signal goes to the script alone, as that of --signal=B:USR1@120 does."""
        job = self.submit("solve.slurm", *ENDLESS)
        folder = self.directory / f"solve-{job}"

        def residuals():
            """Of each start."""
            return [[float(line.split()[1]) for line in part.splitlines() if re.fullmatch(r" *\d+ \d\.\d+e[+-]\d+", line)]
                    for part in re.split(r"Start \d goes on.*\n", self.log(job))]

        for start in (1, 2):
            self.cluster.wait_for("a smaller residual", lambda: (found := residuals()[-1]) and found[-1] < 0.9 * found[0])
            self.cluster.call("scancel", "--batch", "--signal=USR1", job)
            self.until(job, rf"^Start {start} goes on from solve-{job}/start.h5$")
            self.assertEqual(self.cluster.fields(job)["Restarts"], str(start))
        self.cluster.wait_for("iterations of all ranks", lambda: len(residuals()[-1]) > 20)
        for earlier, later in zip(residuals(), residuals()[1:]):
            self.assertLess(abs(later[0] / earlier[-1] - 1), 0.03, "the start knows nothing of the x before")
        # A cancelled job leaves its x, too.
        self.assertFalse((folder / "x.h5").exists())
        self.cluster.call("scancel", job)
        self.assertEqual(self.end(job)[0], "CANCELLED")
        self.cluster.wait_for("x", (folder / "x.h5").exists)
        self.assertIn("interrupted", (folder / "report.json").read_text())

    def test_the_end_of_the_time(self):
        """Slurm's own clock: a minute, of which the script gets the signal 45 s before the end."""
        job = self.submit("solve.slurm", *ENDLESS, options=(*TWO_RANKS, "--time=1", "--signal=B:USR1@45"))
        self.until(job, "^The time is nearly over: back into the queue$")
        self.until(job, r"Start 1 goes on from")

    def test_a_killed_rank_ends_the_job_and_is_named(self):
        job = self.submit("solve.slurm", *ENDLESS)
        self.until(job, r"^ *\d{3,} \d")
        ranks = processes(f"solve-{job}/x.h5")
        self.assertEqual(len(ranks), 2)
        began = time.monotonic()
        os.kill(ranks[1], signal.SIGKILL)
        state, code = self.end(job)
        print(f"the job ended {time.monotonic() - began:.2f} s after its rank")
        self.assertEqual((state, code), ("FAILED", "137:0"), self.log(job))
        self.assertRegex(self.log(job), r"(?m)^rank [01] on n1 was ended by signal 9: all ranks end$")

    def test_each_task_of_an_array_takes_its_line(self):
        (self.directory / "list.txt").write_text("elasticity:n=5,clamp=0.1 --rtol 1e-3\npoisson7:n=6\n")
        job = self.submit("solve.slurm", "list.txt", "--solver", "cg", options=(*TWO_RANKS, "--array=1-3"))
        self.cluster.wait_for("the end of all tasks", lambda: not self.cluster.call("squeue", "-h", "-j", job).strip())
        reports = [json.loads((self.directory / f"solve-{job}_{task}" / "report.json").read_text()) for task in (1, 2)]
        self.assertEqual([report["matrix"]["rows"] for report in reports], [375, 216])
        logs = "".join(path.read_text() for path in self.directory.glob("*.log"))
        self.assertIn("list.txt has no line 3", logs)


class Scaling(SlurmTest):
    def test_a_study(self):
        job = self.submit("scaling.slurm", "poisson27:n=5", "poisson27:n=5,nz={4}", options=("--nodes=1", *TWO_RANKS))
        self.assertEqual(self.end(job), ("COMPLETED", "0:0"), self.log(job))
        [folder] = self.directory.glob("scaling-*-job*")
        cases = json.loads((folder / "scaling.json").read_text())["cases"]
        self.assertEqual({(case["weak"], case["ranks"]) for case in cases}, {(False, 1), (False, 2), (True, 1), (True, 2)})
        self.assertTrue(all("report" in case for case in cases))

    def test_a_cancelled_study_leaves_what_it_measured(self):
        job = self.submit("scaling.slurm", "poisson27:n=5", "poisson27:n=90", options=("--nodes=1", *TWO_RANKS))

        def measured():
            found = [json.loads(path.read_text()) for path in self.directory.glob("scaling-*/scaling.json")]
            return found and sum("report" in case for case in found[0]["cases"]) >= 3

        self.cluster.wait_for("the first matrix", measured)
        self.cluster.call("scancel", job)
        self.assertEqual(self.end(job)[0], "CANCELLED")
        [folder] = self.directory.glob("scaling-*-job*")
        study = json.loads((folder / "scaling.json").read_text())
        self.assertEqual({case["matrix"] for case in study["cases"] if "report" in case}, {"poisson27:n=5"})
        self.assertIn("not measured yet", (folder / "scaling.csv").read_text())
        page = run([ROOT / "tools" / "plots" / "scaling_html.py", folder / "scaling.json", "--output", "page.html"], self.directory)
        self.assertEqual(page.code, 0, page)
        self.assertIn("poisson27:n=5", (self.directory / "page.html").read_text())


class Serve(SlurmTest):
    def client(self, job, *words):
        return run([PROGRAM, "client", *words, "--state", self.directory / f"serve-{job}"], self.directory)

    def wait_until_ready(self, job):
        self.cluster.wait_for("readiness", lambda: "Service ready" in self.client(job, "status").out)

    def test_a_service_outlives_a_rank_and_the_time_of_its_job(self):
        (self.directory / "library").mkdir()
        shutil.copy(DATA / "elasticity_bar.mtx.gz", self.directory / "library")
        job = self.submit("serve.slurm", "library", "--backend", "host", options=("--gpus-per-node=2", *TWO_RANKS[1:]))
        self.wait_until_ready(job)
        for rank in range(2):
            self.assertRegex(self.log(job), rf"(?m)^rank {rank} on n1: cores {rank}, GPU {rank} of 0,1 00000000:0{rank}:00.0$")
        self.assertNotIn("WARNING", self.log(job))
        self.assertEqual(self.client(job, "load", "bar", "elasticity_bar.mtx.gz").code, 0)
        state = self.directory / f"serve-{job}"
        # Through the port that the log names, with the token, as from another machine.
        port = re.search(r"listening on http://127\.0\.0\.1:(\d+)", self.log(job))[1]
        result = run([PROGRAM, "client", "status", "--url", f"http://127.0.0.1:{port}", "--token-file", state / "token"], self.directory)
        self.assertIn("Service ready", result.out, result)
        ranks = processes(f"serve-{job}/run/")
        self.assertEqual(len(ranks), 2)
        os.kill(ranks[0], signal.SIGKILL)
        self.until(job, r"a rank was lost: .*Killed")
        self.until(job, r"(?s)a rank was lost: .* ready after")
        self.assertIn("bar", self.client(job, "status").out)
        self.cluster.call("scancel", "--batch", "--signal=USR1", job)
        self.until(job, "^The time is nearly over: back into the queue$")
        self.cluster.wait_for("the second start", lambda: self.cluster.fields(job)["Restarts"] == "1" and self.cluster.state(job) == "RUNNING")
        self.wait_until_ready(job)
        self.assertIn("bar", self.client(job, "status").out)
        self.cluster.call("scancel", job)
        self.assertEqual(self.end(job)[0], "CANCELLED")
        self.assertIn("ending: requests that were accepted are answered first", self.log(job))


class Doctor(SlurmTest):
    """Under srun itself, with the options of jobs."""

    def examine(self, *options, doctor=("--quick",), code, **variables):
        """The report that one of the ranks prints. `code`: None if the findings decide."""
        words = ["srun", "--chdir", self.directory, *options, PROGRAM, "doctor", *doctor, "--json", "-"]
        result = run(words, self.directory, env=self.cluster.environment | variables)
        self.assertIn(result.code, (OK, FOUND), result)
        report = json.loads(result.out)
        self.assertEqual(result.code, (FOUND if report["findings"] else OK) if code is None else code, result)
        self.assertEqual({rank["launch"]["launcher"] for rank in report["facts"]}, {"Slurm's srun"})
        return report

    @staticmethod
    def names(report):
        return {finding["name"] for finding in report["findings"]}

    def test_ranks_with_cores_of_their_own(self):
        Folder(self.directory / "root")
        report = self.examine("--mpi=pmix", "-n2", "--cpu-bind=cores", doctor=("--root", "root"), code=OK)
        self.assertEqual((report["ranks"], report["findings"]), (2, []))
        self.assertEqual([rank["launch"]["world_ranks"] for rank in report["facts"]], [2, 2])
        [pair] = [pair for rank in report["facts"] for pair in rank["links"].get("pairs", [])]
        self.assertGreater(pair["bytes_per_s"], 0)

    def test_ranks_on_one_core(self):
        report = self.examine("--mpi=pmix", "-n2", "--cpu-bind=map_cpu:1,1", code=FOUND)
        [finding] = [finding for finding in report["findings"] if finding["name"] == "one_core_for_all_ranks"]
        self.assertIn("all 2 ranks may use core 1 alone", finding["what"])
        apart = self.examine("--mpi=pmix", "-n2", "--cpu-bind=map_cpu:0,1", code=FOUND, NCCL_P2P_DISABLE="1")
        self.assertIn("slowing_settings", self.names(apart))
        self.assertNotIn("one_core_for_all_ranks", self.names(apart))

    def test_processes_that_are_each_alone(self):
        report = self.examine("--mpi=none", "-n2", code=FOUND)
        [finding] = [finding for finding in report["findings"] if finding["name"] == "singletons"]
        self.assertIn("Slurm's srun started 2 processes", finding["what"])
        self.assertIn("srun --mpi=pmix", finding["remedy"])
        self.assertEqual((report["ranks"], report["facts"][0]["launch"]["mpi_started"]), (1, False))

    def test_gpus_that_ranks_hide_from_each_other(self):
        Folder(self.directory / "root").gpus()
        of_ranks = {"hidden_peers", "shared_gpu"}  # others tell of this build
        for options, expected in ((("--gpus-per-task=1",), {"hidden_peers"}), (("--gpus-per-node=2",), set())):
            report = self.examine("--mpi=pmix", "-n2", *options, doctor=("--quick", "--root", "root"), code=None)
            self.assertEqual(self.names(report) & of_ranks, expected, options)
        self.assertEqual([rank["gpus"]["cuda_visible_devices"] for rank in report["facts"]], ["0,1", "0,1"])


class SeveralNodes(SlurmTest):
    def test_what_slurm_would_start(self):
        for script, nodes, processors in (("solve.slurm", 2, 64), ("scaling.slurm", 2, 64), ("serve.slurm", 2, 64)):
            with self.subTest(script):
                said = self.cluster.call("sbatch", "--test-only", "--partition=gpus", f"--nodes={nodes}", SCRIPTS / script, "bar.h5")
                self.assertRegex(said, rf"Job \d+ to start at .* using {processors} processors on nodes g(1|\[1-2\]) in partition gpus")
        said = self.cluster.call("sbatch", "--test-only", "--partition=gpus", "--gpus-per-node=5", SCRIPTS / "solve.slurm", check=False)
        self.assertIn("Requested node configuration is not available", said)


if __name__ == "__main__":
    unittest.main()
