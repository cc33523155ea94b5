// The small picture of a matrix: how many nonzeros lie in each square of a coarse grid, on a logarithmic scale.

import { ask } from "./actions.js";
import { h, show } from "./dom.js";
import * as units from "./units.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const shown = new Set();
dark.addEventListener("change", () => shown.forEach((draw) => draw()));

const PIXELS = 80, LEAST_PIXELS = 16, FAINTEST = 0.22;

/** The colour of the page with this name, as red, green and blue. */
function colour(name) {
  const brush = h("canvas", { width: 1, height: 1 }).getContext("2d");
  brush.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  brush.fillRect(0, 0, 1, 1);
  return brush.getImageData(0, 0, 1, 1).data;
}

/** Squares away from the diagonal, the farthest that has nonzeros. */
const bandOf = (counts) => counts.reduce((most, row, i) => row.reduce((far, count, j) => (count > 0 ? Math.max(far, Math.abs(i - j)) : far), most), 0);

function words(name, { rows, cols, height, width, counts }) {
  const all = counts.flat(), filled = all.filter((count) => count > 0).length, most = all.reduce((a, b) => Math.max(a, b), 0);
  const band = rows === cols ? bandOf(counts) : null;
  const where = filled === 0 ? "" : band === 0 ? "; all lie on the diagonal" : band != null && band < height / 2 ? `; all lie within ${band} of the diagonal` : "";
  return `Nonzeros of ${name} in ${height} × ${width} parts of its rows and columns, on a logarithmic scale: `
    + `${units.count(filled)} of ${units.count(height * width)} have some, at most ${units.count(most)}${where}.`;
}

/** A picture that asks for its numbers once for each load of the matrix. */
export function spyPicture() {
  const canvas = h("canvas"), element = h("div", { class: "spy", role: "img", hidden: true });
  let known = "", numbers;
  const draw = () => {
    const { rows, cols, height, width, counts } = numbers;
    canvas.width = width, canvas.height = height;
    const side = (size, other) => `${Math.max(LEAST_PIXELS, Math.round(PIXELS * Math.min(1, size / other)))}px`;
    element.style.width = side(cols, rows), element.style.height = side(rows, cols);
    const brush = canvas.getContext("2d"), image = brush.createImageData(width, height), [red, green, blue] = colour("--blue");
    const all = counts.flat(), top = Math.log1p(all.reduce((a, b) => Math.max(a, b), 1));
    all.forEach((count, i) => image.data.set([red, green, blue, count > 0 ? 255 * (FAINTEST + (1 - FAINTEST) * (Math.log1p(count) / top)) : 0], 4 * i));
    brush.putImageData(image, 0, 0);
  };
  return {
    element,
    async update({ name, generation, rows }) {
      const wanted = rows == null ? "" : `${name} ${generation}`;
      if (wanted === known) return;
      known = wanted;
      show(element, false);
      element.replaceChildren();
      shown.delete(draw);
      if (!wanted) return;
      let found;
      try {
        found = await ask("GET", `/v1/matrices/${encodeURIComponent(name)}/spy`);
      } catch {
        if (known === wanted) known = "";  // the matrix has just gone, or its ranks; the next news asks again
        return;
      }
      if (known !== wanted || !(found.height > 0 && found.width > 0)) return;
      numbers = found;
      element.append(canvas);
      draw();
      shown.add(draw);
      element.title = words(name, numbers);
      element.setAttribute("aria-label", element.title);
      show(element, true);
    },
    end: () => shown.delete(draw),
  };
}
