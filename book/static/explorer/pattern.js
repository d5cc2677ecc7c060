// A worker that looks for a regular expression in tokens and may be stopped at any time.

onmessage = ({ data: { tokens, source } }) => {
  try {
    const expression = new RegExp(source, "iu");
    postMessage({ rows: tokens.flatMap((token, row) => (expression.test(token) ? [row] : [])) });
  } catch {
    postMessage({ rows: null });
  }
};
