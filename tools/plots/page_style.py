"""What pages of reports share: how they look, light and dark, wide and narrow, and how they write times and sizes."""

import plots

# What matplotlib draws with, and what the page makes of it.
COLORS = {"#000000": "currentColor", "#ffffff": "var(--paper)", "#2f6f9f": "var(--blue)", "#e3a34a": "var(--amber)",
          "#4f9a5b": "var(--green)", "#a33a3a": "var(--red)"}

STYLE = plots.svg_colors(COLORS) + """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2126; --soft: #5d6873; --line: #dde2e7; --tint: #f4f6f8;
  --blue: #2f6f9f; --amber: #e0992f; --green: #4f9a5b; --red: #b04141; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181c; --ink: #e6eaee; --soft: #9aa6b1; --line: #2e363e;
  --tint: #1c2228; --blue: #5b9fd3; --amber: #e3a953; --green: #6fbd7c; --red: #d96c6c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 3rem 1.5rem 4rem; max-width: 80rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; }
h1 { margin: 0; font-size: 2rem; line-height: 1.2; letter-spacing: -.015em; }
h2 { margin: 3.5rem 0 .2rem; font-size: 1.35rem; line-height: 1.3; overflow-wrap: anywhere; }
h3 { margin: 1.8rem 0 .3rem; font-size: 1rem; }
p, dd { max-width: 46rem; }
.soft, dt, caption, th { color: var(--soft); }
.kind { display: inline-block; margin-left: .5rem; padding: 0 .6em; border: 1px solid currentColor; border-radius: 1em;
  color: var(--blue); font-size: .8rem; font-weight: 600; line-height: 1.6; vertical-align: .15em; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.5rem; margin: 1.6rem 0 0; }
dd { margin: 0; overflow-wrap: anywhere; }
code { font: .88em/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(19rem, 1fr)); gap: 1.2rem 2rem; margin: 1.4rem 0; }
figure { margin: 0; break-inside: avoid; }
figcaption { font-size: .9rem; font-weight: 600; }
svg { display: block; width: 100%; height: auto; overflow: visible; fill: currentColor; }
svg text { font-family: inherit !important; }
.table { overflow-x: auto; margin: 1rem 0; }
table { width: 100%; border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
caption { padding-bottom: .3rem; text-align: left; }
th, td { padding: .3rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { border-bottom: 2px solid var(--line); font-weight: 600; white-space: normal; vertical-align: bottom; line-height: 1.3; }
td.word { white-space: normal; }
.cards td { white-space: normal; }
.cards th, .cards td { padding: .3rem .4rem; }
th:first-child, td:first-child { padding-left: .2rem; }
tbody tr:hover { background: var(--tint); }
.word { text-align: left; }
td.long { white-space: normal; text-align: left; color: var(--red); }
.notes { max-width: 46rem; border-left: 3px solid var(--amber); padding: .2rem 1rem; }
.notes ul { margin: .2rem 0; padding-left: 1.2rem; }
@media screen and (max-width: 70rem) {  /* a card for each row: no table is cut off */
  .cards { overflow: visible; }
  .cards table, .cards caption, .cards tbody, .cards tr { display: block; }
  .cards thead { display: none; }
  .cards tr { margin: .6rem 0; padding: .3rem .8rem; border: 1px solid var(--line); border-radius: .4rem; }
  .cards td { display: flex; justify-content: space-between; gap: 1rem; padding: .15rem 0; border: 0; text-align: right;
    white-space: normal; overflow-wrap: anywhere; }
  .cards td::before { content: attr(data-label); flex: none; max-width: 50%; color: var(--soft); text-align: left; }
}
@media (max-width: 40rem) {
  body { padding: 1.5rem 1rem 3rem; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dt { margin-top: .5rem; }
  .pictures { grid-template-columns: 1fr; }
}
button { padding: .3rem .9rem; border: 1px solid var(--line); border-radius: .4rem; background: var(--tint);
  color: inherit; font: inherit; cursor: pointer; }
@media print {
  :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --line: #bbb; --tint: #fff;
    --blue: #2f6f9f; --amber: #e0992f; --green: #4f9a5b; --red: #b04141; }
  @page { margin: 15mm; }
  body { max-width: none; padding: 0; font-size: 9.5pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h1 { font-size: 1.6rem; }
  h2 { margin-top: 2rem; }
  .pictures { grid-template-columns: repeat(3, 1fr); gap: 1rem; }
  table { font-size: 7.5pt; }
  th, td { padding: .2rem .35rem; }
  .table { overflow: visible; break-inside: avoid; }
  h2, h3, caption { break-after: avoid; }
  tr { break-inside: avoid; }
  button { display: none; }
}
"""


def unit_of(seconds):
    """The unit in which so many seconds are a handy number, and how many of them a second has."""
    return next(((name, factor) for name, factor in (("s", 1), ("ms", 1e3)) if seconds * factor >= 1), ("µs", 1e6))


def time(seconds):
    unit, factor = unit_of(seconds)
    return f"{factor * seconds:.{1 if unit == 'µs' else 2}f}\u00a0{unit}"


def size(count):
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.3g}\u00a0{unit}"
    return f"{count:.0f}\u00a0B"
