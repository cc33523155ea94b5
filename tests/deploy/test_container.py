#!/usr/bin/env python3
"""Builds the image of deploy/container on a fresh Debian and runs in it, as user 1000, on a root that is only read and without a
network, what its files and those of deploy/kubernetes say. TEST_CONTAINER_IMAGE=DIR takes the tree of an image built before."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import pods
from pods import LIMIT, Network, Pod

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "container"
IMAGE = os.environ.get("TEST_CONTAINER_IMAGE")
NEEDED = () if IMAGE else ("debootstrap", "buildah", "apt-get")
absent = [name for name in NEEDED if shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin") is None]
why_not = f"{', '.join(absent)} not found: deploy/install-dependencies.sh --deploy" if absent else pods.missing()
try:
    import yaml
except ImportError:
    why_not = why_not or "python3-yaml not found: deploy/install-dependencies.sh --tests"
if why_not:
    print("skipped:", why_not)
    sys.exit(0)
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from support import DATA  # noqa: E402


def call(*words, **more):
    result = subprocess.run(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}: exit code {result.returncode}\n{result.stdout[-6000:]}")
    return result.stdout


class Image:
    """Of Debian as debootstrap makes it, with buildah: neither a registry nor a daemon is asked."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.environment = dict(os.environ, BUILDAH_ISOLATION="chroot")

    def buildah(self, *words):
        return call("buildah", "--root", self.folder / "storage", "--runroot", self.folder / "run", *words, env=self.environment)

    def build(self):
        """The tree of the image."""
        release = re.search(r"^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text(), re.M)[1]
        sites = call("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages").split("\n")
        [site, *_] = [line.split()[0] for line in sites if line.endswith(f" {release}")]
        call("debootstrap", "--variant=minbase", release, self.folder / "base", site)
        container = self.buildah("from", "scratch").strip()
        call("tar", "-C", self.folder / "base", "-cf", self.folder / "base.tar", ".")
        self.buildah("add", "-q", container, self.folder / "base.tar", "/")
        self.buildah("commit", "-q", "--rm", container, "localhost/base")
        shutil.rmtree(self.folder / "base")
        self.buildah("build", "-q", "--build-arg", "BASE=localhost/base", "-t", "shardmat", "-f", FOLDER / "Containerfile", ROOT)
        container = self.buildah("from", "shardmat").strip()
        return self.buildah("mount", container).strip()

    def remove(self):
        """What buildah has mounted would stay otherwise, and the folder with it."""
        for place in [line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines()][::-1]:
            if place.startswith(f"{self.folder}/"):
                subprocess.run(["umount", place], check=False)
        shutil.rmtree(self.folder)


def variables():
    """What ENV of the Containerfile and a runtime set."""
    text = (FOLDER / "Containerfile").read_text()
    words = [word for line in re.findall(r"^ENV (.*)$", text, re.M) for word in line.split()]
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/home/shardmat"} | dict(word.split("=", 1) for word in words)


class ContainerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = cls.image

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="shardmat_pod_"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.directory.chmod(0o755)

    def folder(self, name):
        """That user 1000 may write to."""
        (self.directory / name).mkdir()
        os.chown(self.directory / name, 1000, 1000)
        return self.directory / name

    def pod(self, words, **more):
        pod = Pod(self.tree, words, **{"variables": variables(), **more})
        self.addCleanup(pod.__exit__)
        return pod

    def succeed(self, *words, **more):
        code, output = self.pod(words, **more).communicate()
        self.assertEqual(code, 0, output)
        return output


class Container(ContainerTest):
    def test_a_product_and_a_solve(self):
        """The line of the Containerfile, and one with files."""
        words = re.search(r"--network none shardmat (.*)$", (FOLDER / "Containerfile").read_text(), re.M)[1].split()
        self.assertIn("verification   passed", self.succeed(*words))
        shutil.copy(DATA / "elasticity_bar.mtx.gz", self.folder("data"))
        out = self.succeed("mpirun", "-n", 2, "shardmat", "solve", "/data/elasticity_bar.mtx.gz", "--null-space", "none", "--output", "/data/x.npy",
                           mounts=[(self.directory / "data", "/data", "rw")])
        self.assertIn("converged", out)
        self.assertEqual((self.directory / "data" / "x.npy").stat().st_uid, 1000)

    def test_what_is_in_it(self):
        said = self.succeed("sh", "-c", "id -un; touch /usr/local/x; which g++ cmake; echo end")
        self.assertRegex(said, r"^shardmat\ntouch: .*Read-only file system\nend\n$")
        self.assertIn("shardmat", self.succeed("shardmat", "--version"))

    def test_the_definition_of_apptainer_has_the_same_steps(self):
        """Apptainer is not in Debian: its file runs the script that the Containerfile runs, on the same folders."""
        container, definition = ((FOLDER / name).read_text() for name in ("Containerfile", "shardmat.def"))
        self.assertEqual(re.findall(r"^RUN (.*)$", container, re.M), re.findall(r"%post\n    (.*)$", definition, re.M))
        copied = {word.rstrip("/") for line in re.findall(r"^COPY (?!--from)(.*) /src", container, re.M) for word in line.split()}
        self.assertEqual(copied, set(re.findall(r"^    (\S+) /src/\1$", definition, re.M)))
        self.assertEqual(set(re.findall(r"^ *(?:ARG )?(?:RUN_)?BASE=(.*)$", container + definition, re.M)), {"debian:12", "${BASE}"})
        for stage, name in (("build", "BASE"), ("run", "RUN_BASE")):
            self.assertIn(f"From: {{{{ {name} }}}}\nStage: {stage}\n\n%arguments\n    {name}=", definition)
        # All but the cache, which the host's /tmp would share.
        [words] = re.findall(r"^ENV (.*)$", container, re.M)
        [exported] = re.findall(r"^%environment\n    export (.*)$", definition, re.M)
        self.assertEqual(set(words.split()) - set(exported.split()), {"SHARDMAT_CACHE_DIR=/tmp/shardmat"})
        self.assertLessEqual(set(exported.split()), set(words.split()))


class Kubernetes(ContainerTest):
    def manifest(self, name, kind):
        return next(one for one in yaml.safe_load_all((ROOT / "deploy" / "kubernetes" / name).read_text()) if one["kind"] == kind)

    def of_pod(self, template, **folders):
        """Command, variables and mounts of the only container; `folders` by the names of volumes."""
        [container] = template["spec"]["containers"]
        self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
        mounts = [(folders[mount["name"]], mount["mountPath"], "ro" if mount.get("readOnly") else "rw")
                  for mount in container["volumeMounts"] if mount["name"] not in ("tmp", "shm")]
        more = {one["name"]: one["value"] for one in container.get("env", [])}
        return {"words": container["command"] + container["args"], "variables": variables() | more, "mounts": mounts}

    def test_a_solve_over_two_workers(self):
        """What the MPI operator adds: the key, the list of workers, and some of Open MPI's variables."""
        job = self.manifest("solve.yaml", "MPIJob")["spec"]
        roles = {role: replica["template"] for role, replica in job["mpiReplicaSpecs"].items()}
        workers = [f"shardmat-solve-worker-{number}" for number in range(job["mpiReplicaSpecs"]["Worker"]["replicas"])]
        (self.directory / "ssh").mkdir()
        key = self.directory / "ssh" / "id_rsa"
        call("ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-N", "", "-f", key)
        shutil.copy(f"{key}.pub", key.with_name("authorized_keys"))
        for path in key.parent.iterdir():
            os.chown(path, 0, 1000)  # as fsGroup does
            path.chmod(0o640)
        (self.directory / "hostfile").write_text("".join(f"{worker} slots={job['slotsPerWorker']}\n" for worker in workers))
        data, results = self.folder("data"), self.folder("results")
        call("chroot", self.tree, "shardmat", "generate", "elasticity", "--n", 8,
             "--clamp", "0.1", "/root/bar.h5")
        shutil.move(f"{self.tree}/root/bar.h5", data / "bar.h5")
        with Network("launcher", *workers) as network:
            (self.directory / "hosts").write_text(network.hosts())
            ours = [(self.directory / "hosts", "/etc/hosts", "ro"), (self.directory / "ssh", job["sshAuthMountPath"], "ro")]
            started = []
            for worker in workers:
                of = self.of_pod(roles["Worker"], matrices=data, results=results)
                log = open(self.directory / f"{worker}.log", "w+")
                self.addCleanup(log.close)
                started.append(self.pod(of["words"], name=worker, network=network, output=log, variables=of["variables"], mounts=of["mounts"] + ours))
            self.wait_for("sshd", lambda: all("listening on" in (self.directory / f"{worker}.log").read_text() for worker in workers))
            of = self.of_pod(roles["Launcher"])
            of["variables"] |= {"OMPI_MCA_orte_keep_fqdn_hostnames": "true", "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
                                "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10", "OMPI_MCA_orte_set_default_slots": str(job["slotsPerWorker"])}
            launcher = self.pod(of["words"], name="launcher", network=network, variables=of["variables"],
                                mounts=of["mounts"] + ours + [(self.directory / "hostfile", "/etc/mpi/hostfile", "ro")])
            code, output = launcher.communicate()
            logs = "".join((self.directory / f"{worker}.log").read_text() for worker in workers)
            self.assertEqual(code, 0, output + logs)
        report = json.loads((results / "report.json").read_text())
        self.assertEqual([rank["host"] for rank in report["ranks"]], [worker for worker in workers for _ in range(4)])
        self.assertTrue((results / "x.h5").exists())

    def wait_for(self, what, true):
        end = time.monotonic() + LIMIT
        while not (found := true()):
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.1)
        return found

    def test_the_service_and_its_probes(self):
        service = self.manifest("serve.yaml", "StatefulSet")["spec"]["template"]
        [container] = service["spec"]["containers"]
        tls, tokens = self.folder("tls"), self.folder("tokens")
        call("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 1, "-subj", "/CN=shardmat",
             "-addext", "subjectAltName=DNS:shardmat", "-keyout", tls / "tls.key", "-out", tls / "tls.crt")
        for path in tls.iterdir():
            os.chown(path, 0, 1000)
            path.chmod(0o640)
        secret = {"name": "lab", "sha256": hashlib.sha256(b"word").hexdigest(), "scopes": ["read", "multiply", "admin"]}
        (tokens / "tokens.json").write_text(json.dumps({"tokens": [secret]}))
        shutil.copy(DATA / "elasticity_bar.mtx.gz", self.folder("matrices"))
        with Network("shardmat") as network:
            of = self.of_pod(service, state=self.folder("state"), matrices=self.directory / "matrices", tls=tls, tokens=tokens)
            address = network.addresses["shardmat"]
            [port] = [one["containerPort"] for one in container["ports"]]

            def ask(host, path, *options):
                """Status and body, from another address."""
                result = subprocess.run(["ip", "netns", "exec", network.space("node"), "curl", "--silent", "--noproxy", "*", "--max-time", "60",
                                         "--write-out", "\n%{http_code}", *options, f"https://{host}:{port}{path}"], capture_output=True, text=True)
                body, _, status = result.stdout.rpartition("\n")
                return int(status or 0), body

            def probe(name):  # as kubelet: by the address, without a look at the certificate
                return ask(address, container[name]["httpGet"]["path"], "--insecure")[0]

            for start in (1, 2):
                log = open(self.directory / f"service{start}.log", "w+")
                self.addCleanup(log.close)
                pod = self.pod(of["words"], name="shardmat", network=network, variables=of["variables"], mounts=of["mounts"], output=log)
                self.wait_for("the start", lambda: pod.process.poll() is not None or probe("startupProbe") == 200)
                self.assertEqual((probe("livenessProbe"), probe("readinessProbe")), (200, 200), (self.directory / f"service{start}.log").read_text())
                trusted = ("--cacert", tls / "tls.crt", "--resolve", f"shardmat:{port}:{address}")
                self.assertEqual(ask("shardmat", "/v1/matrices", *trusted)[0], 401)
                word = (*trusted, "--header", "Authorization: Bearer word")
                if start == 1:
                    status, body = ask("shardmat", "/v1/matrices/bar/load?wait=1", *word, "--data", '{"source": "elasticity_bar.mtx.gz"}')
                    self.assertEqual(status, 200, body)
                status, body = ask("shardmat", "/v1/matrices", *word)
                self.assertEqual([one["name"] for one in json.loads(body)["matrices"]], ["bar"])
                self.assertEqual(len(json.loads(ask("shardmat", "/v1/ranks", *word)[1])["ranks"]), 4)
                pod.send_signal(signal.SIGTERM)
                self.wait_for("503", lambda: probe("readinessProbe") == 503)
                self.assertEqual(probe("livenessProbe"), 200)
                self.assertEqual(pod.process.wait(service["spec"]["terminationGracePeriodSeconds"]), 0)


