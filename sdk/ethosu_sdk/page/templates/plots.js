"use strict";
(() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const specs = JSON.parse(document.getElementById("plots").textContent);

  // Okabe and Ito's colours, which the colour-blind tell apart.
  const colours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999"];
  const darkColours = ["#56b4e9", "#e69f00", "#2fc79a", "#e59ac5", "#3f8fd2", "#f0803c", "#b5b5b5"];

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const text = { labelColor: colour("--text"), titleColor: colour("--text") };
    return {
      background: "transparent",
      font: "system-ui, sans-serif",
      view: { stroke: colour("--line") },
      axis: { ...text, domainColor: colour("--line"), gridColor: colour("--line"), tickColor: colour("--line") },
      legend: { ...text, columns: 3, symbolBaseFillColor: colour("--text") },
      title: { color: colour("--text") },
      text: { color: colour("--text") },
      rule: { color: colour("--text") },
      range: { category: dark.matches ? darkColours : colours },
    };
  }

  async function draw() {
    for (const element of document.querySelectorAll(".plot")) {
      // Expressions are interpreted: the page's policy lets nothing be compiled.
      const options = {
        mode: "vega-lite", renderer: "svg", actions: false, ast: true, config: theme(),
        tooltip: { theme: dark.matches ? "dark" : "light" },
      };
      const { view } = await window.vegaEmbed(element, specs[element.id], options);
      const svg = element.querySelector("svg");
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", element.dataset.text);
      element.dataset.drawn = String(view.getState().signals !== undefined);
      element.dispatchEvent(new CustomEvent("drawn", { detail: view }));
    }
    document.documentElement.dataset.drawn = dark.matches ? "dark" : "light";
  }

  dark.addEventListener("change", draw);
  document.addEventListener("DOMContentLoaded", draw); // after the page's own script, which may listen
})();
