"""Drives Chromium by its own protocol over a pair of pipes: no driver, no package, no port."""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from support import LIMIT

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """`with Browser() as browser: browser.open(url)`. One page; `width`, `dark` and JavaScript can be changed."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="shardmat_browser_", ignore_cleanup_errors=True)
        commands, answers = os.pipe(), os.pipe()
        self.to, self.back = commands[1], answers[0]

        def give():  # Chromium reads commands from descriptor 3, and writes to 4
            taken = os.dup(commands[0]), os.dup(answers[1])
            os.dup2(taken[0], 3), os.dup2(taken[1], 4)

        self.errors = open(pathlib.Path(self.profile.name) / "errors", "w+")
        self.process = subprocess.Popen(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=self.errors, stderr=self.errors, close_fds=False, preexec_fn=give)
        os.close(commands[0]), os.close(answers[1])
        self.number, self.rest, self.session, self.events = 0, b"", None, []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in targets if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.to)  # at which Chromium ends
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.back)
        self.errors.close()
        self.profile.cleanup()

    def message(self):
        while b"\0" not in self.rest:
            more = os.read(self.back, 1 << 20)
            if not more:
                self.errors.seek(0)
                raise AssertionError("the browser has ended: " + self.errors.read()[-2000:])
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.to, json.dumps(command).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def set(self, width=1400, height=900, dark=False, script=True):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Emulation.setScriptExecutionDisabled", value=not script)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait(f"document.readyState === 'complete' && location.href.startsWith({json.dumps(url)})")

    def run(self, expression):
        """The value of JavaScript, which may be a promise."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression):
        end = time.monotonic() + LIMIT
        while True:
            try:
                if value := self.run(expression):
                    return value
            except AssertionError as error:  # the page is being left
                if "context" not in str(error) and "navigated" not in str(error):
                    raise
            if time.monotonic() > end:
                raise AssertionError(f"{expression} did not become true: " + str(self.run("document.body.innerText"))[:2000])
            time.sleep(0.05)

    def key(self, key, code=0, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text if kind == "keyDown" else "")

    def write(self, text):
        self.call("Input.insertText", text=text)

    def complaints(self):
        """What the page, or the browser about it, has complained about since the last call."""
        self.run("0")
        found = []
        for event in self.events:
            what = event.get("params", {})
            if event.get("method") == "Log.entryAdded" and what["entry"]["level"] == "error":
                found.append(what["entry"]["text"] + " " + what["entry"].get("url", ""))
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(json.dumps(what["exceptionDetails"]))
            if event.get("method") == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning"):
                found.append(json.dumps(what["args"]))
        self.events.clear()
        return found

    def picture(self, file, whole=True):
        clip = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}, "captureBeyondViewport": True}
        pathlib.Path(file).write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png", **clip)["data"]))
