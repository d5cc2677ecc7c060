// Chapter 10's figure: what the best policy under each grader says at each distance from where training began. The picture
// shows two distances; this script puts a slider and the bars of one distance in its place.

import { element, numeral } from "./explorer/tokens.js";

for (const box of document.querySelectorAll(".policy-slider")) {
  const { words, nats, steps } = JSON.parse(box.dataset.all);
  const tint = (word) => `hsl(${(137.52 * word) % 360} 60% 82%)`;
  const range = element("input", { type: "range", min: 0, max: steps.length - 1, value: nats.indexOf(8) });
  const shown = element("output");
  const bars = element("table", { class: "policy-bars" });
  const piece = ([word, share]) =>
    element("span", { style: `width: ${100 * share}%; background: ${tint(word)}`, title: `${words[word]} ${numeral(share, 2)}` }, words[word]);
  const draw = () => {
    shown.value = `${numeral(nats[range.value], 1)} nats`;
    range.setAttribute("aria-valuetext", shown.value);
    const lines = Object.entries(steps[range.value]).map(([model, pieces]) =>
      element("tr", {}, element("th", { scope: "row" }, model), element("td", {}, ...pieces.map(piece))),
    );
    bars.replaceChildren(element("tbody", {}, ...lines));
  };
  range.addEventListener("input", draw);
  draw();
  const image = document.querySelector(`#${box.dataset.figure} img`);
  image.replaceWith(element("div", { class: "policy-live" }, element("label", {}, "KL divergence ", range, " ", shown), bars));
}
