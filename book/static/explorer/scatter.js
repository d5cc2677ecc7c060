// Rewards under two questions as a plot to zoom into, drawn by Bokeh, which is read when the plot is asked for.

import { scriptAddress } from "./data.js";
import { isHidden, visible } from "./tokens.js";

const MOST = 15000; // points drawn at once: where more are in view they are thinned out evenly
let embedded = null;

function script(address) {
  return new Promise((resolve, reject) => {
    const tag = document.createElement("script");
    Object.assign(tag, { src: address, onload: resolve, onerror: () => reject(new Error("The plot's library cannot be read.")) });
    document.head.append(tag);
  });
}

async function embed(holder) {
  await script(await scriptAddress("bokeh.bin"));
  const item = await (await fetch(new URL("scatter.json", import.meta.url))).json();
  const views = await window.Bokeh.embed.embed_item(item, holder.id);
  const figure = [...views.roots][0].model;
  return { figure, named: (name) => figure.document.get_model_by_name(name) };
}

/** Lowest and highest value, with a margin. */
function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const margin = 0.04 * (high - low) || 1;
  return [low - margin, high + margin];
}

function recolour({ figure, named }) {
  const style = getComputedStyle(document.documentElement);
  const text = style.getPropertyValue("--pst-color-text-base").trim() || "#222";
  const faint = style.getPropertyValue("--pst-color-border").trim() || "#ccc";
  for (const axis of [named("x axis"), named("y axis")]) {
    axis.setv({ axis_label_text_color: text, major_label_text_color: text, axis_line_color: text, major_tick_line_color: text, minor_tick_line_color: faint });
  }
  for (const grid of figure.center) grid.setv({ grid_line_color: faint });
}

/** Draw the rewards of one model under two questions; matching rows and the chosen one stand out. Returns what is seen. */
export async function drawScatter(holder, { set, words, model, x, y, matches, row, choose, told }) {
  embedded ??= embed(holder).catch((error) => { embedded = null; throw error; });
  const plot = await embedded;
  const { named } = plot;
  const [across, up] = await Promise.all([set.scan(model, x), set.scan(model, y)]);
  const ranges = { x: named("x range"), y: named("y range") };

  const points = (rows) => ({
    x: Float64Array.from(rows, (one) => across.reward[one]),
    y: Float64Array.from(rows, (one) => up.reward[one]),
    token: Array.from(rows, (one) => (isHidden(words, one) ? "offensive" : visible(words, one))),
    row: Array.from(rows),
  });

  const draw = () => {
    const inside = [];
    for (let one = 0; one < set.tokens; one++) {
      const [a, b] = [across.reward[one], up.reward[one]];
      if (a >= ranges.x.start && a <= ranges.x.end && b >= ranges.y.start && b <= ranges.y.end) inside.push(one);
    }
    const step = Math.ceil(inside.length / MOST) || 1;
    const some = step > 1 ? inside.filter((_, place) => place % step === 0) : inside;
    named("all").data = points(some);
    told(some.length, inside.length);
  };

  named("x axis").axis_label = `reward, “${x}”`;
  named("y axis").axis_label = `reward, “${y}”`;
  for (const [range, reward] of [[ranges.x, across.reward], [ranges.y, up.reward]]) {
    const [start, end] = extent(reward);
    range.setv({ start, end, reset_start: start, reset_end: end });
  }
  plot.draw = draw;
  plot.choose = choose;
  if (!plot.listening) listen(plot, ranges);
  recolour(plot);
  draw();
  named("found").data = points(matches && matches.length <= MOST ? matches : []);
  named("chosen").data = points(row === null ? [] : [row]);
}

function listen(plot, ranges) {
  plot.listening = true;
  let timer = 0;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(() => plot.draw(), 120);
  };
  for (const range of Object.values(ranges)) {
    range.connect(range.properties.start.change, later);
    range.connect(range.properties.end.change, later);
  }
  for (const name of ["all", "found"]) {
    const source = plot.named(name);
    source.selected.connect(source.selected.properties.indices.change, () => {
      const [first] = source.selected.indices;
      if (first !== undefined) plot.choose(source.data.row[first]);
    });
  }
  new MutationObserver(() => recolour(plot)).observe(document.documentElement, { attributeFilter: ["data-theme"] });
}

/** Move or zoom by buttons: `by` is a share of what is in view; `factor` below 1 zooms in; without either all is shown. */
export async function move({ x = 0, y = 0, factor = 1, all = false }) {
  if (!embedded) return;
  const { named } = await embedded;
  for (const [name, by] of [["x range", x], ["y range", y]]) {
    const range = named(name);
    if (all) range.setv({ start: range.reset_start, end: range.reset_end });
    else {
      const width = range.end - range.start;
      const middle = (range.start + range.end) / 2 + by * width;
      range.setv({ start: middle - (factor * width) / 2, end: middle + (factor * width) / 2 });
    }
  }
}
