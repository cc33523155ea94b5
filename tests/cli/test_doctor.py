"""shardmat doctor: faults made for real on 1, 2 and 3 ranks, and faults of other hosts in folders that stand for /."""

import json
import os
import pathlib
import pty
import resource
import shutil
import subprocess
import unittest

from support import LIMIT, OK, PROGRAM, USAGE, CliTest, environment, read_terminal, run

FOUND = 1
MOUNTS = "35 26 0:30 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n"


def why_no_mounts():
    """Why this process may not mount a small /dev/shm for its children; empty if it may."""
    if not shutil.which("unshare"):
        return "there is no unshare (util-linux)"
    tried = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/dev/shm"], capture_output=True, text=True)
    return tried.stderr.strip()


class Folder:
    """Stands for / of a host without faults."""

    def __init__(self, path, host="host0"):
        self.path = pathlib.Path(path)
        self.write("proc/sys/kernel/hostname", host)
        self.write("proc/meminfo", "MemTotal: 64000000 kB\nMemAvailable: 60000000 kB\nHugePages_Total: 0")
        self.write("proc/self/status", "Cpus_allowed_list:\t0-63\nMems_allowed_list:\t0")
        self.write("proc/self/limits", "Max locked memory         unlimited            unlimited            bytes")
        self.write("sys/devices/system/cpu/online", "0-63")
        self.write("sys/devices/system/node/online", "0")
        self.write("sys/devices/system/node/node0/cpulist", "0-63")
        self.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never")
        self.write("sys/class/rtc/rtc0/since_epoch", "1700000000")
        self.library("40.30.4")
        (self.path / "dev/shm").mkdir(parents=True)

    def write(self, name, text):
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")

    def library(self, version):
        self.write("proc/self/maps", f"7f00-7f01 r-xp 00000000 08:01 123  /usr/lib/libmpi.so.{version}")

    def gpus(self, driver="580.65.06"):
        self.write("proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Tue Jul  8")
        for i, address in enumerate(("0000:3b:00.0", "0000:86:00.0")):
            self.write(f"proc/driver/nvidia/gpus/{address}/information", f"Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-{i}a2b-{i}c4d\nDevice Minor: \t {i}")
            self.write(f"dev/nvidia{i}", "")


class DoctorTest(CliTest):
    def examine(self, *arguments, ranks=0, launcher=(), **options):
        """The report; its findings decide the exit code."""
        mpirun = ["mpirun", "--mca", "odls_base_sigkill_timeout", "0", "-n", str(ranks)] if ranks else []  # it sleeps after findings
        result = run([*launcher, *mpirun, PROGRAM, "doctor", *arguments, "--json", "-"], self.directory, **options)
        self.assertIn(result.code, (OK, FOUND), result)
        report = json.loads(result.out)
        self.assertEqual(result.code, FOUND if report["findings"] else OK, result)
        return report

    @staticmethod
    def names(report):
        return [finding["name"] for finding in report["findings"]]

    def found(self, name, report):
        """The finding of this name, which there must be once."""
        all_of_it = [finding for finding in report["findings"] if finding["name"] == name]
        self.assertEqual(len(all_of_it), 1, f"{name} in {report['findings']}")
        return all_of_it[0]


