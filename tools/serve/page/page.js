// The service's page: listens to /v1/live and shows what comes, asks for a token where one is needed. Nothing here is
// computed that the service does not say; nothing but this service is spoken to.

import { ask, session } from "./actions.js";
import { byId, h, setText, show } from "./dom.js";
import { greetMatrices, showMatrices } from "./matrices.js";
import { showJobs } from "./jobs.js";
import { addLines, clearLog, notice, showActivity, showLost, showRanks, showState, showTokens } from "./overview.js";
import { clock } from "./units.js";

const SECONDS = 300, AGAIN_MS = 2000;
let stream, history, may = {}, lostAt;
const last = { matrices: null, ranks: null, now: null };

function greet(hello) {
  may = Object.fromEntries(hello.scopes.map((scope) => [scope, true]));
  lostAt = undefined;
  document.body.dataset.client = "known";
  show(byId("login"), false);
  show(byId("live"), true);
  show(byId("log-section"), hello.sees_log);
  clearLog();
  greetMatrices(may);
  const out = h("button", { class: "small", type: "button" }, "Sign out");
  out.onclick = async () => {
    stream.close();
    await ask("DELETE", "/v1/session").catch(() => {});
    location.assign("/");
  };
  byId("who").replaceChildren(location.host, ...(hello.session_seconds != null ? [h("b", {}, hello.token), out] : []));
}

function add(now) {
  for (const [name, values] of Object.entries(history)) {
    values.push(name === "t" ? now.t : name === "limit" ? now.limit : now.figures[name]);
    if (values.length > SECONDS) values.shift();
  }
}

const handlers = {
  hello: greet,
  history(past) { history = { ...past, limit: past.t.map(() => null) }; },
  now(now) {
    last.now = now;
    add(now);
    history.limit.fill(now.limit);
    showState(now);
    notice(now, last.ranks);
    showActivity(history, now);
    if (last.ranks) showRanks(last.ranks, now);
    if (last.matrices) showMatrices(last.matrices, now, may);
  },
  ranks(ranks) { last.ranks = ranks; showRanks(ranks, last.now); notice(last.now, ranks); },
  matrices(matrices) { last.matrices = matrices; showMatrices(matrices, last.now, may); },
  jobs(jobs) { showJobs(jobs, may); },
  tokens: showTokens,
  log: addLines,
};

function askForToken() {
  stream?.close();
  show(byId("live"), false);
  show(byId("login"), true);
  byId("state").querySelector(".pill").textContent = "";
  byId("token").focus();
}
session.lost = askForToken;

/** The stream has ended: the service ends, the network is gone, or the session is over. */
async function onEnd() {
  stream.close();
  try {
    const reply = await fetch("/v1/ranks", { credentials: "same-origin" });
    if (reply.status === 401 || reply.status === 403) return askForToken();
  } catch {
    lostAt ??= Date.now() / 1000;
    show(byId("login"), false);
    show(byId("live"), true);
    showLost(`The service has not answered since ${clock(lostAt)}. What stands below is what it said last; this page tries again by itself.`);
  }
  setTimeout(listen, AGAIN_MS);
}

function listen() {
  stream = new EventSource("/v1/live");
  for (const [name, handle] of Object.entries(handlers)) stream.addEventListener(name, ({ data }) => handle(JSON.parse(data)));
  stream.onerror = onEnd;
}

byId("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  const field = byId("token");
  setText(byId("login-message"), "");
  try {
    await ask("POST", "/v1/session", new URLSearchParams({ token: field.value.trim() }));
    field.value = "";
    listen();
  } catch (error) {
    setText(byId("login-message"), error.message === "there is no such token" ? "There is no such token." : `${error.message}.`);
    field.select();
  }
});

show(byId("login"), false);
listen();
