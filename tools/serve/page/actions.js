// What the page asks of the service, and how it asks its reader.

import { byId, h, setText } from "./dom.js";

/** Called when the service does not know this browser (any more). */
export const session = { lost: () => {} };

/** The JSON of an answer; throws an Error with the service's own words. */
export async function ask(method, path, body) {
  const form = body instanceof URLSearchParams;
  const headers = { "X-Shardmat-Page": "1", ...(body && !form ? { "Content-Type": "application/json" } : {}) };
  let reply;
  try {
    reply = await fetch(path, { method, headers, body: body && !form ? JSON.stringify(body) : body, credentials: "same-origin" });
  } catch {
    throw new Error("the service is not reachable");
  }
  const text = await reply.text();
  const answer = text && reply.headers.get("Content-Type")?.startsWith("application/json") ? JSON.parse(text) : {};
  if (reply.status === 401 && !form) session.lost();
  if (!reply.ok) throw new Error(answer.error ?? `the service answers ${reply.status}`);
  return answer;
}

export function toast(text, kind = "good") {
  const line = h("p", { class: "toast", "data-kind": kind }, text);
  byId("toasts").append(line);
  setTimeout(() => line.remove(), kind === "bad" ? 12000 : 5000);
}

/** Runs `action` while the button is disabled, and tells how it went. */
export async function act(button, action, done) {
  button.disabled = true;
  try {
    const answer = await action();
    if (done) toast(done);
    if (answer?.warning) toast(answer.warning, "bad");
  } catch (error) {
    toast(error.message, "bad");
  } finally {
    button.disabled = false;
  }
}

/** True if the reader says yes. */
export function confirmed(title, text, yes) {
  const dialog = byId("ask");
  setText(byId("ask-title"), title);
  setText(byId("ask-text"), text);
  setText(byId("ask-yes"), yes);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}