class RealFaults(DoctorTest):
    def test_processes_that_are_each_alone(self):
        for variables in ({"PMI_SIZE": "3", "PMI_RANK": "0"}, {"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "0"},
                          {"SLURM_STEP_NUM_TASKS": "3", "SLURM_PROCID": "0", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}):
            with self.subTest(variables=variables):
                report = self.examine("--quick", env=variables)
                self.assertIn("3 processes", self.found("singletons", report)["what"])
                self.assertEqual((report["ranks"], report["facts"][0]["launch"]["launcher_ranks"]), (1, 3))
                self.assertEqual(report["facts"][0]["launch"]["mpi_started"], "SLURM_JOB_ID" not in variables)
        self.assertIn("srun --mpi=pmix", self.found("singletons", report)["remedy"])

    def test_one_of_them_speaks(self):
        processes = [subprocess.Popen([PROGRAM, "doctor", "--quick"], env=environment(PMI_SIZE="3", PMI_RANK=str(rank)), cwd=self.directory,
                                      stdout=subprocess.PIPE, text=True) for rank in range(3)]
        outputs = [process.communicate(timeout=LIMIT)[0] for process in processes]
        self.assertEqual([process.returncode for process in processes], [FOUND] * 3)
        self.assertEqual([bool(output) for output in outputs], [True, False, False])
        self.assertIn("singletons", outputs[0])

    def test_fewer_cores_than_threads(self):
        for ranks in (0, 2, 3):
            report = self.examine("--quick", ranks=ranks, env={"OMP_NUM_THREADS": "500"})
            self.assertIn(f"{500 * max(ranks, 1):,} threads", self.found("fewer_cores_than_threads", report)["what"])

    @unittest.skipUnless(shutil.which("taskset") and len(os.sched_getaffinity(0)) > 1, "no taskset, or one core")
    def test_one_core_for_all_ranks(self):
        core = str(min(os.sched_getaffinity(0)))
        for ranks in (2, 3):
            report = self.examine("--quick", ranks=ranks, launcher=["taskset", "-c", core])
            self.assertIn(f"all {ranks} ranks may use core {core} alone", self.found("one_core_for_all_ranks", report)["what"])
            self.assertNotIn("fewer_cores_than_threads", self.names(report))
        self.assertNotIn("one_core_for_all_ranks", self.names(self.examine("--quick", launcher=["taskset", "-c", core])))

    def test_limits_of_the_process(self):
        def limited(which, value, **options):
            return self.examine("--quick", preexec_fn=lambda: resource.setrlimit(which, (value, resource.getrlimit(which)[1])), **options)

        report = limited(resource.RLIMIT_MEMLOCK, 64 << 10, ranks=2)
        self.assertIn("ranks 0-1 may lock 65.5 kB", self.found("low_memlock", report)["what"])
        self.assertEqual(report["facts"][1]["limits"]["locked_bytes"], 64 << 10)
        self.found("few_open_files", limited(resource.RLIMIT_NOFILE, 100))
        self.assertIn("may map 68.7 GB", self.found("address_space_limit", limited(resource.RLIMIT_AS, 64 << 30))["what"])

    def test_a_small_dev_shm(self):
        if why := why_no_mounts():
            self.skipTest(why)
        for ranks in (0, 3):
            report = self.examine("--quick", ranks=ranks,
                                  launcher=["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=48m none /dev/shm && exec "$@"', "sh"])
            self.assertIn("/dev/shm has 50.3 MB", self.found("small_dev_shm", report)["what"])

    def test_settings(self):
        report = self.examine("--quick", ranks=2, env={"NCCL_P2P_DISABLE": "1", "SHARDMAT_ISA": "baseline"})
        what = self.found("slowing_settings", report)["what"]
        self.assertIn("NCCL_P2P_DISABLE=1", what)
        self.assertIn("SHARDMAT_ISA=baseline", what)
        self.assertNotIn("different_settings", self.names(report))
        doctor = [PROGRAM, "doctor", "--quick", "--json", "-"]
        result = run(["mpirun", "-n", "1", "env", "OMP_PROC_BIND=true", *doctor, ":", "-n", "2", *doctor], self.directory)
        self.assertIn("OMP_PROC_BIND: true (rank 0); not set (ranks 1-2)", self.found("different_settings", json.loads(result.out))["what"])

    def test_different_libraries(self):
        loaded = self.examine("--quick")["facts"][0]["libraries"]["loaded"]
        name = loaded["libgomp"]  # as libgomp.so.1.0.0
        with open("/proc/self/maps") as maps:
            folders = {line.split()[-1].rsplit("/", 1)[0] for line in maps if ".so" in line}
        library = next(path for folder in sorted(folders) if (path := pathlib.Path(folder) / name).exists())
        other = self.path("other")
        other.mkdir()
        shutil.copy(library, other / "libgomp.so.1.9.9")
        (other / "libgomp.so.1").symlink_to("libgomp.so.1.9.9")
        doctor = [PROGRAM, "doctor", "--quick", "--json", "-"]
        result = run(["mpirun", "-n", "2", *doctor, ":", "-n", "1", "env", f"LD_LIBRARY_PATH={other}", *doctor], self.directory)
        what = self.found("different_libraries", json.loads(result.out))["what"]
        self.assertIn(f"libgomp: {name} (ranks 0-1); libgomp.so.1.9.9 (rank 2)", what)

    def test_a_limit_of_a_cgroup_above(self):
        lines = pathlib.Path("/proc/self/cgroup").read_text().splitlines()
        own = {line.split(":")[1]: line.split(":")[2] for line in lines}  # by controller; version 2 has none
        version1 = "memory" in own
        limit = "memory.limit_in_bytes" if version1 else "memory.max"
        above = pathlib.Path("/sys/fs/cgroup" + ("/memory" + own["memory"] if version1 else own.get("", "")))
        parent = above / f"shardmat_test_{os.getpid()}"
        try:
            (parent / "inner").mkdir(parents=True)
            self.addCleanup(lambda: ((parent / "inner").rmdir(), parent.rmdir()))
            (parent / limit).write_text(str(1 << 30))
            if not version1:
                (parent / "inner" / limit).read_text()  # the controller is there
        except OSError as error:
            self.skipTest(f"no cgroups to make: {error}")
        report = self.examine("--quick", ranks=2, launcher=["sh", "-c", f'echo $$ > {parent}/inner/cgroup.procs && exec "$@"', "sh"])
        what = self.found("nested_memory_limit", report)["what"]
        self.assertIn(f"{parent} allows 1.07 GB", what)


class FoldersOfHosts(DoctorTest):
    def folder(self, name, **options):
        return Folder(self.path(name), **options)

    def on_two_hosts(self):
        """Ranks 0 and 2 are on host0, rank 1 on host1."""
        for rank in range(3):
            yield self.folder(f"r{rank}", host=f"host{rank % 2}")

    def test_a_host_without_faults(self):
        self.folder("root")
        for ranks in (0, 1, 2, 3):
            report = self.examine("--root", "root", ranks=ranks)
            self.assertEqual(report["findings"], [])
            self.assertEqual([rank["host"] for rank in report["facts"]], ["host0"] * max(ranks, 1))
            pairs = [pair for rank in report["facts"] for pair in rank["links"].get("pairs", [])]
            self.assertEqual(len(pairs), {2: 1, 3: 3}.get(ranks, 0))
            self.assertTrue(all(pair["latency_s"] > 0 and pair["bytes_per_s"] > 0 for pair in pairs))
        text = self.succeed("doctor", "--root", "root", ranks=2).out
        self.assertIn("0 findings, 2 ranks", text)
        self.assertIn("host0 (ranks 0-1)", text)
        self.assertNotIn("\033", text)

    def test_two_hosts(self):
        *_, second, _ = self.on_two_hosts()
        second.library("40.30.5")
        second.write("sys/class/rtc/rtc0/since_epoch", "1699999990")
        report = self.examine("--root", "r{rank}", ranks=3)
        self.assertEqual(self.names(report), ["different_libraries", "clocks_apart"])
        self.assertIn("libmpi: libmpi.so.40.30.4 (ranks 0,2 on host0); libmpi.so.40.30.5 (rank 1 on host1)", report["findings"][0]["what"])
        self.assertIn("host0 is 10.00 s ahead of that of host host1", report["findings"][1]["what"])

    def test_nested_limits(self):
        folder = self.folder("root")
        folder.write("proc/self/cgroup", "0::/job/step")
        folder.write("proc/self/mountinfo", MOUNTS)
        folder.write("sys/fs/cgroup/job/step/memory.max", "max")
        folder.write("sys/fs/cgroup/job/memory.max", "4000000000")
        folder.write("sys/fs/cgroup/job/memory.current", "1000000000")
        report = self.examine("--root", "root", "--quick", ranks=2)
        self.assertEqual(self.names(report), ["nested_memory_limit"])
        self.assertIn("/sys/fs/cgroup/job allows 4 GB", report["findings"][0]["what"])

    def test_gpus_of_ranks(self):
        self.folder("root").gpus()
        doctor = [PROGRAM, "doctor", "--quick", "--root", "root", "--json", "-"]
        on_gpus = {"shared_gpu", "hidden_peers"}
        result = run(["mpirun", "-n", "2", "env", "CUDA_VISIBLE_DEVICES=1", *doctor], self.directory)
        report = json.loads(result.out)
        self.assertEqual(on_gpus & set(self.names(report)), {"shared_gpu"})
        self.assertIn("ranks 0-1 take GPU 0000:86:00.0", self.found("shared_gpu", report)["what"])
        own = ["sh", "-c", 'CUDA_VISIBLE_DEVICES=$OMPI_COMM_WORLD_RANK exec "$@"', "sh"]
        report = json.loads(run(["mpirun", "-n", "2", *own, *doctor], self.directory).out)
        self.assertEqual(on_gpus & set(self.names(report)), {"hidden_peers"})
        self.assertIn("srun --gpus-per-node", self.found("hidden_peers", report)["remedy"])
        report = self.examine("--quick", "--root", "root", ranks=3)
        self.assertEqual(on_gpus & set(self.names(report)), {"shared_gpu"})
        self.assertEqual(on_gpus & set(self.names(self.examine("--quick", "--root", "root", ranks=2))), set())

    def test_a_driver_older_than_cuda(self):
        self.folder("root").gpus(driver="470.57.02")
        report = self.examine("--quick", "--root", "root")
        runtime = report["facts"][0]["gpus"].get("runtime_cuda")
        if runtime is None:
            self.skipTest("a program without CUDA asks nothing of the driver")
        self.assertIn(f"470.57.02 supports CUDA 11.0, but this program uses CUDA {runtime // 1000}.", self.found("old_driver", report)["what"])

    def test_health_of_gpus(self):
        library = os.environ.get("TEST_FAKE_NVML")
        if not library:
            self.skipTest("TEST_FAKE_NVML names no library")
        self.folder("root").gpus()
        self.path("libnvidia-ml.so.1").symlink_to(library)
        report = self.examine("--root", "root", ranks=2, env={"LD_LIBRARY_PATH": str(self.directory)})
        self.assertEqual({"slowed_gpu", "ecc_errors", "busy_gpu"} - set(self.names(report)), set())
        self.assertIn("0000:3b:00.0 runs at 345 of 1980 MHz: heat", self.found("slowed_gpu", report)["what"])
        self.assertIn("0000:86:00.0 has had 7 uncorrected errors", self.found("ecc_errors", report)["what"])
        self.assertEqual([bool(rank["gpu_health"]) for rank in report["facts"]], [True, False])

    def test_what_cannot_be_looked_at(self):
        folder = self.folder("root")
        shutil.rmtree(folder.path / "dev")
        text = self.succeed("doctor", "--quick", "--root", "root").out
        self.assertIn("not looked at  /dev/shm: No such file or directory", text)

    def test_colour_only_on_a_terminal(self):
        self.folder("root")
        for more, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
            ours, terminal = pty.openpty()
            process = subprocess.Popen([PROGRAM, "doctor", "--quick", "--root", "root"], cwd=self.directory, env=environment(**more), stdout=terminal)
            os.close(terminal)
            text = read_terminal(ours)
            self.assertEqual(process.wait(), OK)
            self.assertEqual(b"\033[1m" in text, coloured, text)


class Reports(DoctorTest):
    def test_reports_of_runs_have_the_names(self):
        commands = (("multiply", "poisson:n=4"), ("solve", "poisson27:n=4"), ("eigen", "poisson:n=4", "--count", 2), ("pagerank", "rmat:scale=5"),
                    ("batch", "batch:count=9,dim=4"), ("bench", "scaling", "poisson:n=4", "--iterations", 2),
                    ("bench", "solve", "poisson7:n=5,uniform", "--repetitions", 1))
        for command in commands:
            report = self.json_of(*command, "--backend", "host", ranks=2, env={"NCCL_P2P_DISABLE": "1"})
            doctor = report["run"]["doctor"]
            self.assertEqual(doctor["findings"], len(doctor["names"]))
            self.assertIn("slowing_settings", doctor["names"], command)
        report = self.json_of("bench", "kernels", "poisson7:n=4", "--repetitions", 1, "--backend", "host", env={"NCCL_P2P_DISABLE": "1"})
        self.assertIn("slowing_settings", report["run"]["doctor"]["names"])

    def test_one_core_for_all_ranks_is_in_reports_of_benchmarks_and_batches(self):
        """A finding that only all ranks together show."""
        if not shutil.which("taskset"):
            self.skipTest("no taskset")
        core = str(min(os.sched_getaffinity(0)))
        for command in (("batch", "batch:count=9,dim=4"), ("bench", "scaling", "poisson:n=4", "--iterations", 2, "--no-forecast")):
            result = run(["taskset", "-c", core, "mpirun", "-n", "2", PROGRAM, *command, "--backend", "host", "--json", "-"], self.directory)
            self.assertEqual(result.code, OK, result)
            self.assertIn("one_core_for_all_ranks", json.loads(result.out)["run"]["doctor"]["names"], command)

    def test_a_report_to_a_file(self):
        result = self.call("doctor", "--quick", "--json", "d.json")
        self.assertIn(result.code, (OK, FOUND), result)
        self.assertIn("Cores", result.out)
        report = json.loads(self.path("d.json").read_text())
        self.assertEqual(report["facts"][0]["libraries"]["shardmat"].split(" ")[0], report["run"]["version"])
        self.fail_with(USAGE, "doctor", "--json", "a.mtx", says="a.mtx")
        self.fail_with(USAGE, "doctor", "matrix.h5", says="matrix.h5")


if __name__ == "__main__":
    unittest.main()
