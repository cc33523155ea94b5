"""Starts a program under mpirun so that single ranks can be stopped or killed, and every rank's output and exit status are
known. Open MPI's own clean-up is off: what survivors do is their own doing. Only processes started here are signalled."""

import os
import pathlib
import shutil
import signal
import subprocess
import time

# Runs one rank in a child of its own. The launcher sees this shell and status 0, whatever happens to the rank.
_WRAPPER = """#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}
"$@" > "$RANKS_DIRECTORY/$rank.out" 2> "$RANKS_DIRECTORY/$rank.err" &
pid=$!
echo $pid > "$RANKS_DIRECTORY/$rank.pid.new" && mv "$RANKS_DIRECTORY/$rank.pid.new" "$RANKS_DIRECTORY/$rank.pid"
wait $pid
echo $? > "$RANKS_DIRECTORY/$rank.status.new" && mv "$RANKS_DIRECTORY/$rank.status.new" "$RANKS_DIRECTORY/$rank.status"
exit 0
"""

MPIRUN_OPTIONS = ["--allow-run-as-root", "--oversubscribe", "--enable-recovery",
                  "--mca", "orte_abort_on_non_zero_status", "0"]


class Ranks:
    """`with Ranks(command, count, directory) as ranks:`; leaving the block ends whatever still runs."""

    def __init__(self, command, count, directory, env=None, mpirun="mpirun", cwd=None):
        self.count = count
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        if shutil.which(mpirun) is None:
            raise FileNotFoundError(f"{mpirun}: not found")
        wrapper = self.directory / "rank.sh"
        wrapper.write_text(_WRAPPER)
        wrapper.chmod(0o755)
        environment = dict(os.environ if env is None else env, RANKS_DIRECTORY=str(self.directory))
        self.log = open(self.directory / "mpirun.log", "wb")
        self.launcher = subprocess.Popen(
            [mpirun, *MPIRUN_OPTIONS, "-n", str(count), str(wrapper), *map(str, command)],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT, env=environment, cwd=cwd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read(self, rank, what):
        path = self.directory / f"{rank}.{what}"
        return path.read_text(errors="replace") if path.exists() else ""

    def pid(self, rank):
        """None before the rank has started."""
        text = self._read(rank, "pid")
        return int(text) if text else None

    def output(self, rank):
        return self._read(rank, "out")

    def errors(self, rank):
        return self._read(rank, "err")

    def status(self, rank):
        """Exit status as a shell gives it (128 + signal if killed), None while the rank runs."""
        text = self._read(rank, "status")
        return int(text) if text else None

    def launcher_log(self):
        return self._read("mpirun", "log")

    def _wait(self, done, seconds, what):
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                raise TimeoutError(f"{what} within {seconds} s\n{self.report()}")
            time.sleep(0.02)

    def wait_for_output(self, text, seconds, ranks=None):
        """Until each of the ranks has printed `text`."""
        ranks = range(self.count) if ranks is None else ranks
        def printed():
            missing = [r for r in ranks if text not in self.output(r)]
            if any(self.status(r) is not None for r in missing) or (missing and self.launcher.poll() is not None):
                raise RuntimeError(f"ended without printing '{text}'\n{self.report()}")
            return not missing

        self._wait(printed, seconds, f"not all of {list(ranks)} printed '{text}'")

    def wait_for_exit(self, ranks, seconds):
        """Exit statuses of the ranks, in order."""
        self._wait(lambda: all(self.status(r) is not None for r in ranks), seconds, f"not all of {list(ranks)} ended")
        return [self.status(r) for r in ranks]

    def send_signal(self, rank, number):
        if self.pid(rank) is None or self.status(rank) is not None:
            raise ProcessLookupError(f"rank {rank} does not run")
        os.kill(self.pid(rank), number)

    def report(self):
        """All that is known, for a failing test."""
        lines = [f"rank {r}: pid {self.pid(r)} status {self.status(r)} out {self.output(r)[-500:]!r} "
                 f"err {self.errors(r)[-1500:]!r}" for r in range(self.count)]
        return "\n".join([*lines, f"mpirun: {self.launcher_log()[-1500:]!r}"])

    def close(self):
        for rank in range(self.count):
            if self.pid(rank) is not None and self.status(rank) is None:
                try:
                    os.kill(self.pid(rank), signal.SIGKILL)  # ends a stopped process too
                except ProcessLookupError:
                    pass
        try:
            self.launcher.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.launcher.terminate()
            try:
                self.launcher.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.launcher.kill()
                self.launcher.wait()
        self.log.close()
