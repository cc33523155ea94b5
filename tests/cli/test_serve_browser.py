"""The service's page in a real browser: what an operator sees and does, narrow and wide, light and dark, by keyboard, and without
JavaScript. TEST_PICTURES=FOLDER keeps pictures of the page; TEST_AXE=axe.min.js lets axe-core look at it, too, as tests/run.sh --label browser does."""

import json
import os
import pathlib
import time
import unittest

from browser import BROWSER, Browser
from support import LIMIT
from test_serve_page import PageTest
from test_serve_solve import SolveTest

# What is cut off, what has no name, and what is hard to read. Ratios of contrast are those of WCAG 2.
LOOK = r"""(() => {
  const found = [];
  const shown = (element) => element.getClientRects().length > 0 && getComputedStyle(element).visibility !== "hidden";
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page is " + document.documentElement.scrollWidth + " wide");
  for (const element of document.querySelectorAll("main *, header *, footer *")) {
    const place = element.getBoundingClientRect();
    if (shown(element) && place.width > 1 && !element.closest(".skip, caption, .u-wrap") && (place.right > innerWidth + 1 || place.left < -1))
      found.push("outside: " + element.outerHTML.slice(0, 120));
    if (shown(element) && /hidden|clip/.test(getComputedStyle(element).overflowX) && !element.matches(".note, .meter, caption, .u-under") && element.scrollWidth > element.clientWidth + 1)
      found.push("cut: " + element.outerHTML.slice(0, 120));
  }
  for (const cell of document.querySelectorAll("td, dd")) if (shown(cell) && cell.scrollWidth > cell.clientWidth + 1) found.push("cell: " + cell.innerText);
  for (const control of document.querySelectorAll("button, input, select, a")) {
    if (!shown(control)) continue;
    const name = control.getAttribute("aria-label") || control.innerText || control.labels?.[0]?.innerText || control.closest("label")?.innerText;
    if (!name?.trim()) found.push("no name: " + control.outerHTML.slice(0, 120));
  }
  for (const canvas of document.querySelectorAll("canvas")) {
    const box = canvas.closest("[role=img]");
    if (!box?.getAttribute("aria-label")) found.push("a picture without words");
    if (shown(canvas) && Math.abs(canvas.clientWidth - box.clientWidth) > 2) found.push(`a picture of ${canvas.clientWidth} in ${box.clientWidth}`);
  }
  const rgb = (text) => text.match(/[\d.]+/g).map(Number);
  const light = (color) => { const [r, g, b] = color.map((v) => { const c = v / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const under = (element) => { for (; element; element = element.parentElement) { const color = rgb(getComputedStyle(element).backgroundColor); if (color.length < 4 || color[3] > 0.9) return color.slice(0, 3); } return [255, 255, 255]; };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const element = text.parentElement;
    if (!text.data.trim() || !shown(element) || element.closest("script, noscript, :disabled, .skip")) continue;
    const one = light(rgb(getComputedStyle(element).color).slice(0, 3)), other = light(under(element));
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) found.push(`contrast ${ratio.toFixed(2)}: ${text.data.trim().slice(0, 60)}`);
  }
  const levels = [...document.querySelectorAll("h1, h2, h3")].filter(shown).map((heading) => Number(heading.tagName[1]));
  if (levels[0] !== 1 || levels.some((level, i) => i > 0 && level > levels[i - 1] + 1)) found.push("headings " + levels);
  const style = getComputedStyle(document.body);
  return {width: innerWidth, found, paper: light(rgb(style.backgroundColor)), ink: light(rgb(style.color))};
})()"""

VISIBLE = "document.getElementById('{}')?.hidden === false"
REFUSED = "status of 401"  # the browser notes it when the page asks whether it is known


