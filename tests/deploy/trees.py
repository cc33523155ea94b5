"""A fresh Debian in a folder, in which commands run. TEST_PACKAGES_BASE=DIR takes a tree of debootstrap (--variant=minbase) that was
made before."""

import os
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ["TEST_PROGRAM"]).resolve()
BUILD = PROGRAM.parents[1]
BASE = os.environ.get("TEST_PACKAGES_BASE")
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
absent = [name for name in ("apt-get", "dpkg-shlibdeps", "unshare", *(() if BASE else ("debootstrap",))) if shutil.which(name, path=PATH) is None]
why_not = f"{', '.join(absent)} not found: deploy/install-dependencies.sh --deploy" if absent else "needs root" if os.geteuid() != 0 else ""


def call(*words, **more):
    result = subprocess.run(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            **{"env": dict(os.environ, PATH=PATH), **more})
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}: exit code {result.returncode}\n{result.stdout[-6000:]}")
    return result.stdout


class Tree:
    """A system of its own: what runs in it sees its files alone, with /proc, /sys and /dev/shm."""

    def __init__(self, folder):
        self.root = pathlib.Path(folder) / "tree"
        if BASE:
            call("cp", "--archive", BASE, self.root)
        else:
            release = re.search(r"^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text(), re.M)[1]
            sites = call("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages").split("\n")
            [site, *_] = [line.split()[0] for line in sites if line.endswith(f" {release}")]
            call("debootstrap", "--variant=minbase", release, self.root, site)
        shutil.copy("/etc/resolv.conf", self.root / "etc" / "resolv.conf")
        self.run("useradd --create-home tester")
        self.root.chmod(0o755)

    def run(self, script, user="root"):
        home = "/root" if user == "root" else f"/home/{user}"
        mounts = "mount -t proc proc $0/proc && mount --rbind /sys $0/sys && mkdir -p $0/dev/shm && mount -t tmpfs -o mode=1777 shm $0/dev/shm"
        enter = f'exec chroot --userspec={user}:{user} $0 /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME={home} LANG=C.UTF-8 '
        enter += 'DEBIAN_FRONTEND=noninteractive sh -ec ". /environment; cd; $1"'
        shutil.copy(ROOT / "deploy" / "environment.sh", self.root / "environment")
        return call("unshare", "--mount", "--propagation", "private", "sh", "-ec", f"{mounts} && {enter}", self.root, script, cwd="/")

    def files(self):
        """All but what the system writes about itself."""
        left_out = " -o ".join(f"-path /{folder}" for folder in ("proc", "sys", "dev", "tmp", "home", "packages", "var/lib/apt", "var/cache", "var/log"))
        return set(self.run(f"find / '(' {left_out} ')' -prune -o -print").splitlines())
