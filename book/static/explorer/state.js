// What is shown, as the part of the address behind the #, so that every state has a link. An address may hold anything.

const PER_PAGE = 20;

/** The state that an address asks for; what it lacks, or gets wrong, is as on a first visit. */
export function readState(hash, { sets, prompts, kinds }) {
  const asked = new URLSearchParams(hash.replace(/^#/, ""));
  const oneOf = (name, values) => (values.includes(asked.get(name)) ? asked.get(name) : values[0]);
  const number = (name, below) => (/^\d{1,9}$/.test(asked.get(name) ?? "") && Number(asked.get(name)) < below ? Number(asked.get(name)) : null);
  const set = sets.find((one) => one.key === asked.get("tokens")) ?? sets[0];
  const keys = prompts.map((prompt) => prompt.key).filter((key) => set.scans.some((scan) => scan.prompt === key));
  const prompt = oneOf("prompt", keys);
  const models = set.models.filter((model) => set.described(model, prompt));
  const chosen = models.filter((model) => asked.getAll("model").includes(model));
  const shown = chosen.length ? chosen : affordable(set, models, prompt);
  return {
    tokens: set.key,
    prompt,
    models: shown,
    q: (asked.get("q") ?? "").slice(0, 200),
    match: oneOf("match", ["part", "whole", "pattern"]),
    kind: oneOf("kind", ["", ...kinds.keys()].map(String)),
    sort: oneOf("sort", [shown[0], "token", "spread", ...shown]),
    dir: oneOf("dir", ["asc", "desc"]),
    page: number("page", 1e6) || 1,
    row: number("row", set.tokens),
    x: oneOf("x", [first(prompts, keys, "positive"), ...keys]),
    y: oneOf("y", [first(prompts, keys, "negative"), ...keys]),
    of: oneOf("of", set.models),
    near: oneOf("near", models),
    plot: asked.get("plot") === "1",
    length: PER_PAGE,
  };
}

/** The models of a first view: as many as three megabytes hold, tokens included. */
function affordable(set, models, prompt) {
  let sum = set.bytes;
  return models.filter((model, place) => (sum += set.described(model, prompt).bytes) <= 2.9e6 || place === 0);
}

/** The question that asks for the best, or the worst, if there is one; else the first of its framing. */
function first(prompts, keys, framing) {
  const known = prompts.filter((prompt) => keys.includes(prompt.key));
  const plain = { positive: "best", negative: "worst" }[framing];
  const found = known.find((prompt) => prompt.key === plain) ?? known.find((prompt) => prompt.framing === framing);
  return (found ?? known.at(-1)).key;
}

/** The address of a state: what differs from a first visit. */
export function writeState(state, manifest) {
  const usual = readState("", manifest);
  const asked = new URLSearchParams();
  const plain = readState(new URLSearchParams({ tokens: state.tokens, prompt: state.prompt }).toString(), manifest);
  for (const name of ["tokens", "prompt"]) if (state[name] !== usual[name]) asked.set(name, state[name]);
  if (state.models.join("\n") !== plain.models.join("\n")) state.models.forEach((model) => asked.append("model", model));
  const sort = state.models[0]; // the column that a table is sorted by unless told otherwise
  for (const name of ["q", "match", "kind", "dir", "page", "row", "x", "y", "of", "near"]) {
    if (state[name] !== plain[name]) asked.set(name, state[name]);
  }
  if (state.sort !== sort) asked.set("sort", state.sort);
  if (state.plot) asked.set("plot", "1");
  return `#${asked}`;
}
