// The explorer's data: the files that rmnb/book/explorer.py writes, each fetched once, when it is first needed.

const base = new URL("data/", import.meta.url);
const kept = new Map();

/** What `make` gives for `key`, made once; a failure is forgotten, so that the next call tries again. */
function once(key, make) {
  if (!kept.has(key)) kept.set(key, make().catch((error) => { kept.delete(key); throw error; }));
  return kept.get(key);
}

async function read(path) {
  const answer = await fetch(new URL(path, base));
  if (!answer.ok) throw new Error(`${path} cannot be read (${answer.status})`);
  return answer;
}

async function unpacked(path) {
  const bytes = new Uint8Array(await (await read(path)).arrayBuffer());
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes; // the server has undone the compression already
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The address of a packed script, unpacked: whole libraries are light to load even from a plain server. */
export async function scriptAddress(name) {
  return URL.createObjectURL(new Blob([await unpacked(`../${name}`)], { type: "text/javascript" }));
}

/** Numbers that were written byte by byte: all lowest bytes first. */
function numbers(bytes) {
  const n = bytes.length / 4;
  const values = new Int32Array(n);
  for (let i = 0; i < n; i++) {
    values[i] = bytes[i] | (bytes[n + i] << 8) | (bytes[2 * n + i] << 16) | (bytes[3 * n + i] << 24);
  }
  return values;
}

/** The rows in the order of their ranks, best first; rows of one rank in their own order (a counting sort). */
function sortedByRank(rank) {
  let highest = 0;
  for (const value of rank) if (value > highest) highest = value;
  const start = new Uint32Array(highest + 2);
  for (const value of rank) start[value + 1]++;
  for (let value = 1; value < start.length; value++) start[value] += start[value - 1];
  const order = new Uint32Array(rank.length);
  for (let row = 0; row < rank.length; row++) order[start[rank[row]]++] = row;
  return order;
}

/** 100 for the best of these rows, towards 0 for the worst; equal rewards share the mean of their places. */
function percentiles(rank, order) {
  const n = rank.length;
  const values = new Float32Array(n);
  for (let first = 0; first < n; ) {
    let end = first;
    while (end < n && rank[order[end]] === rank[order[first]]) end++;
    for (let i = first; i < end; i++) values[order[i]] = (100 * (n - (first + end - 1) / 2)) / n;
    first = end;
  }
  return values;
}

export function readManifest() {
  return once("manifest", async () => (await read("manifest.json")).json());
}

/** A list of tokens and the scans of the models that have them. */
export class TokenSet {
  constructor(described, block) {
    Object.assign(this, described, { block, loaded: new Map() });
    this.models = [...new Set(this.scans.map((scan) => scan.model))];
  }

  described(model, prompt) {
    return this.scans.find((scan) => scan.model === model && scan.prompt === prompt);
  }

  /** {tokens, kinds, shown, hidden (a Set)}. */
  words() {
    return once(`${this.key}/tokens.bin`, async () => {
      const words = JSON.parse(new TextDecoder().decode(await unpacked(`${this.key}/tokens.bin`)));
      return { ...words, hidden: new Set(words.hidden) };
    });
  }

  /** {rank, reward, percentile} by row, and order: the rows from best to worst. */
  scan(model, prompt) {
    const { file, decimals } = this.described(model, prompt);
    return once(`${this.key}/${file}`, async () => {
      const values = numbers(await unpacked(`${this.key}/${file}`));
      const rank = values.subarray(0, this.tokens);
      const steps = values.subarray(this.tokens);
      const order = sortedByRank(rank);
      const reward = new Float64Array(this.tokens);
      let sum = 0;
      for (let i = 0; i < this.tokens; i++) reward[order[i]] = (sum += steps[i]) / 10 ** decimals;
      const scan = { rank, order, reward, decimals, percentile: percentiles(rank, order) };
      this.loaded.set(`${model}\n${prompt}`, scan);
      return scan;
    });
  }

  /** A scan that has been read already, or undefined. */
  ready(model, prompt) {
    return this.loaded.get(`${model}\n${prompt}`);
  }

  /** Everything about one row: [{model, prompt, rank, reward, decimals}], in the order of `scans`. */
  async row(row) {
    const block = Math.floor(row / this.block);
    const path = `${this.key}/rows-${block}.bin`;
    const values = await once(path, async () => numbers(await unpacked(path)));
    const length = Math.min(this.block, this.tokens - block * this.block);
    const at = row - block * this.block;
    return this.scans.map(({ model, prompt, decimals }, k) => ({
      model,
      prompt,
      decimals,
      rank: values[2 * k * length + at],
      reward: values[(2 * k + 1) * length + at] / 10 ** decimals,
    }));
  }
}
