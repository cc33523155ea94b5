// Making and changing elements. What is on the page stays there as long as what it shows: the focus, selected text and open
// details outlive each update.

/** An element: h("button", {class: "small", onclick}, "Pin"). Text is text, never HTML. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element[name] = value;
    else if (value != null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

export const byId = (id) => document.getElementById(id);

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function show(element, visible) {
  element.hidden = !visible;
}

/** Brings the children of `parent` in line with `items`. `make(item)` returns {element, update(item)} for a key that is new. */
export function keyed(parent, items, keyOf, make) {
  const known = (parent.shown ??= new Map());
  const keys = new Set(items.map(keyOf));
  for (const [key, view] of known) {
    if (keys.has(key)) continue;
    view.end?.();
    view.element.remove();
    known.delete(key);
  }
  items.forEach((item, index) => {
    const key = keyOf(item);
    if (!known.has(key)) known.set(key, make(item));
    const view = known.get(key);
    view.update(item);
    if (parent.children[index] !== view.element) parent.insertBefore(view.element, parent.children[index] ?? null);
  });
}

/** A table whose rows become cards where there is no room. Columns: [heading, class]. */
export function table(caption, columns) {
  const body = h("tbody");
  const head = h("tr", {}, ...columns.map(([heading, css]) => h("th", { scope: "col", class: css }, heading)));
  const element = h("div", { class: "table" }, h("table", {}, h("caption", {}, caption), h("thead", {}, head), body));
  const row = () => {
    const cells = columns.map(([heading, css]) => h("td", { class: css, "data-label": heading }));
    return { element: h("tr", {}, ...cells), cells };
  };
  return { element, body, row };
}

export const pill = () => h("span", { class: "pill" });
const GOOD = new Set(["ready", "done"]), BUSY = new Set(["loading", "running", "queued", "starting"]), BAD = new Set(["failed", "values_lost", "rank_lost"]);
export function setPill(element, state, title = "") {
  setText(element, state.replace("_", " "));
  element.dataset.kind = GOOD.has(state) ? "good" : BUSY.has(state) ? "busy" : BAD.has(state) ? "bad" : "soft";
  element.title = title;
}

/** How much of a whole is taken: parts are [class, value, what]. */
export function meter() {
  const element = h("div", { class: "meter", role: "img" });
  return {
    element,
    set(parts, whole, label) {
      const all = Math.max(whole, parts.reduce((sum, [, value]) => sum + value, 0), 1e-300);
      keyed(element, parts, ([css]) => css, ([css]) => {
        const part = h("span", { class: css });
        return { element: part, update: ([, value]) => { part.style.width = `${(100 * value) / all}%`; } };
      });
      element.setAttribute("aria-label", label);
      element.title = label;
    },
  };
}
