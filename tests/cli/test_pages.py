"""Pages of studies and comparisons in a browser: no table is cut off, narrow or wide, light or dark."""

import json
import re
import shutil
import subprocess
import tempfile
import unittest

from support import LIMIT, CliTest, has_matplotlib

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")

# What sticks out of its container, or of the page; and the colours of the page.
LOOK = """<script>
addEventListener("load", () => {
  const cut = [];
  if (document.documentElement.scrollWidth > innerWidth) cut.push("page " + document.documentElement.scrollWidth);
  for (const box of document.querySelectorAll(".table")) if (box.scrollWidth > box.clientWidth + 1) cut.push("table " + box.innerText.slice(0, 40));
  for (const cell of document.querySelectorAll("td, th, dd, figure")) {
    const place = cell.getBoundingClientRect();
    if (place.width > 0 && (place.right > innerWidth + 1 || place.left < -1)) cut.push("cell " + cell.innerText);
  }
  const style = getComputedStyle(document.body);
  document.title = JSON.stringify({width: innerWidth, cut, paper: style.backgroundColor, ink: style.color});
});
</script></body>"""


def brightness(color):
    return sum(map(int, re.findall(r"\d+", color)[:3])) / 3


@unittest.skipUnless(BROWSER, "chromium is not installed")
@unittest.skipUnless(has_matplotlib(), "matplotlib is missing")
class Pages(CliTest):
    def look(self, name, width, dark=False):
        """At so many pixels; the browser's windows have at least 500, so that a frame shows less."""
        page = self.path(name).read_text()
        self.assertEqual(page.count("</body>"), 1)
        self.path("looked.html").write_text(page.replace("</body>", LOOK))
        self.path("frame.html").write_text(f"""<!DOCTYPE html><title></title><body style="margin:0">
            <iframe src="looked.html" style="width:{width}px;height:900px;border:0"></iframe>
            <script>setInterval(() => {{ document.title = frames[0].document.title; }}, 50);</script></body>""")
        colors = ["--blink-settings=preferredColorScheme=0"] if dark else ["--blink-settings=preferredColorScheme=1"]
        with tempfile.TemporaryDirectory(prefix="shardmat_browser_") as profile:
            result = subprocess.run(
                [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                 "--disable-component-update", "--disable-sync", "--allow-file-access-from-files", *colors, f"--user-data-dir={profile}",
                 f"--window-size={max(width, 500) + 50},1000", "--virtual-time-budget=5000", "--dump-dom", self.path("frame.html").as_uri()],
                capture_output=True, text=True, timeout=LIMIT)
        title = re.search(r"<title>(\{.*?\})</title>", result.stdout)
        self.assertTrue(title, result.stdout[:500] + result.stderr[-2000:])
        found = json.loads(title[1].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))
        self.assertEqual(found["width"], width)
        return found

    def check(self, name):
        for width in (400, 900, 1400):
            for dark in (False, True):
                with self.subTest(page=name, width=width, dark=dark):
                    found = self.look(name, width, dark)
                    self.assertEqual(found["cut"], [])
                    paper, ink = brightness(found["paper"]), brightness(found["ink"])
                    self.assertGreater(ink if dark else paper, 200, found)
                    self.assertLess(paper if dark else ink, 60, found)

    def test_a_study_and_a_comparison(self):
        study = ("bench", "scaling", "poisson27:n=6", "poisson27:n=5,nz={4}", "--exchange", "auto,peer", "--solve", "--preconditioner",
                 "auto,jacobi", "--iterations", 5, "--backend", "host")
        self.succeed(*study, "--json", "a.json", "--html", "a.html", ranks=2)
        self.check("a.html")
        self.succeed(*study, "--json", "b.json", ranks=2)
        self.succeed("compare", "a.json", "b.json", "--html", "c.html")
        self.check("c.html")


if __name__ == "__main__":
    unittest.main()
