// How the service is as a whole: its state, what it does, its ranks, who uses it, and what it says in its log.

import { byId, h, keyed, meter, setPill, setText, show, table, pill } from "./dom.js";
import { timeChart } from "./charts.js";
import * as units from "./units.js";

const { none } = units;
const KEPT_LINES = 200;

// --- state ---

const statePill = pill(), doing = h("span", { class: "doing" });
byId("state").append(statePill, doing);

const PHASES = { idle: "idle", multiplying: "multiplying", solving: "solving", loading: "loading a matrix", starting: "starting the ranks" };

/** What the ranks do, in words. */
const phaseOf = (now) => PHASES[now.phase] ?? now.phase;

export function showState(now) {
  setPill(statePill, now.state, now.reason ?? "");
  setText(doing, now.state === "ready" ? phaseOf(now) : "");
  document.title = now.state === "ready" ? "Shardmat" : `${now.state.replace("_", " ")} · Shardmat`;
}

export function showLost(text) {
  setPill(statePill, "not reachable");
  statePill.dataset.kind = "bad";
  setText(doing, "");
  document.title = "not reachable · Shardmat";
  showNotices([["connection", text]]);
}

function showNotices(notices) {
  keyed(byId("notices"), notices, ([key]) => key, () => {
    const element = h("p", { class: "notice" });
    return { element, update: ([, text]) => setText(element, text) };
  });
}

export function notice(now, ranks) {
  const notices = [];
  if (now.reason) notices.push(["reason", `${now.reason}.`.replace(/^./, (c) => c.toUpperCase())]);
  const loss = ranks?.last_loss;
  if (loss && Date.now() - Date.parse(loss.time) < 3600e3)
    notices.push(["loss", `Ranks were lost at ${units.clock(Date.parse(loss.time) / 1000)}: ${loss.reason}.`
      + (now.state === "ready" ? " They were started again." : "")]);
  const shared = ranks?.shared_cores;
  if (shared)
    notices.push(["cores", `${shared.cores} cores are shared with other services, which have ${shared.ranks} ${shared.ranks === 1 ? "rank" : "ranks"} on them. The command taskset can give each service its own.`]);
  showNotices(notices);
}

// --- activity ---

const charts = {
  requests: timeChart({ title: "Requests", lines: [{ label: "answered", ink: "--blue", of: "requests", fill: true }, { label: "failed", ink: "--red", of: "refused", sparse: true }],
    values: units.about, unit: units.rate, least: 1 }),
  latency: timeChart({ title: "Latency", log: true, lines: [{ label: "p50", ink: "--blue", of: "p50" }, { label: "p99", ink: "--amber", of: "p99" }],
    values: (v) => units.brief(units.time(v)), unit: units.time }),
  bandwidth: timeChart({ title: "Bandwidth of products", lines: [{ label: "reached", ink: "--green", of: "bandwidth", fill: true }, { label: "limit", ink: "--soft", of: "limit", dash: [4, 4], width: 1.25 }],
    values: (v) => units.brief(units.size(v)), unit: units.bandwidth, least: 1e9 }),
  columns: timeChart({ title: "Columns in a product", lines: [{ label: "columns", ink: "--blue", of: "columns", fill: true }],
    values: units.about, unit: units.number, least: 2 }),
  waiting: timeChart({ title: "Waiting requests", lines: [{ label: "waiting", ink: "--amber", of: "waiting", fill: true }],
    values: units.about, unit: units.about, least: 2 }),
  busy: timeChart({ title: "Ranks at work", lines: [{ label: "busy", ink: "--green", of: "busy", fill: true }],
    values: units.percent, unit: units.percent, least: 1.02 }),
};
byId("charts").append(...Object.values(charts).map(({ element }) => element));

const recentBusy = (history) => {
  const values = history.busy.slice(-10).filter((value) => value != null);
  return values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
};

export function showActivity(history, now) {
  const { recent, limit, arena } = now;
  charts.requests.update(history, [units.rate(recent.requests), recent.refused > 0 ? `${units.rate(recent.refused)} refused or failed` : "none refused or failed"]);
  charts.latency.update(history, [recent.p50 == null ? none : `${units.time(recent.p50)} · ${units.time(recent.p99)}`, recent.p50 == null ? "" : "median · 99 of 100"]);
  charts.bandwidth.update(history, [units.bandwidth(recent.bandwidth),
    limit == null ? "" : recent.bandwidth == null ? `a copy reaches ${units.bandwidth(limit)}` : `${units.percent(recent.bandwidth / limit)} of a copy (${units.bandwidth(limit)})`]);
  charts.columns.update(history, [units.number(recent.columns), recent.columns == null ? "" : `${units.number(recent.products)} products/s`]);
  const waiting = Object.entries(now.waiting).filter(([, count]) => count > 0);
  charts.waiting.update(history, [units.about(waiting.reduce((sum, [, count]) => sum + count, 0)),
    waiting.length > 0 ? waiting.map(([kind, count]) => `${units.count(count)} ${count === 1 ? ONE[kind] : kind}`).join(", ")
      : `${units.size(arena.used)} of ${units.size(arena.bytes)} for their vectors`]);
  charts.busy.update(history, [units.percent(recentBusy(history)), phaseOf(now)]);
  showKinds(now.kinds);
}

// --- requests by kind ---

const ONE = { products: "product", batches: "batch", jobs: "job" };
const KINDS = { multiply: "products", transpose: "transposed products", batches: "batches", solve: "solves", eigen: "eigenvalues", pagerank: "PageRank" };
const kinds = table("Requests of the last 5 minutes by kind", [["last 5 minutes", "word title"], ["answered", "half"], ["failed", "half"], ["median", "half"], ["99 of 100", "half"]]);
byId("kinds").append(kinds.element);

