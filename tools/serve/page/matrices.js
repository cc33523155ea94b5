// The matrices: what they are, how they are stored and why, how much they are used; loading, unloading, pinning.

import { act, ask, confirmed } from "./actions.js";
import { byId, h, keyed, pill, setPill, setText, show, table } from "./dom.js";
import { spyPicture } from "./spy.js";
import * as units from "./units.js";

const { none } = units;
const matrices = table("Matrices", [["matrix", "word half title"], ["state", "word half stand"], ["size", "word"], ["pattern", "word"], ["format", "word format"], ["memory", "word"], ["activity", "word"], ["actions", "actions"]]);
const empty = h("div", { class: "empty" });
byId("matrices").append(matrices.element, empty);

const path = (name, what) => `/v1/matrices/${encodeURIComponent(name)}/${what}`;
const two = () => [h("div", {}), h("div", { class: "soft" })];

/** "packed_host block=1,lanes=4" in two parts. */
const kernelOf = (text) => { const at = text.indexOf(" "); return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1).replaceAll(",", " ")]; };

/** "cg · multigrid for 8 columns: 3 levels of …; 12.3 MB, used at 10:15:30" */
function solverText({ method, preconditioner, note, columns, device_bytes, last_used }) {
  const how = [method, preconditioner].filter((one) => one && one !== "none").join(" · ") + (columns > 1 ? ` for ${columns} columns` : "");
  return `${how}${note ? `: ${note}` : ""}; ${units.size(device_bytes)}, used at ${units.clock(Date.parse(last_used) / 1000)}`;
}

function row(may) {
  const { element, cells } = matrices.row();
  const [name, source] = two(), [shape, nnz] = two(), [format, why] = two(), [bytes, solvers] = two(), [rate, latency] = two();
  const state = pill(), reason = h("div", { class: "soft reason" });
  name.classList.add("name");
  const spy = spyPicture(), list = h("ul", { class: "solvers" }), details = h("details", {}, h("summary", {}, "solvers"), list);
  const pin = h("button", { class: "small", type: "button" }), unload = h("button", { class: "small", type: "button" }, "Unload");
  let matrix;
  pin.onclick = () => act(pin, () => ask("POST", path(matrix.name, "pin"), { pinned: !matrix.pinned }),
    `${matrix.name} ${matrix.pinned ? "may be evicted again" : "is pinned"}`);
  unload.onclick = async () => {
    if (matrix.state === "failed") return act(unload, () => ask("POST", path(matrix.name, "unload")));
    if (await confirmed(`Unload ${matrix.name}?`, "Its memory is freed. Requests for it are refused until it is loaded again; its file stays.", "Unload"))
      act(unload, () => ask("POST", path(matrix.name, "unload")), `${matrix.name} is unloaded`);
  };
  const contents = [[name, source], [state, reason], [shape, nnz], [spy.element], [format, why], [bytes, solvers, details], [rate, latency]];
  contents.forEach((parts, i) => cells[i].append(h("div", { class: "cell" }, ...parts)));
  for (const line of [shape, solvers, latency]) line.classList.add("line");
  cells[7].append(h("div", { class: "buttons" }, pin, unload));
  return {
    element,
    end: spy.end,
    update({ matrix: now, activity }) {
      matrix = now;
      const loaded = now.rows != null;
      setText(name, now.name);
      setText(source, now.source === now.name ? now.type : `${now.source} · ${now.type}`);
      setPill(state, now.state);
      setText(reason, now.reason || (now.next ? `${now.next.source} is ${now.next.state} in its place${now.next.reason ? `: ${now.next.reason}` : ""}` : ""));
      setText(shape, loaded ? `${units.count(now.rows)} × ${units.count(now.cols)}` : none);
      setText(nnz, loaded ? `${units.about(now.nnz)} nonzeros` : "");
      const kernels = loaded ? now.kernels.flatMap((text) => text.split("; ")).map(kernelOf) : [];
      setText(format, loaded ? [...new Set(kernels.map(([kernel]) => kernel))].join(", ") : none);
      setText(why, loaded ? [...kernels.map(([, tunables]) => tunables), ...now.why].filter(Boolean).join("; ") : "");
      format.title = loaded ? `x moves by ${now.exchange}` : "";
      spy.update(now);
      for (const cell of cells.slice(2, 7)) cell.classList.toggle("blank", !loaded);
      setText(bytes, loaded ? units.size(now.bytes + now.solve_bytes) : none);
      const resident = now.solver_bytes > 0;
      setText(solvers, !loaded ? "" : resident ? `+ ${units.size(now.solver_bytes)} in solvers` : now.solvable ? "can be solved" : "products only");
      const held = now.solvers ?? [];
      show(details, held.length > 0);
      keyed(list, held, ({ settings, columns }) => `${settings} ${columns}`, () => {
        const item = h("li");
        return { element: item, update: (solver) => setText(item, solverText(solver)) };
      });
      setText(rate, activity ? units.rate(activity.requests) : loaded ? "idle" : none);
      rate.classList.toggle("soft", !activity);
      setText(latency, activity?.p50 != null ? `${units.time(activity.p50)} · ${units.time(activity.p99)}` : "");
      show(pin, may.admin && loaded);
      show(unload, may.admin && now.state !== "loading");
      setText(unload, now.state === "failed" ? "Forget" : "Unload");
      setText(pin, now.pinned ? "Unpin" : "Pin");
      pin.setAttribute("aria-pressed", String(now.pinned));
      pin.setAttribute("aria-label", `${now.pinned ? "unpin" : "pin"} ${now.name}`);
      unload.setAttribute("aria-label", `${now.state === "failed" ? "forget" : "unload"} ${now.name}`);
    },
  };
}

