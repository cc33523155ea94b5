"""Programs in the tree of a container image as a container runtime starts them: in namespaces of their own for mounts, names,
processes and the network, as user 1000 without rights, on a root that is only read. Needs root."""

import os
import pathlib
import shutil
import signal
import subprocess

LIMIT = 600
# Makes what only this mount namespace sees, and becomes the command. $1: the root, $2: host name, then `HOST:INSIDE:ro|rw`…, `--`,
# `NAME=VALUE`…, `--`, the command.
START = r"""
root=$1; hostname "$2"; shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
mkdir -p "$root/proc" "$root/tmp" "$root/dev/shm"
while [ "$1" != -- ]; do
  IFS=: read -r from to how <<< "$1"
  if [ -d "$from" ]; then mkdir -p "$root$to"; else mkdir -p "$(dirname "$root$to")"; [ -e "$root$to" ] || : > "$root$to"; fi
  mount --bind "$from" "$root$to"
  if [ "$how" = ro ]; then mount -o remount,bind,ro "$root$to"; fi
  shift
done
shift
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t proc proc "$root/proc"
mount -o remount,bind,ro "$root"
variables=()
while [ "$1" != -- ]; do variables+=("$1"); shift; done
shift
exec chroot "$root" setpriv --reuid=1000 --regid=1000 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
  env -i --chdir=/home/shardmat "${variables[@]}" "$@"
"""


def missing():
    absent = [name for name in ("unshare", "setpriv", "ip", "nsenter") if shutil.which(name) is None]
    if os.geteuid() != 0:
        return "only root can make namespaces and trees"
    if absent:
        return f"{', '.join(absent)} not found"
    tried = subprocess.run(["unshare", "--mount", "--net", "--uts", "--pid", "--fork", "true"], capture_output=True, text=True)
    return "" if tried.returncode == 0 else f"no namespaces here: {tried.stderr.strip()}"


class Network:
    """Network namespaces that reach each other, and nothing else, by a bridge: one for each name, 10.77.0.1, .2 …, and a first
    one for whoever asks them, 10.77.0.100."""

    def __init__(self, *names):
        self.names = ["node", *names]
        self.addresses = {name: f"10.77.0.{number or 100}" for number, name in enumerate(self.names)}
        self.prefix = f"sm{os.getpid()}"

    def space(self, name):
        return f"{self.prefix}-{name}"

    def __enter__(self):
        def ip(*words):
            subprocess.run(["ip", *words], check=True, capture_output=True, text=True)

        try:
            for name in self.names:
                ip("netns", "add", self.space(name))
                ip("-n", self.space(name), "link", "set", "lo", "up")
            node = self.space("node")
            ip("-n", node, "link", "add", "bridge", "type", "bridge")
            ip("-n", node, "link", "set", "bridge", "up")
            ip("-n", node, "address", "add", f"{self.addresses['node']}/24", "dev", "bridge")
            for number, name in enumerate(self.names[1:]):
                ip("-n", node, "link", "add", f"to{number}", "type", "veth", "peer", "name", "eth0", "netns", self.space(name))
                ip("-n", node, "link", "set", f"to{number}", "master", "bridge", "up")
                ip("-n", self.space(name), "link", "set", "eth0", "up")
                ip("-n", self.space(name), "address", "add", f"{self.addresses[name]}/24", "dev", "eth0")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", self.space(name)], capture_output=True)

    def hosts(self):
        """What /etc/hosts says in every one of them."""
        return "127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in self.addresses.items())


class Pod:
    """`with Pod(tree, words, …) as pod:`; leaving the block ends all its processes."""

    def __init__(self, tree, words, name="pod", variables=(), mounts=(), network=None, output=None):
        """`mounts`: (path here, path inside, "ro" or "rw"). Without `network` there is only a loopback device."""
        space = ["ip", "netns", "exec", network.space(name)] if network else ["unshare", "--net"]
        start = START if network else "ip link set lo up\n" + START
        self.output = output
        self.process = subprocess.Popen(
            [*space, "unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "bash", "-ec", start, "bash", str(tree),
             name, *(":".join(map(str, mount)) for mount in mounts), "--",
             *(f"{key}={value}" for key, value in dict(variables).items()), "--", *map(str, words)],
            stdin=subprocess.DEVNULL, stdout=output or subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.send_signal(signal.SIGKILL)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.communicate()

    def first_process(self):
        """That which is 1 inside: the child of unshare."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0]) if children else None

    def send_signal(self, number):
        if first := self.first_process():
            os.kill(first, number)

    def communicate(self):
        """Exit code and output."""
        output, _ = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, output


# As START, for systemd as the first process of root: it has a tree of control groups and a root that it may write to.
BOOT = r"""
root=$1
mount --make-rprivate /
ip link set lo up
hostname machine
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=other chroot "$root" /lib/systemd/systemd --system
"""


def control_groups():
    """Where control groups of version 2 are mounted, or nothing."""
    mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    return next((pathlib.Path(words[1]) for words in mounts if words[2] == "cgroup2"), None)


class Machine:
    """`with Machine(tree) as machine:`; systemd of the tree, in namespaces and a control group of its own."""

    def __init__(self, tree):
        self.group = control_groups() / f"shardmat_test_{os.getpid()}"
        self.group.mkdir()
        words = ["unshare", "--cgroup", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--kill-child", "bash", "-ec", BOOT, "bash", str(tree)]
        self.process = subprocess.Popen(["sh", "-c", f'echo $$ > "{self.group}/cgroup.procs"; exec "$@"', "sh", *words],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    first_process = Pod.first_process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if first := self.first_process():
            os.kill(first, signal.SIGKILL)  # ends all that is in its namespace
        self.process.wait(20)
        for path, _, _ in os.walk(self.group, topdown=False):
            os.rmdir(path)

    def call(self, *words):
        """Exit code and output of a command in the machine."""
        result = subprocess.run(["nsenter", "--target", str(self.first_process()), "--all", "--root", "--wdns=/", *map(str, words)],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
        return result.returncode, result.stdout