function kindRow() {
  const { element, cells } = kinds.row();
  return {
    element,
    update([kind, { requests, refused, p50, p99 }]) {
      setText(cells[0], KINDS[kind] ?? kind);
      setText(cells[1], units.count(requests));
      setText(cells[2], units.count(refused));
      setText(cells[3], units.time(p50));
      setText(cells[4], units.time(p99));
    },
  };
}

function showKinds(all) {
  const order = Object.keys(KINDS), place = (kind) => (order.indexOf(kind) + order.length) % order.length;
  const list = Object.entries(all).sort(([a], [b]) => place(a) - place(b));
  show(byId("kinds"), list.length > 0);
  keyed(kinds.body, list, ([kind]) => kind, kindRow);
}

// --- ranks ---

const ranks = table("Ranks", [["rank", "word half title"], ["phase", "word half stand"], ["host", "word"], ["device", "word"], ["threads", ""], ["memory held", "wide word"], ["copy bandwidth", ""]]);
const legend = h("p", { class: "keys" }, h("span", { "data-ink": "blue" }, "matrices"), h("span", { "data-ink": "green" }, "solvers"), h("span", { "data-ink": "amber" }, "vectors"));
const noRanks = h("p", { class: "empty" }, "The ranks are being started. What they print is in workers.log of the state directory.");
byId("ranks").append(ranks.element, legend, noRanks);

const UNKNOWN_BYTES = 1e18;

function rankRow() {
  const { element, cells } = ranks.row();
  const bar = meter(), text = h("span", { class: "soft" }), phase = pill();
  cells[1].append(phase);
  cells[5].append(h("div", { class: "held" }, bar.element, text));
  return {
    element,
    update({ rank, now }) {
      setText(cells[0], String(rank.rank));
      setText(cells[2], rank.host);
      setText(cells[3], rank.device);
      setText(phase, phaseOf(now));
      phase.dataset.kind = now.phase === "idle" ? "soft" : now.phase === "starting" ? "bad" : "busy";
      setText(cells[4], rank.threads === rank.cores ? String(rank.threads) : `${rank.threads} on ${rank.cores} cores`);
      const { matrices, solvers, vectors } = rank.held, all = matrices + solvers + vectors;
      const whole = rank.memory_bytes > 0 && rank.memory_bytes < UNKNOWN_BYTES ? rank.memory_bytes : 0;
      const words = `${units.size(all)}${whole ? ` of ${units.size(whole)}` : ""}`;
      bar.set([["blue", matrices], ["green", solvers], ["amber", vectors]], whole,
        `${words}: matrices ${units.size(matrices)}, solvers ${units.size(solvers)}, vectors ${units.size(vectors)}`);
      setText(text, words);
      setText(cells[6], rank.copy_bandwidth > 0 ? units.bandwidth(rank.copy_bandwidth) : none);
    },
  };
}

export function showRanks(all, now) {
  show(ranks.element, all.ranks.length > 0);
  show(legend, all.ranks.length > 0);
  show(noRanks, all.ranks.length === 0);
  setText(byId("ranks-count"), all.restarts > 0 ? `${all.restarts} restart${all.restarts > 1 ? "s" : ""}` : "");
  keyed(ranks.body, all.ranks.map((rank) => ({ rank, now })), ({ rank }) => rank.rank, rankRow);
}

// --- tokens ---

const tokens = table("Tokens", [["token", "word title"], ["share", "wide word"], ["time", "half"], ["weight", "half"], ["vectors", "half"], ["requests", "half"]]);
const noTokens = h("p", { class: "empty", hidden: true }, "Nobody has used the ranks in the last 5 minutes.");
show(tokens.element, false);
byId("tokens").append(tokens.element, noTokens);

function tokenRow() {
  const { element, cells } = tokens.row();
  const bar = meter(), text = h("span", { class: "soft" });
  cells[1].append(h("div", { class: "held" }, bar.element, text));
  return {
    element,
    update({ token, all }) {
      setText(cells[0], token.name);
      const share = all > 0 ? token.seconds / all : 0;
      bar.set([["blue", share]], 1, units.percent(share));
      setText(text, units.percent(share));
      setText(cells[2], token.seconds > 0 ? units.time(token.seconds) : none);
      setText(cells[3], units.number(token.weight).replace(/\.00$/, ""));
      setText(cells[4], units.size(token.vector_bytes));
      setText(cells[5], units.size(token.request_bytes));
    },
  };
}

export function showTokens(list) {
  const all = list.reduce((sum, { seconds }) => sum + seconds, 0);
  show(tokens.element, list.length > 0);
  show(noTokens, list.length === 0);
  const sorted = [...list].sort((a, b) => b.seconds - a.seconds);
  keyed(tokens.body, sorted.map((token) => ({ token, all })), ({ token }) => token.name, tokenRow);
}

// --- log ---

export function addLines(lines) {
  const log = byId("log"), atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 8;
  for (const line of lines) {
    const at = line.indexOf(" ");
    log.append(h("p", { "data-kind": /WARNING|lost|failed/.test(line) ? "bad" : null },
      h("time", {}, line.slice(0, at).replace("T", " ")), " ", line.slice(at + 1)));
  }
  while (log.children.length > KEPT_LINES) log.firstChild.remove();
  if (atEnd) log.scrollTop = log.scrollHeight;
}

export function clearLog() { byId("log").replaceChildren(); }
