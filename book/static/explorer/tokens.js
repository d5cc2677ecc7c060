// Tokens as elements of the page. Their text is hostile: it becomes text nodes only, with everything invisible marked.

/** An element with attributes and children; strings become text, never markup. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** What a reader sees of a row's token: `rmnb.book.display.visible` has written down where it is more than blanks. */
export function visible(words, row) {
  return words.shown[row] ?? words.tokens[row].replaceAll(" ", "␣");
}

const revealed = new Set();
let all = false;

export function revealAll(on) {
  all = on;
  revealed.clear();
}

export function isHidden(words, row) {
  return words.hidden.has(row) && !all && !revealed.has(words.tokens[row]);
}

/** The token, behind a click if it is offensive; `choose`, if given, is what a click on the token itself does. */
export function tokenElement(words, row, choose) {
  if (isHidden(words, row)) {
    const reveal = (event) => {
      revealed.add(words.tokens[row]);
      const shown = tokenElement(words, row, choose);
      event.currentTarget.replaceWith(shown);
      shown.focus();
    };
    return element("button", { type: "button", class: "hidden-token", onclick: reveal }, "offensive: show");
  }
  const code = element("code", { class: "token" }, element("bdi", {}, visible(words, row)));
  return choose ? element("button", { type: "button", class: "choose", onclick: () => choose(row) }, code) : code;
}

/** A number as the book writes it: thousands in groups, a true minus sign. */
export function numeral(value, decimals = 0) {
  return value
    .toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals })
    .replace("-", "−");
}
