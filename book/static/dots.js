// Figures whose dots say which two models they are: where a reader points, taps or goes with the arrow keys. The cell below
// such a figure has a row a dot: its place from the left and from the bottom, two models, their τ, the favourite word of
// each, and the place of that word in the other's ranking. Without scripts the figure stands as it is.

import { element, numeral } from "./explorer/tokens.js";

const NEAR = 24; // pixels

function sentence([, , model, other, tau, likes, others, inOther, inModel]) {
  const same = numeral(50 + 50 * tau);
  const name = (text) => element("em", {}, text);
  return [
    name(model), " and ", name(other), ` put ${same} of 100 pairs of tokens in the same order (τ = ${numeral(tau, 2)}). Of the words that both have, the favourite of `,
    name(model), ", ", element("strong", {}, likes), `, has place ${numeral(inOther)} in the other; that of `,
    name(other), ", ", element("strong", {}, others), `, place ${numeral(inModel)}.`,
  ];
}

for (const box of document.querySelectorAll(".dots")) {
  const dots = JSON.parse(box.dataset.dots);
  const image = document.querySelector(`#${box.dataset.figure} img`);
  const ring = element("span", { class: "ring" });
  const label = "Dots of the figure: choose one with the arrow keys";
  const stage = element("div", { class: "dots-stage", tabindex: 0, role: "application", "aria-label": label });
  let chosen = -1;

  const choose = (at) => {
    if (at < 0) return;
    chosen = at;
    const [left, bottom] = dots[at];
    ring.style.left = `${100 * left}%`;
    ring.style.bottom = `${100 * bottom}%`;
    stage.dataset.chosen = at;
    box.replaceChildren(...sentence(dots[at]));
  };

  /** The nearest of the dots that fit, by distance in pixels. */
  const nearest = (x, y, within, fits = () => true) => {
    const { width, height } = stage.getBoundingClientRect();
    let [best, least] = [-1, within];
    dots.forEach(([left, bottom], at) => {
      const distance = Math.hypot(left * width - x, (1 - bottom) * height - y);
      if (fits(left * width - x, (1 - bottom) * height - y) && distance < least) [best, least] = [at, distance];
    });
    return best;
  };

  const point = (event) => {
    const { left, top } = stage.getBoundingClientRect();
    choose(nearest(event.clientX - left, event.clientY - top, NEAR));
  };

  const steps = {
    ArrowRight: (x, y) => x > 0.5 && Math.abs(y) <= x,
    ArrowLeft: (x, y) => x < -0.5 && Math.abs(y) <= -x,
    ArrowDown: (x, y) => y > 0.5 && Math.abs(x) < y,
    ArrowUp: (x, y) => y < -0.5 && Math.abs(x) < -y,
  };
  const step = (event) => {
    if (!(event.key in steps)) return;
    event.preventDefault();
    if (chosen < 0) return choose(0);
    const { width, height } = stage.getBoundingClientRect();
    const [left, bottom] = dots[chosen];
    choose(nearest(left * width, (1 - bottom) * height, Infinity, steps[event.key]));
  };

  image.replaceWith(stage);
  stage.append(image, ring);
  stage.after(box);
  stage.addEventListener("pointermove", point);
  stage.addEventListener("pointerdown", point);
  stage.addEventListener("keydown", step);
  box.setAttribute("role", "status");
}
