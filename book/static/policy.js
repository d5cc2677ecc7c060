// Chapter 10's slider: what a language model would say at each distance from where training began. The page holds the
// data and shows one distance as a table; this script adds the slider to it.

for (const box of document.querySelectorAll(".policy-slider")) {
  const steps = JSON.parse(box.dataset.steps);
  const [range, shown] = [document.createElement("input"), document.createElement("output")];
  const label = document.createElement("label");
  Object.assign(range, { type: "range", min: 0, max: steps.length - 1, value: steps.findIndex((step) => step.nats === 2) });
  label.append("KL divergence ", range, " ", shown);
  const rows = box.querySelector("tbody");
  const draw = () => {
    const { nats, answers, words } = steps[range.value];
    shown.value = `${nats.toFixed(2)} nats, as varied as ${answers.toFixed(1)} answers`;
    const lines = words.map(([word, share]) => {
      const line = document.createElement("tr");
      const bar = document.createElement("span");
      bar.className = "word-bar";
      bar.style.setProperty("--share", `${100 * share}%`);
      const cells = [word, share.toFixed(3), bar].map((content) => {
        const cell = document.createElement("td");
        cell.append(content);
        return cell;
      });
      line.append(...cells);
      return line;
    });
    rows.replaceChildren(...lines);
  };
  range.addEventListener("input", draw);
  box.prepend(label);
  draw();
}