class Systemd(ContainerTest):
    """The unit, started by systemd in the tree of the image."""

    def setUp(self):
        super().setUp()
        if not pods.control_groups():
            self.skipTest("no control groups of version 2 are mounted here")
        if not (pathlib.Path(self.tree) / "lib/systemd/systemd").exists():
            call("chroot", self.tree, "sh", "-c", "mount -t proc proc /proc; trap 'umount /proc' EXIT; apt-get update && "
                 "DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends systemd logrotate")

    def install(self):
        """As deploy/README.md says."""
        lines = re.findall(r"^    sudo (install .*|useradd [^#\n]*)", (ROOT / "deploy" / "README.md").read_text(), re.M)
        self.assertEqual(len(lines), 4)
        for line in lines:
            words = line.split("#")[0].split()
            if words[0] == "install":
                words = [self.tree + word if word.startswith("/") else str(ROOT / word) if word.startswith("deploy/") else word for word in words]
                call(*words)
            elif "shardmat:" not in (pathlib.Path(self.tree) / "etc/passwd").read_text():  # which the image has
                call("chroot", self.tree, *words)
        for name in ("lib", "log", "cache"):  # of an earlier run
            shutil.rmtree(f"{self.tree}/var/{name}/shardmat", ignore_errors=True)
        library = pathlib.Path(self.tree) / "srv/shardmat"
        library.mkdir(exist_ok=True)
        shutil.copy(DATA / "elasticity_bar.mtx.gz", library)

    def test_the_unit(self):
        self.install()
        with pods.Machine(self.tree) as machine:
            def show(name):
                return machine.call("systemctl", "show", "--property", name, "--value", "shardmat")[1].strip()

            def succeed(*words):
                code, output = machine.call(*words)
                self.assertEqual(code, 0, output + machine.call("journalctl", "--unit", "shardmat", "--lines", 30)[1])
                return output

            def wait_for(what, true):
                end = time.monotonic() + LIMIT
                while not true():
                    self.assertLess(time.monotonic(), end, what + machine.call("systemctl", "status", "shardmat")[1])
                    time.sleep(0.2)

            wait_for("systemd", lambda: machine.process.poll() is None and machine.first_process() and
                     machine.call("systemctl", "is-system-running")[1].strip() in ("running", "degraded"))
            succeed("systemctl", "start", "shardmat")
            self.assertEqual((show("ActiveState"), show("StatusText")), ("active", "ready"))
            client = ("shardmat", "client")
            state = ("--state", "/var/lib/shardmat")
            succeed(*client, "load", "bar", "elasticity_bar.mtx.gz", *state)
            succeed("logrotate", "--force", "/etc/logrotate.d/shardmat")
            succeed(*client, "status", *state)
            self.assertEqual(sorted(os.listdir(f"{self.tree}/var/log/shardmat")), ["access.log", "access.log.1"])
            first = show("MainPID")
            succeed("kill", "-STOP", first)  # no sign of life for 30 s
            wait_for("the watchdog", lambda: show("NRestarts") == "1" and show("ActiveState") == "active")
            self.assertNotEqual(show("MainPID"), first)
            self.assertRegex(succeed(*client, "status", *state), r"(?m)^bar +ready")
            succeed("systemctl", "stop", "shardmat")
            self.assertEqual((show("Result"), show("ActiveState")), ("success", "inactive"))
            config = pathlib.Path(self.tree) / "etc/shardmat/serve.json"
            config.write_text(config.read_text().replace('"ranks"', '"rank"'))
            self.assertNotEqual(machine.call("systemctl", "start", "shardmat")[0], 0)
            wait_for("the failure", lambda: show("ActiveState") == "failed")
            self.assertEqual((show("NRestarts"), show("ExecMainStatus")), ("0", "2"))


def setUpModule():
    if IMAGE:
        ContainerTest.image = IMAGE
        return
    folder = tempfile.mkdtemp(prefix="shardmat_image_", dir="/var/tmp")
    image = Image(folder)
    unittest.addModuleCleanup(image.remove)
    ContainerTest.image = image.build()


if __name__ == "__main__":
    unittest.main()
