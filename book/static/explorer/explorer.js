// The token explorer: reads what is asked from the form and the address, and shows table, token and plot.

import { readManifest, TokenSet } from "./data.js";
import { everywhere, neighbours } from "./details.js";
import { find } from "./find.js";
import { drawScatter, move } from "./scatter.js";
import { readState, writeState } from "./state.js";
import { showTable } from "./table.js";
import { element, numeral, revealAll, tokenElement } from "./tokens.js";

const root = document.getElementById("token-explorer");
const part = (name) => document.getElementById(`explorer-${name}`);
const form = part("form");
const controls = form.elements;
let manifest;
let state;
let words;
let matches;
let turn = 0; // counts what was asked, so that a late answer to an earlier question is dropped

const currentSet = () => manifest.sets.find((set) => set.key === state.tokens);

function fill(select, options, value) {
  select.replaceChildren(...options.map(([key, text]) => element("option", { value: key }, text)));
  select.value = value;
}

function showForm() {
  const set = currentSet();
  const prompts = manifest.prompts.filter(({ key }) => set.scans.some((scan) => scan.prompt === key));
  const questions = prompts.map(({ key, text }) => [key, text]);
  if (controls.q.value !== state.q) controls.q.value = state.q;
  controls.match.value = state.match;
  fill(controls.tokens, manifest.sets.map((one) => [one.key, `${one.title} (${numeral(one.tokens)})`]), state.tokens);
  fill(controls.kind, [["", "all kinds"], ...manifest.kinds.map((kind, place) => [String(place), kind])], state.kind);
  fill(controls.prompt, questions, state.prompt);
  const models = set.models.filter((model) => set.described(model, state.prompt));
  part("models").replaceChildren(
    ...models.map((model) => {
      const box = element("input", { type: "checkbox", name: "model", value: model });
      box.checked = state.models.includes(model);
      return element("label", {}, box, model);
    }),
  );
  fill(part("near"), models.map((model) => [model, model]), state.near);
  fill(part("of"), set.models.map((model) => [model, model]), state.of);
  fill(part("x"), questions, state.x);
  fill(part("y"), questions, state.y);
}

function say(text) {
  part("status").textContent = text;
}

function save() {
  history.replaceState(null, "", writeState(state, manifest));
}

async function showToken() {
  part("chosen").hidden = state.row === null;
  part("hint").hidden = state.row !== null;
  if (state.row === null) return;
  const set = currentSet();
  const { row, near, prompt } = state;
  const [numbers, around] = await Promise.all([everywhere(set, manifest, row), neighbours(set, words, row, near, prompt, choose)]);
  if (row !== state.row || near !== state.near || prompt !== state.prompt) return;
  const kind = manifest.kinds[Number(words.kinds[row])];
  part("token").replaceChildren(tokenElement(words, row), ` (${kind})`);
  part("numbers").replaceChildren(numbers);
  part("neighbours").replaceChildren(around);
}

async function showScatter() {
  part("plot").hidden = !state.plot;
  controls.plot.setAttribute("aria-expanded", String(state.plot));
  if (!state.plot) return;
  const { of: model, x, y, row } = state;
  const told = (some, all) => {
    const inView = `${numeral(all)} tokens in view`;
    part("seen").textContent = some < all ? `${inView}, ${numeral(some)} of them drawn: zoom in to see all.` : `${inView}.`;
  };
  await drawScatter(part("figure"), { set: currentSet(), words, model, x, y, matches, row, choose, told });
}

/** Choose a token: a click in the table, among neighbours or in the plot. */
function choose(row) {
  state.row = row;
  save();
  guard(async () => {
    await Promise.all([showToken(), showScatter()]);
    part("token").focus();
  });
}

/** Show everything anew after the form or the address has changed. */
async function update() {
  const mine = ++turn;
  showForm();
  const set = currentSet();
  words = await set.words();
  const found = await find(words, state);
  if (mine !== turn) return;
  matches = found;
  const moved = (to) => {
    if (mine !== turn) return;
    Object.assign(state, to);
    save();
  };
  const shown = showTable(part("table"), { set, words, state, matches, choose, moved });
  await Promise.all([shown, showToken(), showScatter()]);
  if (mine !== turn) return;
  const count = matches ? matches.length : set.tokens;
  say(count === 1 ? "1 token" : `${numeral(count)} tokens`);
  performance.mark("explorer answered");
  root.dataset.ready = String(mine);
}

/** Run `work`; what goes wrong is said on the page. */
async function guard(work) {
  try {
    await work();
  } catch (error) {
    say(error instanceof Error ? error.message : "Something went wrong.");
    root.dataset.ready = `failed ${turn}`;
  }
}

/** Take over what the form says; a new question begins on the first page. */
function readForm() {
  const asked = new URLSearchParams(writeState(state, manifest).slice(1));
  for (const name of ["q", "match", "tokens", "kind", "prompt"]) asked.set(name, controls[name].value);
  asked.delete("page");
  asked.delete("model");
  if (controls.tokens.value === state.tokens) {
    const chosen = [...form.querySelectorAll("input[name=model]:checked")].map((box) => box.value);
    if (chosen.join("\n") !== state.models.join("\n")) chosen.forEach((model) => asked.append("model", model));
    else if (new URLSearchParams(location.hash.slice(1)).has("model")) state.models.forEach((model) => asked.append("model", model));
  } else asked.delete("row"); // rows are those of another list
  for (const name of ["near", "of", "x", "y"]) asked.set(name, part(name).value);
  state = readState(asked.toString(), manifest);
  save();
  guard(update);
}

function listen() {
  let timer = 0;
  controls.q.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(readForm, 250);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    readForm();
  });
  form.addEventListener("change", (event) => {
    if (event.target !== controls.q && event.target !== controls.offensive) readForm();
  });
  for (const name of ["near", "of", "x", "y"]) part(name).addEventListener("change", readForm);
  controls.offensive.addEventListener("change", () => {
    revealAll(controls.offensive.checked);
    guard(update);
  });
  controls.disputed.addEventListener("click", () => {
    Object.assign(state, { sort: "spread", dir: "desc", page: 1 });
    save();
    guard(update);
  });
  controls.plot.addEventListener("click", () => {
    state.plot = !state.plot;
    save();
    guard(showScatter);
  });
  controls.link.addEventListener("click", () =>
    navigator.clipboard.writeText(location.href).then(
      () => say("The link has been copied."),
      () => say("The browser does not allow copying: the link is this page's address."),
    ),
  );
  for (const button of document.querySelectorAll("[data-move]")) {
    button.addEventListener("click", () => move(JSON.parse(button.dataset.move)));
  }
  addEventListener("hashchange", () => {
    if (location.hash && !location.hash.includes("=")) return; // a heading of this page
    state = readState(location.hash, manifest);
    guard(update);
  });
}

guard(async () => {
  manifest = await readManifest();
  manifest.sets = manifest.sets.map((set) => new TokenSet(set, manifest.block));
  const hash = location.hash.includes("=") ? location.hash : "";
  state = readState(hash, manifest);
  root.hidden = false;
  listen();
  await update();
});
