#!/usr/bin/env python3
"""The unit of the service: systemd reads it, and its command line, its configuration and its logrotate file do what they say."""

import json
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from service import Service  # noqa: E402
from support import BACKEND, LIMIT, OK, PROGRAM, environment  # noqa: E402
from test_serve import ServiceTest  # noqa: E402

FOLDER = ROOT / "deploy" / "systemd"
UNIT = (FOLDER / "shardmat.service").read_text()


def settings(name):
    return re.findall(rf"^{name}=(.*)$", UNIT, re.M)


class Unit(ServiceTest):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is missing: package systemd")
    def test_systemd_reads_it(self):
        def verify(text):
            self.write("shardmat.service", text.replace("/usr/local/bin/shardmat ", f"{PROGRAM} "))
            result = subprocess.run(["systemd-analyze", "verify", "--man=no", str(self.path("shardmat.service"))], capture_output=True, text=True)
            return result.returncode, result.stdout + result.stderr

        self.assertEqual(verify(UNIT), (0, ""))
        self.assertIn("WatchdogSeconds", verify(UNIT.replace("WatchdogSec=", "WatchdogSeconds="))[1])
        self.assertIn("restart specifier", verify(UNIT.replace("Restart=on-failure", "Restart=on-fault"))[1])

    def test_gpus_are_there_after_a_boot(self):
        """The module is loaded before the unit starts, when DeviceAllow is read; its device files are made by root, outside the unit's limits."""
        for name in ("After", "Wants"):
            [units] = settings(name)
            self.assertIn("modprobe@nvidia_uvm.service", units.split())
        self.assertIn("nvidia-persistenced.service", settings("After")[0].split())
        [before] = settings("ExecStartPre")
        self.assertRegex(before, r"^-\+/usr/bin/nvidia-modprobe .*-u$")  # -: machines without GPUs have none; +: as root
        self.assertIn("char-nvidia* rwm", settings("DeviceAllow"))

    def test_its_command_line_with_its_configuration(self):
        """As systemd starts it, but for the folders; then a signal to read again, as ExecReload and logrotate give it."""
        config = json.loads((FOLDER / "serve.json").read_text())
        config |= {"library": str(self.library), "listen": ["127.0.0.1:0"]}
        self.write("serve.json", json.dumps(config))
        folders = {"STATE_DIRECTORY": self.path("state"), "LOGS_DIRECTORY": self.path("logs")}
        self.path("logs").mkdir()
        [line] = settings("ExecStart")
        for name, folder in folders.items():
            line = line.replace(f"${{{name}}}", str(folder))
        words = shlex.split(line.replace("/etc/shardmat/serve.json", str(self.path("serve.json"))))
        self.assertEqual(words[:2], ["/usr/local/bin/shardmat", "serve"])
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.settimeout(LIMIT)
        manager.bind(str(self.path("notify")))
        variables = dict(word.split("=", 1) for words_of in settings("Environment") for word in words_of.split())
        variables |= {"NOTIFY_SOCKET": str(self.path("notify")), "SHARDMAT_CACHE_DIR": str(self.path("cache"))}
        service = Service.__new__(Service)  # started by the words of the unit
        service.state, service.socket = self.path("state"), self.path("state") / "http.sock"
        service.log = open(self.path("service.log"), "a+")
        service.process = subprocess.Popen([PROGRAM, *words[1:], "--backend", BACKEND], env=environment(**variables), cwd="/",
                                           stdin=subprocess.DEVNULL, stdout=service.log, stderr=service.log)
        self.addCleanup(service.close)
        while b"READY=1" not in manager.recv(4096).splitlines():
            pass
        self.assertEqual(len(service.workers()), 2)
        self.loaded(service)
        log = self.path("logs/access.log")
        service.wait_for("a line", lambda: log.exists() and "/load" in log.read_text())
        self.rotate(service, log)
        self.assertEqual(service.terminate(), OK, service.report())

    def rotate(self, service, log):
        """logrotate with the file of deploy/systemd, but for the folder and systemctl."""
        logrotate = shutil.which("logrotate", path=os.environ["PATH"] + ":/usr/sbin")
        if logrotate is None:
            print("without logrotate: package logrotate is missing")
            return
        text = (FOLDER / "logrotate").read_text()
        self.assertIn("/var/log/shardmat/access.log", text)
        self.assertEqual(settings("ExecReload"), ["/bin/kill -HUP $MAINPID"])
        text = text.replace("/var/log/shardmat/access.log", str(log)).replace("systemctl reload shardmat.service", f"kill -HUP {service.process.pid}")
        self.write("logrotate.conf", text)
        os.chmod(self.path("logrotate.conf"), 0o644)
        before = log.read_text()
        result = subprocess.run([logrotate, "--force", "--state", str(self.path("rotated")), str(self.path("logrotate.conf"))],
                                capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue((log.parent / "access.log.1").read_text().startswith(before))
        service.wait_for("the new file", lambda: service.get("/v1/matrices").status == 200 and log.exists() and "/v1/matrices" in log.read_text())

    def test_a_wrong_configuration_is_not_started_again(self):
        for text, code in (('{"library": "/srv", "rank": 2}', 2), ('{"library": "/nowhere"}', 3)):
            self.write("serve.json", text)
            result = self.call("serve", "--config", "serve.json", "--state", self.path("state"))
            self.assertEqual(result.code, code, result)
            self.assertIn(str(code), settings("RestartPreventExitStatus")[0].split())


if __name__ == "__main__":
    unittest.main()
