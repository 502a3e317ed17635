"use strict";
(() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const specs = JSON.parse(document.getElementById("plots").textContent);

  // Okabe and Ito's colours, which the colour-blind tell apart; the two blues, and orange and vermilion, far from each other.
  const colours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#767676", "#d55e00", "#56b4e9"];
  const darkColours = ["#56b4e9", "#e69f00", "#2fc79a", "#e59ac5", "#b5b5b5", "#f0803c", "#3f8fd2"];

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const text = { labelColor: colour("--text"), titleColor: colour("--text") };
    return {
      background: "transparent",
      font: "system-ui, sans-serif",
      view: { stroke: colour("--line") },
      axis: { ...text, labelSeparation: 8, domainColor: colour("--line"), gridColor: colour("--line"), tickColor: colour("--line") },
      legend: { ...text, columns: window.innerWidth < 640 ? 2 : 3, symbolBaseFillColor: colour("--text") },
      title: { color: colour("--text") },
      text: { color: colour("--text") },
      rule: { color: colour("--text") },
      rect: { stroke: colour("--back"), strokeWidth: 0.5 },
      range: { category: dark.matches ? darkColours : colours },
    };
  }

  // What is under the focus is said beside it, as a pointer's tooltip says it.
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;

  function show(mark, rows) {
    const table = document.createElement("table");
    for (const [name, text] of rows) {
      if (text === "") continue;
      const row = table.insertRow();
      row.insertCell().textContent = name;
      row.insertCell().textContent = text;
    }
    tip.replaceChildren(table);
    tip.hidden = false;
    const box = mark.getBoundingClientRect();
    const left = Math.min(box.left + window.scrollX, window.scrollX + document.documentElement.clientWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(0, left)}px`;
    tip.style.top = `${box.bottom + window.scrollY + 6}px`;
  }

  const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };

  // One mark of a plot is in the order of the Tab key; arrow keys go to the others, from left to right.
  function marksOf(element) {
    const marks = [...element.querySelectorAll("svg path")].filter((mark) => mark.__data__ && mark.__data__.tooltip);
    const places = new Map(marks.map((mark) => [mark, mark.getBoundingClientRect()]));
    return marks.sort((a, b) => places.get(a).left - places.get(b).left || places.get(a).top - places.get(b).top);
  }

  function setStop(element, stop) {
    for (const mark of marksOf(element)) mark.setAttribute("tabindex", "-1");
    if (stop) stop.setAttribute("tabindex", "0");
  }

  for (const element of document.querySelectorAll(".plot")) {
    element.addEventListener("redrawn", () => setStop(element, marksOf(element)[0])); // a page may change what is drawn
    element.addEventListener("focusin", (event) => {
      const mark = event.target;
      if (!mark.__data__ || !mark.__data__.tooltip) return;
      const stop = element.querySelector('path[tabindex="0"]');
      if (stop) stop.setAttribute("tabindex", "-1");
      mark.setAttribute("tabindex", "0");
      show(mark, Object.entries(mark.__data__.tooltip));
    });
    element.addEventListener("focusout", () => { tip.hidden = true; });
    element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") tip.hidden = true;
      if (!(event.key in STEPS)) return;
      const marks = marksOf(element);
      const at = marks.indexOf(event.target);
      if (at < 0) return;
      event.preventDefault();
      marks[Math.max(0, Math.min(marks.length - 1, at + STEPS[event.key]))].focus();
    });
  }

  // Boxes of a graph have theirs in lines of names and texts.
  for (const node of document.querySelectorAll("svg .node")) {
    const rows = node.querySelector("desc").textContent.trim().split("\n").map((line) => line.split("\t"));
    for (const event of ["focus", "mouseenter"]) node.addEventListener(event, () => show(node, rows));
    for (const event of ["blur", "mouseleave"]) node.addEventListener(event, () => { tip.hidden = true; });
  }

  // A graph begins at the box with most of the time.
  for (const graph of document.querySelectorAll(".graph")) {
    const [box, frame] = [graph.querySelector(".largest"), graph].map((part) => part.getBoundingClientRect());
    graph.scrollLeft += box.left + box.width / 2 - frame.left - graph.clientWidth / 2;
    graph.scrollTop += box.top + box.height / 2 - frame.top - graph.clientHeight / 2;
  }

  // Where a browser lets no page write to the clipboard, the lines are selected.
  async function copy(button) {
    const codes = [...button.parentElement.querySelectorAll("code")];
    try {
      await navigator.clipboard.writeText(codes.map((code) => code.textContent).join("\n"));
      button.textContent = "Copied";
    } catch {
      const last = codes[codes.length - 1];
      window.getSelection().setBaseAndExtent(codes[0], 0, last, last.childNodes.length);
      button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.copy");
    if (button) copy(button);
  });
  window.addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details.part")) part.open = true;
  });

  // Buttons that zoom into a time line and move along it; its marks can be dragged, too.
  const ZOOMS = [
    ["+", "zoom in", ([from, to]) => [from + (to - from) / 4, to - (to - from) / 4]],
    ["−", "zoom out", ([from, to]) => [from - (to - from) / 2, to + (to - from) / 2]],
    ["←", "move left", ([from, to]) => [from - (to - from) / 4, to - (to - from) / 4]],
    ["→", "move right", ([from, to]) => [from + (to - from) / 4, to + (to - from) / 4]],
    ["all", "show all", () => null],
  ];
  function addZoom(element, view) {
    const [least, most] = view.scale("x").domain();
    const row = document.createElement("p");
    row.className = "zoom";
    for (const [text, title, next] of ZOOMS) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.title = title;
      button.setAttribute("aria-label", title);
      button.addEventListener("click", async () => {
        const found = next(view.scale("x").domain());
        const width = found && Math.min(most - least, found[1] - found[0]);
        const from = found && Math.max(least, Math.min(most - width, found[0]));
        await view.signal("zoom_start", found && [from, from + width]).runAsync();
      });
      row.append(button);
    }
    element.parentElement.querySelector(".zoom")?.remove();
    element.before(row);
  }

  async function draw() {
    document.body.append(tip);
    for (const element of document.querySelectorAll(".plot")) {
      // Expressions are interpreted: the page's policy lets nothing be compiled.
      const options = {
        mode: "vega-lite", renderer: "svg", actions: false, ast: true, config: theme(),
        tooltip: { theme: dark.matches ? "dark" : "light" },
      };
      const { view } = await window.vegaEmbed(element, specs[element.id], options);
      const svg = element.querySelector("svg");
      svg.setAttribute("aria-label", element.dataset.text);
      setStop(element, marksOf(element)[0]);
      if ("zoom_start" in view.getState().signals) addZoom(element, view);
      element.dataset.drawn = String(view.getState().signals !== undefined);
      element.dispatchEvent(new CustomEvent("drawn", { detail: view }));
    }
    document.documentElement.dataset.drawn = dark.matches ? "dark" : "light";
  }

  dark.addEventListener("change", draw);
  document.addEventListener("DOMContentLoaded", draw); // after the page's own script, which may listen
})();