export function showMatrices({ matrices: list, more }, now, may) {
  show(matrices.element, list.length > 0);
  show(empty, list.length === 0);
  const bytes = list.reduce((sum, one) => sum + (one.bytes ?? 0) + (one.solve_bytes ?? 0) + (one.solver_bytes ?? 0), 0);
  setText(byId("matrices-count"), list.length === 0 ? "" : `${list.length + more} · ${units.size(bytes)}${more > 0 ? `; the first ${list.length} are shown` : ""}`);
  keyed(matrices.body, list.map((matrix) => ({ matrix, activity: now.matrices[matrix.name] })), ({ matrix }) => matrix.name, () => row(may));
}

export function greetMatrices(may) {
  show(byId("load"), may.admin);
  empty.replaceChildren(h("p", {}, "No matrix is loaded yet."),
    may.admin ? files : h("p", {}, "This token may not load one: ask the owner of the service."));
  if (may.admin && may.library) lookAtLibrary();
}

// What the library has: to be chosen in the dialog, and, while nothing is loaded, from buttons.
const files = h("div", { class: "files" });
const MOST_BUTTONS = 8, MATRIX = /\.(h5|hdf5|mtx|mtx\.(gz|bz2|xz|zst)|npz|petsc|csr|mat|rb|rsa|rua|h5ad)$/i;

async function lookAtLibrary() {
  let found;
  try {
    found = (await ask("GET", "/v1/library")).files;
  } catch {
    return;  // the dialog takes any path
  }
  byId("sources").replaceChildren(...found.map(({ source, bytes }) => h("option", { value: source, label: units.size(bytes) })));
  const some = found.filter(({ source }) => MATRIX.test(source)).slice(0, MOST_BUTTONS);
  files.replaceChildren(...(some.length > 0
    ? [h("p", {}, "The library has these files:"), h("div", { class: "buttons" }, ...some.map(({ source, bytes }) =>
      h("button", { class: "small", type: "button", onclick: () => openDialog(source) }, source, " ", h("span", { class: "soft" }, units.size(bytes)))))]
    : [h("p", {}, "The library has no matrix file. ", h("code", {}, "shardmat partition"), " writes one of a Matrix Market file, for example.")]));
}

const dialog = byId("load-dialog"), form = byId("load-form"), message = byId("load-message");
let nameIsOurs = true;
function openDialog(source = "") {
  form.reset();
  nameIsOurs = true;
  setText(message, "");
  form.elements.source.value = source;
  form.elements.source.oninput();
  dialog.showModal();
  lookAtLibrary();
}
byId("load").onclick = () => openDialog();
form.querySelector(".cancel").onclick = () => dialog.close();
form.elements.name.oninput = () => { nameIsOurs = form.elements.name.value === ""; };
form.elements.source.oninput = () => {
  if (nameIsOurs) form.elements.name.value = form.elements.source.value.replace(/^.*\//, "").replace(/\..*$/, "").replace(/[^A-Za-z0-9._-]/g, "-").slice(0, 64);
};
form.onsubmit = async (event) => {
  event.preventDefault();
  const { source, name, type, solvable, updatable, pinned } = form.elements;
  try {
    await ask("POST", path(name.value, "load"), { source: source.value, type: type.value, solvable: solvable.checked, updatable: updatable.checked, pinned: pinned.checked });
    dialog.close();
  } catch (error) {
    setText(message, error.message);
  }
};
