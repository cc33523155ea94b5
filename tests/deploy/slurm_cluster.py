"""A Slurm cluster on this machine: slurmctld and slurmd of Debian's packages in a directory of their own, without munge, systemd
and cgroups. Node n1 runs jobs; it has two GPUs in name only. The nodes g1 and g2, of four such GPUs, are for
`sbatch --test-only`: PMIx cannot start the ranks of two nodes on one host."""

import getpass
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time

LIMIT = 300  # seconds: a hang, however busy the machine is
NEEDED = ("slurmctld", "slurmd", "sbatch", "srun", "scancel", "scontrol")


def find(name):
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))


def missing():
    """What to install, or nothing."""
    absent = [name for name in NEEDED if find(name) is None]
    return f"{', '.join(absent)} not found: deploy/install-dependencies.sh --deploy" if absent else ""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cluster:
    """`with Cluster(directory) as cluster:`; leaving the block ends all jobs and daemons."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.environment = dict(os.environ, SLURM_CONF=str(self.directory / "slurm.conf"))
        self.daemons = []

    def write_settings(self):
        for name in ("state", "spool/n1", "spool/g1", "spool/g2"):
            (self.directory / name).mkdir(parents=True)
        control, n1, g1, g2 = free_ports(4)
        host, here = socket.gethostname(), f"NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1"
        user = getpass.getuser()
        (self.directory / "slurm.conf").write_text(f"""
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={self.directory}/state
SlurmdSpoolDir={self.directory}/spool/%n
SlurmctldPidFile={self.directory}/slurmctld.pid
SlurmdPidFile={self.directory}/slurmd-%n.pid
AuthType=auth/none
AuthInfo=cred_expire=5
CredType=cred/none
MailProg=/bin/true
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=n1 {here} Port={n1} CPUs=2 Gres=gpu:2
NodeName=g1 {here} Port={g1} CPUs=32 Gres=gpu:4
NodeName=g2 {here} Port={g2} CPUs=32 Gres=gpu:4
PartitionName=main Nodes=n1 Default=YES MaxTime=INFINITE
PartitionName=gpus Nodes=g[1-2] MaxTime=INFINITE
""")
        # Slurm asks for no more than that these are devices.
        (self.directory / "gres.conf").write_text("NodeName=n1 Name=gpu File=/dev/tty[0-1]\nNodeName=g[1-2] Name=gpu File=/dev/tty[0-3]\n")
        (self.directory / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")

    def start(self, name, *command):
        log = open(self.directory / f"{name}.log", "wb")
        ends_with_us = ["setpriv", "--pdeathsig", "TERM"]
        self.daemons.append(subprocess.Popen([*ends_with_us, *command], env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                             cwd=self.directory))
        log.close()

    def __enter__(self):
        self.write_settings()
        stepd = find("slurmstepd-wlm") or find("slurmstepd")
        try:
            self.start("slurmctld", find("slurmctld"), "-D", "-c")
            self.wait_for("slurmctld", lambda: "is UP" in self.call("scontrol", "ping", check=False))
            for node in ("n1", "g1", "g2"):
                self.start(node, find("slurmd"), "-D", "-N", node, *(["-d", stepd] if stepd else []))
            self.wait_for("the nodes", lambda: self.call("sinfo", "-h", "-N", "-o", "%t").split() == ["idle"] * 3)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for job in self.call("squeue", "-h", "-o", "%A", check=False).split():
            self.call("scancel", job, check=False)
        end = time.monotonic() + 40
        while self.call("squeue", "-h", check=False).strip() and time.monotonic() < end:
            time.sleep(0.1)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def call(self, *command, check=True, **variables):
        """What the command prints, errors included."""
        result = subprocess.run(list(map(str, command)), env=self.environment | variables, stdin=subprocess.DEVNULL, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT, cwd=self.directory)
        if check and result.returncode != 0:
            raise AssertionError(f"{command}: exit code {result.returncode}\n{result.stdout}\n{self.report()}")
        return result.stdout

    def report(self):
        return "\n".join(f"-- {path.name}\n{path.read_text(errors='replace')[-4000:]}" for path in sorted(self.directory.glob("*.log")))

    def wait_for(self, what, true, limit=LIMIT):
        """The first true value of `true()`."""
        end = time.monotonic() + limit
        while not (value := true()):
            if time.monotonic() > end:
                raise AssertionError(f"{what} did not come in {limit} s\n{self.report()}")
            time.sleep(0.05)
        return value

    def submit(self, *arguments, **variables):
        """The number of the job."""
        return re.search(r"Submitted batch job (\d+)", self.call("sbatch", *arguments, **variables))[1]

    def fields(self, job):
        return dict(word.split("=", 1) for word in self.call("scontrol", "show", "job", job).split() if "=" in word)

    def state(self, job):
        return self.fields(job)["JobState"]

    def wait_for_end(self, job):
        """The state in which it ended, and its exit code (code:signal)."""
        def ended():
            fields = self.fields(job)
            return fields if fields["JobState"] not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "REQUEUED") else None

        fields = self.wait_for(f"the end of job {job}", ended)
        return fields["JobState"], fields["ExitCode"]
