#!/usr/bin/env python3
"""Every command of deploy/service/operations.md, on a fresh Debian: the installation with a network, the rest under systemd in namespaces
of its own. TEST_PACKAGES_BASE: see trees.py. TEST_OPERATOR_PACKAGES=DIR takes packages that were made before."""

import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time
import unittest

import pods
from trees import BUILD, ROOT, Tree, call, why_not

why_not = why_not or pods.missing() or ("" if pods.control_groups() else "no control groups of version 2 are mounted here")
if why_not:
    print("skipped:", why_not)
    sys.exit(0)
PAGE = (ROOT / "deploy" / "service" / "operations.md").read_text()
PACKAGES = os.environ.get("TEST_OPERATOR_PACKAGES")


def blocks():
    """(section, commands) of each block of the page."""
    found = []
    for section in re.split(r"^## ", PAGE, flags=re.M)[1:]:
        title, _, text = section.partition("\n")
        found += [(title, block) for block in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)]
    return found


class Operator(unittest.TestCase):
    def make_tree(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="shardmat_operator_", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        if not PACKAGES:
            call(os.environ["TEST_CPACK"], "-G", "DEB", "-B", folder / "made", cwd=BUILD)
        [package] = pathlib.Path(PACKAGES or folder / "made").glob("shardmat_*.deb")
        tree = Tree(folder)
        shutil.copy(package, tree.root / "root")
        tree.run("apt-get update && apt-get install --yes --no-install-recommends systemd")  # which a bare machine has
        return tree

    def test_the_page(self):
        self.assertLessEqual(len(PAGE.splitlines()), 120)
        (first, install), *rest = blocks()
        self.assertEqual((first, len(rest)), ("Install", 8))
        tree = self.make_tree()
        # No daemon starts before systemd is there.
        policy = tree.root / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
        tree.run(install)
        policy.unlink()
        (tree.root / "etc/hosts").write_text("127.0.0.1 localhost lab.example.org\n")
        with pods.Machine(tree.root) as machine:
            def run(commands):
                return machine.call("env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "bash", "-euo", "pipefail", "-c", commands)

            def succeed(commands):
                code, output = run(commands)
                self.assertEqual(code, 0, f"{commands}\n{output}\n" + run("journalctl --unit shardmat --lines 40 --no-pager; tail -n 20 /var/lib/shardmat/workers.log")[1])
                return output

            end = time.monotonic() + pods.LIMIT
            while not (machine.process.poll() is None and machine.first_process() and run("systemctl is-system-running")[1].strip() in ("running", "degraded")):
                self.assertLess(time.monotonic(), end, "systemd did not start")
                time.sleep(0.2)
            said = [(title, succeed(commands)) for title, commands in rest]
            answers = dict(said)
            self.assertIn("bar", json.dumps(json.loads(answers["TLS, by a proxy"][answers["TLS, by a proxy"].index("{\"matrices"):].splitlines()[0])))
            self.assertIn("shardmat_ready 1", answers["Watch"])
            # A member of the group, and a stranger.
            succeed("useradd --groups lab --create-home member; useradd --create-home stranger")
            client = "shardmat client status --unix /run/shardmat/http.sock"
            self.assertIn("bar", succeed(f"runuser -u member -- {client}"))
            code, output = run(f"runuser -u stranger -- {client}")
            self.assertEqual(code, 4, output)
            # What clients send survives a backup, too: the library's hidden folder is in it.
            arrays = "printf '%s\\n' '%%Shardmat CSR rows=1 cols=1 nonzeros=1 offsets=i32 columns=i32 values=f32' > a.csr; printf '\\0\\0\\0\\0\\1\\0\\0\\0\\0\\0\\0\\0\\0\\0\\200\\77' >> a.csr"
            succeed(f"cd /root; {arrays}; curl --fail --unix-socket /run/shardmat/http.sock -T a.csr http://localhost/v1/matrices/arrays")
            for title, commands in rest:
                if title == "Back up and restore":
                    succeed(commands)
            self.assertRegex(succeed(client), r"(?m)^arrays +ready")
            # Who a request came from, as the proxy says, and not as the client does.
            succeed("curl --fail --cacert /etc/ssl/certs/lab.pem --header 'X-Forwarded-For: 1.2.3.4' --interface 127.0.0.9 https://lab.example.org/v2/health/live")
            log = succeed("cat /var/log/shardmat/access.log")
            lines = [json.loads(line) for line in log.splitlines()]
            self.assertEqual([line["client"] for line in lines if line["path"] == "/v2/health/live"], ["127.0.0.9"], log)
            # What the table says of exit codes.
            config = "/etc/shardmat/serve.json"
            succeed(f"systemctl stop shardmat && sed -i.bak 's/\"ranks\"/\"rank\"/' {config}")
            self.assertNotEqual(run("systemctl start shardmat")[0], 0)
            while succeed("systemctl show --property ActiveState --value shardmat").strip() != "failed":
                self.assertLess(time.monotonic(), end)
                time.sleep(0.2)
            self.assertEqual(set(succeed("systemctl show --property ExecMainStatus,NRestarts shardmat").split()), {"ExecMainStatus=2", "NRestarts=0"})


if __name__ == "__main__":
    unittest.main()
