// The first page's box: a typed word is a pin in the figure below, and has a rank in every model under two questions. The
// data are the token explorer's; nothing is fetched before the first key, or before the table of all models is opened.

const ASKED = ["greatest", "worst"];
const form = document.getElementById("word-box");
const [all, ranks] = [document.getElementById("word-all"), document.getElementById("word-ranks")];
const answer = document.querySelector(".word-answer > p");
const pin = document.getElementById("word-pin");
const { model: drawn, question, low, high } = pin.dataset;
let waiting;

/** The row of a word: as the beginning of a word if it can be, else as it is typed, else with a capital letter. */
function find(tokens, word) {
  const capital = word[0].toUpperCase() + word.slice(1);
  for (const token of [` ${word}`, word, ` ${capital}`, capital]) {
    const row = tokens.indexOf(token);
    if (row >= 0) return row;
  }
  return -1;
}

/** Put the pin at a reward; the figure's axis is as wide as the figure. */
function drop(reward, label) {
  const share = (reward - low) / (high - low);
  pin.style.setProperty("--at", `${100 * share}%`);
  pin.dataset.side = share < 0.2 ? "left" : share > 0.8 ? "right" : "middle";
  pin.replaceChildren(label);
}

/** A table of a word's ranks, a row a model. */
function rankTable({ element, numeral }, models, scans) {
  const cell = ({ name, tokens }, asked) => {
    const { rank } = scans.find((scan) => scan.model === name && scan.prompt === asked);
    const bar = element("span", { class: "word-bar", style: `--share: ${(100 * (tokens - rank)) / (tokens - 1)}%` });
    return element("td", {}, numeral(rank), bar);
  };
  const heads = ["model", "tokens", ...ASKED.map((asked) => `the ${asked} thing`)];
  const lines = models.map((model) => {
    const name = element("th", { scope: "row" }, model.name);
    return element("tr", {}, name, element("td", {}, numeral(model.tokens)), ...ASKED.map((asked) => cell(model, asked)));
  });
  const top = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  return element("table", {}, element("thead", {}, top), element("tbody", {}, ...lines));
}

async function look() {
  const word = form.elements.word.value.trim();
  if (!word) return;
  const [data, shown] = await Promise.all([import("./explorer/data.js"), import("./explorer/tokens.js")]);
  const manifest = await data.readManifest();
  const set = new data.TokenSet(manifest.sets[0], manifest.block);
  const words = await set.words();
  const row = find(words.tokens, word);
  const scans = row < 0 ? [] : await set.row(row);
  if (word !== form.elements.word.value.trim()) return; // another key came meanwhile
  pin.hidden = row < 0;
  if (row < 0) {
    answer.replaceChildren("No single token that all models have is this word. Try another, or look for a part of it in the explorer.");
    ranks.replaceChildren();
    return;
  }
  const { rank, reward } = scans.find((scan) => scan.model === drawn && scan.prompt === question);
  const { tokens } = manifest.models.find(({ name }) => name === drawn);
  const place = ` has rank ${shown.numeral(rank)} of ${shown.numeral(tokens)}, with a reward of ${shown.numeral(reward, 2)}.`;
  answer.replaceChildren(shown.tokenElement(words, row), place);
  drop(reward, shown.isHidden(words, row) ? "here" : shown.visible(words, row).replace("␣", ""));
  ranks.replaceChildren(rankTable(shown, manifest.models, scans));
}

const guarded = () => look().catch((error) => answer.replaceChildren(error.message));
form.addEventListener("submit", (event) => event.preventDefault());
form.elements.word.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(guarded, 250);
});
all.addEventListener("toggle", () => ranks.firstChild || guarded());
answer.setAttribute("role", "status");
document.querySelector("#fig-vocabulary :is(picture, img)").parentElement.append(pin);
form.hidden = all.hidden = false;
