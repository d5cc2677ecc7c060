// Which tokens a reader asks for.

const LONGEST = 2000; // milliseconds that a pattern may take

/** What a reader writes for characters that cannot be typed. */
function typed(query) {
  return query.replaceAll("␣", " ").replaceAll("␊", "\n").replaceAll("␉", "\t");
}

/**
 * The rows that match, or null for all of them.
 *
 * part: the token contains the query, case aside. whole: it is the query, case and blanks at its edges aside.
 * pattern: a regular expression finds it; it runs in a worker, so that one that never ends can be stopped.
 */
export async function find(words, { q, match, kind }) {
  const query = typed(q);
  if (!query && !kind) return null;
  const fits = kind ? (row) => words.kinds[row] === kind : () => true;
  let rows;
  if (!query) rows = null;
  else if (match === "pattern") rows = await pattern(words.tokens, query);
  else {
    const part = query.toLowerCase();
    const whole = part.trim();
    const test = match === "whole" ? (token) => token.trim().toLowerCase() === whole : (token) => token.toLowerCase().includes(part);
    rows = words.tokens.flatMap((token, row) => (test(token) ? [row] : []));
  }
  rows ??= words.tokens.keys();
  return Uint32Array.from([...rows].filter(fits));
}

function pattern(tokens, source) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("pattern.js", import.meta.url));
    const done = (settle, value) => {
      clearTimeout(timer);
      worker.terminate();
      settle(value);
    };
    const timer = setTimeout(() => done(reject, new Error("This pattern takes too long. Make it simpler.")), LONGEST);
    worker.onmessage = ({ data }) =>
      data.rows ? done(resolve, data.rows) : done(reject, new Error("This is not a regular expression that a browser understands."));
    worker.onerror = () => done(reject, new Error("Patterns cannot be searched for in this browser."));
    worker.postMessage({ tokens, source });
  });
}