@unittest.skipUnless(BROWSER, "chromium is not installed")
class Page(PageTest, SolveTest):
    def open(self, service, **look):
        browser = self.enter(Browser())
        browser.set(**look)
        browser.open(f"http://127.0.0.1:{service.port()}/")
        return browser

    def enter(self, context):
        self.addCleanup(context.__exit__, None, None, None)
        return context.__enter__()

    def picture(self, browser, name):
        if folder := os.environ.get("TEST_PICTURES"):
            browser.picture(pathlib.Path(folder) / f"{name}.png")

    def sign_in_by_keyboard(self, browser, token):
        browser.wait(VISIBLE.format("login"))
        browser.wait("document.activeElement.id === 'token'")
        browser.write(token)
        browser.key("Enter", 13, "\r")

    def press(self, browser, name):
        """Focuses the control with this name, and presses Enter."""
        browser.wait(f"""(() => {{ const all = [...document.querySelectorAll("button, summary")].filter((one) => one.getClientRects().length > 0 && !one.disabled);
            const found = all.find((one) => (one.getAttribute("aria-label") ?? one.innerText).trim() === {json.dumps(name)}); found?.focus(); return found != null; }})()""")
        browser.key("Enter", 13, "\r")

    def answer(self, browser, name):
        """Presses Enter at this button of the dialog until it has gone: a busy browser may lose a key while a dialog opens."""
        is_open = "document.getElementById('ask').open"
        browser.wait(is_open)
        end = time.monotonic() + LIMIT
        while browser.run(is_open):
            self.assertLess(time.monotonic(), end, "the dialog stays open")
            browser.wait(f"""document.hasFocus() && (() => {{ const found = [...document.querySelectorAll("#ask button")].find((one) => one.innerText.trim() ===
                {json.dumps(name)}); found?.focus(); return found != null && document.activeElement === found; }})()""")
            browser.key("Enter", 13, "\r")
            time.sleep(0.05)

    def text_of(self, id):
        return f"document.getElementById('{id}').innerText"

    def look(self, browser, name):
        axe = os.environ.get("TEST_AXE")
        with self.subTest(page=name, by="axe-core"):
            if not axe:
                self.skipTest("TEST_AXE names no axe.min.js; tests/run.sh --label browser installs one")
        for width in (1400, 900, 400):
            for dark in (False, True):
                with self.subTest(page=name, width=width, dark=dark):
                    browser.set(width=width, dark=dark)
                    browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
                    browser.wait(f"innerWidth === {width} && ![...document.querySelectorAll('canvas')].some((one) => one.getClientRects().length > 0"
                                 " && Math.abs(one.clientWidth - one.closest('[role=img]').clientWidth) > 2)")
                    seen = browser.run(LOOK)
                    self.picture(browser, f"{name}-{width}-{'dark' if dark else 'light'}")
                    self.assertEqual((seen["width"], seen["found"]), (width, []))
                    self.assertGreater(seen["ink"] if dark else seen["paper"], 0.7, seen)
                    self.assertLess(seen["paper"] if dark else seen["ink"], 0.05, seen)
                    if axe:
                        browser.run(pathlib.Path(axe).read_text() + ";0")
                        faults = browser.run("axe.run().then(({violations}) => violations.map(({id, nodes}) => [id, ...nodes.map(({html}) => html)]))")
                        self.assertEqual(faults, [])
        browser.set()

    def test_what_an_operator_sees(self):
        service = self.start("--ranks", 2, "--listen", "127.0.0.1:0")
        browser = self.open(service)
        browser.wait(VISIBLE.format("login"))
        self.look(browser, "token")
        self.sign_in_by_keyboard(browser, service.token())
        browser.wait(VISIBLE.format("live"))
        browser.wait(self.text_of("matrices") + ".includes('bar.h5')")  # what the library has
        self.look(browser, "empty")
        self.solvable(service)
        self.solvable(service, "slow", "slow.h5")
        self.loaded(service, pinned=True)
        self.assertEqual(service.load("a-matrix-with-a-name-as-long-as-names-may-be-0123456789-and-on", "there-is-no-such-file.h5").status, 422)
        self.solve(service, self.b(1)[0], "method=cg&preconditioner=multigrid&wait=60&keep=1", status=200)
        self.solve(service, self.b(1)[0], "method=gmres&preconditioner=none&max_iterations=30", status=202)
        self.endless(service), self.endless(service)
        browser.wait("document.querySelectorAll('.job canvas').length >= 3")

        def reached():  # figures are of the last 10 s
            self.assertEqual(service.multiply("bar", self.vector(1)[0]).status, 200)
            return browser.run(r"/\d\s[kMG]?B\/s/.test(document.querySelectorAll('.chart .value')[2].innerText)")

        service.wait_for("a bandwidth", reached)
        self.look(browser, "busy")
        spies = "[...document.querySelectorAll('.spy')].filter((one) => one.getClientRects().length > 0).map((one) => one.getAttribute('aria-label'))"
        says = lambda name, filled, most, band: (f"Nonzeros of {name} in 64 × 64 parts of its rows and columns, on a logarithmic scale: {filled} of 4,096 have some, "
                                                 f"at most {most}; all lie within {band} of the diagonal.")
        browser.wait(f"{spies}.length === 3")  # none of the matrix that failed
        self.assertEqual(browser.run(spies), [says("bar", 836, 124, 16), says("grid", 314, 169, 2), says("slow", 128, 113, 1)])
        ink = browser.run("[...document.querySelectorAll('.spy canvas')].map((one) => { const all = one.getContext('2d').getImageData(0, 0, one.width, one.height).data;"
                          " return [one.width, one.height, all.filter((value, i) => i % 4 === 3 && value > 0).length]; })")
        self.assertEqual(ink, [[64, 64, filled] for filled in (836, 314, 128)])
        for says in ("products", "solves"):
            self.assertIn(says, browser.run(self.text_of("kinds")))
        for says in ("f64", "3,600 × 3,600", "in solvers", "there is no such file in the library"):
            self.assertIn(says, browser.run(self.text_of("matrices")))
        self.press(browser, "solvers")
        browser.wait(r"/cg · multigrid.* levels.* complexity .*used at/.test(" + self.text_of("matrices") + ")")
        self.assertRegex(browser.run(self.text_of("jobs")), r"slow\s+running(?s:.*)gmres · none")
        self.assertIn("is loaded", browser.run(self.text_of("log")))
        self.assertEqual(browser.run("document.querySelectorAll('#ranks tbody tr').length"), 2)
        self.assertIn("unix", browser.run(self.text_of("tokens")))
        self.assertEqual([one for one in browser.complaints() if REFUSED not in one], [])

    def test_what_an_operator_does(self):
        service = self.start("--listen", "127.0.0.1:0")
        browser = self.open(service)
        self.sign_in_by_keyboard(browser, "wrong")
        browser.wait(self.text_of("login-message") + " === 'There is no such token.'")
        self.sign_in_by_keyboard(browser, service.token())
        browser.wait(VISIBLE.format("live"))
        self.assertEqual(browser.run("document.cookie"), "")  # scripts do not see it
        cookies = browser.call("Network.getCookies")["cookies"]
        self.assertEqual([(one["httpOnly"], one["sameSite"], service.token() in one["value"]) for one in cookies], [(True, "Strict", False)])
        self.assertEqual(browser.run("localStorage.length + sessionStorage.length"), 0)
        self.press(browser, "Load a matrix")
        browser.wait("document.activeElement.id === 'load-source'")
        browser.wait("document.querySelectorAll('#sources option').length > 1")
        browser.write("none.h5")
        browser.key("Enter", 13, "\r")
        browser.wait("/failed[^]*there is no such file/.test(" + self.text_of("matrices") + ")")
        self.press(browser, "forget none")
        browser.wait(self.text_of("matrices") + ".includes('No matrix is loaded')")
        self.press(browser, "slow.h5 " + browser.run(r"document.querySelector('.files').innerText.match(/slow\.h5 (.*B)/)[1]"))
        browser.wait("document.getElementById('load-name').value === 'slow'")
        browser.key("Enter", 13, "\r")
        browser.wait("/ready/.test(" + self.text_of("matrices") + ")")
        self.press(browser, "pin slow")
        browser.wait("[...document.querySelectorAll('button')].some((one) => one.innerText === 'Unpin')")
        self.assertTrue(service.get("/v1/matrices/slow").json["pinned"])
        id = self.endless(service)
        browser.wait("document.querySelectorAll('.job canvas').length === 1")
        name = f"cancel the job of slow {id[:12]}"
        self.press(browser, name)
        browser.wait("document.activeElement.closest('#ask')?.open && document.activeElement.innerText.trim() === 'Cancel'")
        self.answer(browser, "Cancel")  # which has the focus: nothing happens
        self.assertEqual(self.job(service, id)["state"], "running")
        self.press(browser, name)
        self.answer(browser, "Cancel the job")
        self.assertEqual(self.ended(service, id)["state"], "cancelled")
        self.press(browser, f"forget the job of slow {id[:12]}")
        browser.wait(self.text_of("jobs") + ".includes('No job is under way')")
        self.press(browser, "unload slow")
        self.answer(browser, "Unload")
        browser.wait(self.text_of("matrices") + ".includes('No matrix is loaded')")
        self.assertEqual(service.get("/v1/matrices").json["matrices"], [])
        browser.open(f"http://127.0.0.1:{service.port()}/")  # the token is asked for once
        browser.wait(VISIBLE.format("live"))
        self.press(browser, "Sign out")
        browser.wait(VISIBLE.format("login"))
        self.assertEqual(browser.call("Network.getCookies")["cookies"], [])
        self.assertEqual([one for one in browser.complaints() if REFUSED not in one], [])

    def test_rights_lost_ranks_and_the_end(self):
        service = self.start("--listen", "127.0.0.1:0", "--no-token")
        self.loaded(service)
        browser = self.open(service, width=400)
        browser.wait("/ready/.test(" + self.text_of("matrices") + ")")
        self.assertFalse(browser.run(VISIBLE.format("login")))
        os.kill(service.workers()[0], 9)
        browser.wait("/Ranks were lost/.test(" + self.text_of("notices") + ")")
        browser.wait("/They were started again/.test(" + self.text_of("notices") + ")")
        self.assertEqual(service.terminate(), 0)
        browser.wait("/not answered since/.test(" + self.text_of("notices") + ")")
        self.assertIn("bar", browser.run(self.text_of("matrices")))  # what it said last
        reader = self.start("--listen", "127.0.0.1:0", "--tokens", self.write_tokens(("r" * 40, "reader", ["read"], {})), state="reader")
        self.loaded(reader)
        other = self.open(reader)
        self.sign_in_by_keyboard(other, "r" * 40)
        other.wait("/ready/.test(" + self.text_of("matrices") + ")")
        self.assertEqual(other.run("[...document.querySelectorAll('#live button')].filter((one) => one.getClientRects().length > 0).length"), 0)
        self.assertFalse(other.run(VISIBLE.format("log-section")))

    def test_without_javascript(self):
        service = self.start("--listen", "127.0.0.1:0")
        self.loaded(service)
        browser = self.open(service, script=False, width=400)
        box = lambda what: browser.run(f"document.querySelector('{what}')?.getClientRects().length ?? 0")
        self.assertTrue(box("#login"))
        browser.run("document.getElementById('token').focus()")
        browser.write(service.token())
        browser.key("Enter", 13, "\r")
        browser.wait("document.querySelectorAll('.plain td').length > 0")
        self.assertFalse(box("#login") or box("#live"))
        self.assertRegex(browser.run("document.querySelector('.plain').innerText"), r"The service is ready(?s:.*)bar\s+ready\s+975")
        self.picture(browser, "plain-400-light")


if __name__ == "__main__":
    unittest.main()
