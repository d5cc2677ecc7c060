// The first page's box: the rank of a word in every model, under two questions. Its data are the token explorer's; nothing
// is fetched before the first key.

const ASKED = ["greatest", "worst"];
const form = document.getElementById("word-box");
const [status, place] = [document.getElementById("word-status"), document.getElementById("word-ranks")];
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

async function look(word) {
  const [data, shown] = await Promise.all([import("./explorer/data.js"), import("./explorer/tokens.js")]);
  const manifest = await data.readManifest();
  const set = new data.TokenSet(manifest.sets[0], manifest.block);
  const words = await set.words();
  const row = find(words.tokens, word);
  const scans = row < 0 ? [] : await set.row(row);
  if (word !== form.elements.word.value.trim()) return; // another key came meanwhile
  if (row < 0) {
    status.replaceChildren("No single token that all models have is this word. Try another, or look for a part of it in the explorer.");
    place.replaceChildren();
    return;
  }
  const size = Object.fromEntries(manifest.models.map((model) => [model.name, model.tokens]));
  const cell = (model, question) => {
    const { rank } = scans.find((scan) => scan.model === model && scan.prompt === question);
    const share = (100 * (size[model] - rank)) / (size[model] - 1);
    const bar = shown.element("span", { class: "word-bar", style: `--share: ${share}%` });
    return shown.element("td", {}, shown.numeral(rank), bar);
  };
  const head = ["model", "tokens", ...ASKED.map((question) => `the ${question} thing`)];
  const lines = set.models.map((model) => {
    const name = shown.element("th", { scope: "row" }, model);
    const tokens = shown.element("td", {}, shown.numeral(size[model]));
    return shown.element("tr", {}, name, tokens, ...ASKED.map((question) => cell(model, question)));
  });
  const top = shown.element("tr", {}, ...head.map((text) => shown.element("th", { scope: "col" }, text)));
  status.replaceChildren("Rank of ", shown.tokenElement(words, row), " as the answer; 1 is the highest reward, a full bar.");
  place.replaceChildren(shown.element("table", {}, shown.element("thead", {}, top), shown.element("tbody", {}, ...lines)));
}

form.addEventListener("submit", (event) => event.preventDefault());
form.elements.word.addEventListener("input", (event) => {
  clearTimeout(waiting);
  const word = event.target.value.trim();
  if (!word) return [status, place].forEach((part) => part.replaceChildren());
  waiting = setTimeout(() => look(word).catch((error) => status.replaceChildren(error.message)), 250);
});
form.hidden = false;
