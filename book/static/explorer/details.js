// One token: its rank and reward in every scan of its list, and its neighbours in one of them.

import { element, numeral, tokenElement } from "./tokens.js";

const AROUND = 6; // neighbours on either side

/** A plain table in a container that scrolls and that the keyboard can reach. */
function table(label, heads, rows) {
  const head = element("thead", {}, element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text))));
  const body = element("tbody", {}, ...rows);
  const scrolled = { class: "table-scroll", tabindex: "0", role: "region", "aria-label": label };
  return element("div", scrolled, element("table", {}, head, body));
}

/** Models × questions: rank, its place from the top in percent, reward. */
export async function everywhere(set, manifest, row) {
  const found = await set.row(row);
  const prompts = manifest.prompts.filter(({ key }) => found.some((scan) => scan.prompt === key));
  const sizes = new Map(manifest.models.map(({ name, tokens }) => [name, tokens]));
  const cell = (model, prompt) => {
    const scan = found.find((one) => one.model === model && one.prompt === prompt);
    if (!scan) return element("td");
    const above = (100 * scan.rank) / sizes.get(model);
    const place = `top ${numeral(above, above < 1 ? 2 : 0)} %`;
    const reward = `reward ${numeral(scan.reward, Math.min(scan.decimals, 3))}`;
    return element("td", { class: "number" }, numeral(scan.rank), element("br"), element("small", {}, place, element("br"), reward));
  };
  const rows = set.models.map((model) =>
    element("tr", {}, element("th", { scope: "row" }, model, element("br"), element("small", {}, `of ${numeral(sizes.get(model))}`)), ...prompts.map(({ key }) => cell(model, key))),
  );
  return table("Rank and reward in every model under every question", ["model", ...prompts.map(({ key }) => key)], rows);
}

/** The tokens just above and below a row in the ranking of one scan, among the tokens of the list. */
export async function neighbours(set, words, row, model, prompt, choose) {
  const scan = await set.scan(model, prompt);
  const place = scan.order.indexOf(row);
  const rows = Array.from(scan.order.slice(Math.max(0, place - AROUND), place + AROUND + 1), (other) => {
    const own = other === row;
    return element(
      "tr",
      own ? { class: "own", "aria-current": "true" } : {},
      element("td", { class: "number" }, numeral(scan.rank[other])),
      element("td", {}, tokenElement(words, other, own ? null : choose)),
      element("td", { class: "number" }, numeral(scan.reward[other], Math.min(scan.decimals, 3))),
    );
  });
  return table(`Neighbours in the ranking of ${model}`, ["rank", "token", "reward"], rows);
}
