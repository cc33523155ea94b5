// Jobs: how far each is, how its residual falls, and a button that ends it.

import { act, ask, confirmed } from "./actions.js";
import { convergence } from "./charts.js";
import { byId, h, keyed, pill, setPill, setText, show } from "./dom.js";
import * as units from "./units.js";

const cards = h("div", { class: "jobs" });
const empty = h("div", { class: "empty", hidden: true });
byId("jobs").append(cards, empty);

const ended = ({ state }) => state !== "running" && state !== "queued";

/** "solver=cg preconditioner=jacobi rtol=1e-8": method and preconditioner first, as where they are known. */
function words(settings) {
  const of = (name) => settings.match(new RegExp(`(?:^| )${name}=(\\S+)`))?.[1] ?? "auto";
  return `${of("solver")} · ${of("preconditioner")}`;
}

/** The values of a job in words, as pairs. */
function figures(job) {
  const how = [job.method, job.preconditioner].filter(Boolean).join(" · ");
  const pairs = [[job.kind === "solve" ? "method" : job.kind, how || words(job.settings)]];
  if (job.merged > 1) pairs.push(["merged", `${job.merged} jobs`]);
  if (job.columns > 1) pairs.push(["columns", String(job.columns)]);
  pairs.push(["iteration", units.count(job.iteration)]);
  if (job.residual != null) pairs.push(["residual", units.power(job.residual)]);
  if (job.set_up_seconds > 0) pairs.push(["set-up", job.resident ? "resident" : units.time(job.set_up_seconds)]);
  pairs.push(job.state === "queued" ? ["waits", units.time(job.queued_seconds)] : ["time", units.time(job.running_seconds)]);
  if (job.limit_seconds != null) pairs.push(["limit", units.time(job.limit_seconds)]);
  if (job.restarts > 0) pairs.push(["begun again", String(job.restarts)]);
  return pairs;
}

function card(may) {
  const title = h("h3"), state = pill(), who = h("p", { class: "soft" }), list = h("dl"), reason = h("p", { class: "soft reason" });
  const curve = convergence(units.tens), waits = h("p", { class: "plot no-curve soft" });
  const end = h("button", { class: "small", type: "button" });
  let job;
  end.onclick = async () => {
    if (ended(job)) return act(end, () => ask("DELETE", `/v1/jobs/${job.id}`), "The job is forgotten, with its x.");
    if (await confirmed("Cancel the job?", `It ends between two iterations. ${job.matrix}: ${units.count(job.iteration)} iterations so far.`, "Cancel the job"))
      act(end, () => ask("DELETE", `/v1/jobs/${job.id}`), "The job is cancelled.");
  };
  const element = h("article", { class: "job" }, h("header", {}, title, state, end), who, curve.element, waits, list, reason);
  return {
    element,
    end: curve.end,
    update(now) {
      job = now;
      setText(title, now.matrix);
      setPill(state, now.state);
      setText(who, `${now.token} · ${now.id.slice(0, 12)}…`);
      who.title = `${now.id} ${now.settings}`;
      const drawn = now.history.length > 1;
      show(curve.element, drawn);
      show(waits, !drawn);
      setText(waits, now.state === "queued" ? "waits for its turn" : now.state === "running" ? "sets up its solver" : "no iteration was needed or done");
      if (drawn) curve.update(now.history);
      keyed(list, figures(now), ([name]) => name, ([name]) => {
        const value = h("dd");
        return { element: h("div", {}, h("dt", {}, name), value), update: ([, text]) => setText(value, text) };
      });
      setText(reason, now.reason ?? now.note ?? "");
      show(end, may.multiply);
      setText(end, ended(now) ? "Forget" : "Cancel");
      end.setAttribute("aria-label", `${ended(now) ? "forget" : "cancel"} the job of ${now.matrix} ${now.id.slice(0, 12)}`);
    },
  };
}

export function showJobs({ jobs, more }, may) {
  show(cards, jobs.length > 0);
  show(empty, jobs.length === 0);
  const running = jobs.filter((job) => !ended(job)).length;
  setText(byId("jobs-count"), jobs.length === 0 ? "" : `${running} under way, ${jobs.length + more - running} ended`);
  keyed(cards, jobs, ({ id }) => id, () => card(may));
}

empty.append(h("p", {}, "No job is under way."), h("p", {}, "A solve becomes one: ", h("code", {}, "shardmat client solve bar b.npy x.npy"),
  " for a matrix that was loaded to be solved."));
