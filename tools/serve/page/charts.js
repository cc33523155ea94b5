// Pictures over time and over iterations, drawn by uPlot (uPlot.iife.min.js) in the colours of the page.

import { h, setText } from "./dom.js";

const { uPlot } = globalThis;
const dark = matchMedia("(prefers-color-scheme: dark)");
const all = new Set();
const color = (name) => () => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const sizes = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const width = Math.floor(contentRect.width);
    if (target.plot && width > 0 && target.plot.width !== width) target.plot.setSize({ width, height: target.plot.height });
  }
});
dark.addEventListener("change", () => all.forEach((plot) => plot.redraw(false)));

const FONT = '12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

function axis(more) {
  return { stroke: color("--soft"), font: FONT, grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, gap: 4, ...more };
}

/** Values between gaps, which no line shows. */
const alone = ({ data }, series) =>
  data[series].flatMap((value, i, all) => (value != null && all[i - 1] == null && all[i + 1] == null ? [i] : []));

/** A line of a picture: its legend, its colour, and whether the room below is tinted. */
function line({ label, ink, fill, dash, width }) {
  return { label, stroke: color(ink), width: width ?? 1.75, dash, points: { size: 4, filter: alone }, spanGaps: false,
    fill: fill ? () => `color-mix(in srgb, ${color(ink)()} 14%, transparent)` : undefined };
}

/** Of linear pictures: from 0 to a bit more than the largest value, at least to `least`. */
const fromZero = (least) => (_, __, max) => [0, Math.max(1.08 * (max ?? 0), least)];
/** Of logarithmic pictures: whole powers of ten that hold all values. */
const decades = (_, min, max) =>
  !(min > 0) ? [1e-6, 1] : [10 ** Math.floor(Math.log10(min)), 10 ** Math.max(Math.ceil(Math.log10(max)), Math.floor(Math.log10(min)) + 1)];

function plot(host, { lines, x, y, height, hover, right = 8 }) {
  const drawn = new uPlot({
    width: Math.max(Math.floor(host.clientWidth), 120), height,
    padding: [8, right, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: { x: { time: false, range: x.range }, y: { distr: y.log ? 3 : 1, range: y.log ? decades : fromZero(y.least ?? 1) } },
    axes: [axis({ space: 70, size: 24, values: x.values, splits: x.splits }),
      axis({ size: 58, space: 28, splits: y.splits, values: (_, splits) => splits.map((value) => (value == null ? null : y.values(value))), filter: (_, splits) => splits })],
    series: [{}, ...lines.map(line)],
    hooks: { setCursor: [(self) => hover(self.cursor.idx)] },
  }, [[], ...lines.map(() => [])], host);
  host.plot = drawn;
  sizes.observe(host);
  all.add(drawn);
  return drawn;
}

function end(host) {
  sizes.unobserve(host);
  all.delete(host.plot);
  host.plot.destroy();
}

/** Marks at full minutes, but for those whose label would be cut at the end. */
function minutes(_, __, min, max) {
  const marks = [];
  for (let mark = 60 * Math.ceil(min / 60); mark <= max - 12; mark += 60) marks.push(mark);
  return marks;
}
const asClock = (_, splits) => splits.map((seconds) => new Date(1000 * seconds).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" }));

/** Whole powers of ten, few enough to be read. */
function powers(_, __, min, max) {
  const first = Math.round(Math.log10(min)), last = Math.round(Math.log10(max)), step = Math.ceil((last - first) / 4);
  const marks = [];
  for (let power = first; power <= last; power += step) marks.push(10 ** power);
  return marks;
}

/** A figure with its picture over the last minutes. `lines`: {label, ink, of: name in the history}. */
export function timeChart({ title, lines, values, log, least, unit }) {
  const value = h("p", { class: "value" }), note = h("p", { class: "note" }), host = h("div", { class: "plot", role: "img", "aria-label": title });
  const keys = lines.length > 1
    ? h("p", { class: "keys" }, ...lines.map(({ label, ink }) => h("span", { "data-ink": ink.slice(2) }, label))) : null;
  const element = h("figure", { class: "chart" }, h("figcaption", {}, title, keys), value, note, host);
  let drawn, data, texts = ["", ""];
  const write = () => { setText(value, texts[0]); setText(note, texts[1]); };
  const hover = (index) => {
    if (index == null || !data) return write();
    setText(value, lines.filter(({ dash }) => !dash).map((one) => { const v = data[one.of][index]; return v == null ? "–" : unit(v); }).join(" · "));
    setText(note, new Date(1000 * data.t[index]).toLocaleTimeString("en-GB"));
  };
  return {
    element,
    /** `history`: arrays by name; `now`: what is written: [figure, note]. */
    update(history, now) {
      data = history, texts = now;
      drawn ??= plot(host, { lines, x: { range: (_, __, max) => [max - 300, max], values: asClock, splits: minutes },
        y: { log, least, values, splits: log ? powers : undefined }, height: 128, hover });
      drawn.setData([history.t, ...lines.map(({ of, sparse }) => (sparse ? history[of].map((value) => value || null) : history[of]))]);
      if (drawn.cursor.idx == null || drawn.cursor.left < 0) write();
      host.setAttribute("aria-label", `${title}: ${now.filter(Boolean).join(", ")}`);
    },
  };
}

/** Residuals by iteration. */
export function convergence(values) {
  const host = h("div", { class: "plot", role: "img", "aria-label": "residuals by iteration" });
  let drawn;
  return {
    element: host,
    update(history) {
      const x = history.map(([iteration]) => iteration), y = history.map(([, norm]) => (norm > 0 ? norm : null));
      drawn ??= plot(host, { lines: [{ label: "residual", ink: "--blue" }], height: 116, right: 22, hover: () => {},
        x: { range: (_, min, max) => [Math.min(min ?? 0, 0), Math.max(max ?? 1, 1)], values: (_, splits) => splits.map((i) => (Number.isInteger(i) ? i.toLocaleString("en") : "")) },
        y: { log: true, values, splits: powers } });
      drawn.setData([x, y]);
    },
    end: () => drawn && end(host),
  };
}
