"use strict";
(() => {
  const data = JSON.parse(document.getElementById("cells").textContent);
  const byId = (id) => document.getElementById(id);
  const PAGE = 200; // rows of the list that are added at once
  const MOST_FIELDS = 20000; // of the matrix
  const MARKS = {
    winner: ["★", "is-winner", "winner"],
    "best by the NPU alone": ["☆", "is-pareto", "best by the NPU alone: the CPU's time is not known"],
    pareto: ["◆", "is-pareto", "Pareto set: no other cell beats it in all goals"],
    dominated: ["✓", "is-kept", "keeps the constraints, beaten by another"],
    "not ranked": ["≈", "is-open", "keeps the constraints, figures of the goals missing"],
    broken: ["✗", "is-broken", "breaks a constraint"],
    "not judged": ["?", "is-open", "figures of the constraints missing"],
    "no result": ["!", "is-bad", "refused, failed or wrong: no result"],
  };

  const cells = data.rows.map((row) => {
    const cell = {};
    data.textColumns.forEach((name, index) => { cell[name] = data.texts[row[index]]; });
    data.numberColumns.forEach((name, index) => {
      const value = row[data.textColumns.length + index];
      cell[name] = value === "inf" ? Infinity : value;
    });
    return cell;
  });
  const cellOf = new Map(cells.map((cell) => [cell.cell, cell]));
  const figureOf = Object.fromEntries(data.figures.map((figure) => [figure.name, figure]));

  function make(tag, text, classes) {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (classes) element.className = classes;
    return element;
  }

  // Names break where their parts do.
  function broken(element, text) {
    text.split(/(?<=[_/])/).forEach((part, index) => {
      if (index) element.append(document.createElement("wbr"));
      element.append(part);
    });
    return element;
  }

  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });
  function exact(value) {
    if (value === null) return "";
    if (value === Infinity) return "∞";
    return Math.abs(value) < 1 && value !== 0 ? String(Number(value.toPrecision(3))) : whole.format(value);
  }

  // Three digits, for fields that are looked at and not read.
  function brief(name, value) {
    if (value === Infinity) return "∞";
    const unit = figureOf[name].unit;
    const steps = unit === "bytes" ? [[1e9, " GB"], [1e6, " MB"], [1e3, " kB"], [1, " B"]]
      : unit === "ms" || unit === "dB" || unit === "s" || unit === "MHz" ? [[0, ` ${unit}`]]
      : [[1e9, " G"], [1e6, " M"], [1e4, " k", 1e3], [1, ""]];
    const [least, word, by] = steps.find(([from]) => Math.abs(value) >= from) || steps[steps.length - 1];
    const scaled = value / (by || least || 1);
    const digits = word.trim() && word !== " B" ? { minimumSignificantDigits: 3 } : {};
    return scaled.toLocaleString("en", { maximumSignificantDigits: Math.abs(scaled) < 1000 ? 3 : 21, ...digits }) + word;
  }

  const natural = new Intl.Collator("en", { numeric: true });
  const values = (name) => [...new Set(cells.map((cell) => cell[name]))].sort(natural.compare);

  /* Filters */

  const FILTERS = [...data.shown.filter((name) => values(name).length > 1), "status", "standing"];
  const titleOf = (name) => data.titles[name] || name;

  function addSelects() {
    for (const name of FILTERS) {
      const known = values(name).filter((value) => value !== "");
      if (known.length < 2) continue;
      const select = make("select");
      select.dataset.name = name;
      select.append(new Option("all", ""), ...known.map((value) => new Option(value, value)));
      select.id = `filter-${name}`;
      const label = make("label", titleOf(name));
      label.htmlFor = select.id;
      const pair = make("span", undefined, "filter");
      pair.append(label, " ", select);
      byId("selects").append(pair);
    }
  }

  const searched = new Map();
  function haystack(cell) {
    if (!searched.has(cell)) searched.set(cell, data.textColumns.map((name) => cell[name]).join("\n").toLowerCase());
    return searched.get(cell);
  }

  function chosen() {
    const wanted = [...byId("selects").querySelectorAll("select")].filter((select) => select.value !== "");
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    return cells.filter((cell) =>
      wanted.every((select) => cell[select.dataset.name] === select.value)
      && words.every((word) => haystack(cell).includes(word)));
  }

  /* Matrix */

  const keyOf = (cell, names) => JSON.stringify(names.map((name) => cell[name]));

  function axis(found, names) {
    const keys = new Map(found.map((cell) => [keyOf(cell, names), names.map((name) => cell[name])]));
    const compare = (a, b) => a.map((text, index) => natural.compare(text, b[index])).find(Boolean) || 0;
    return [...keys].sort((a, b) => compare(a[1], b[1]));
  }

  function head(columns) {
    const thead = make("thead");
    data.above.forEach((name, level) => {
      const row = thead.insertRow();
      if (level === 0) {
        const corner = make("th", data.beside.map(titleOf).join(", "), "corner");
        corner.scope = "col";
        corner.rowSpan = data.above.length;
        row.append(corner);
      }
      for (let start = 0; start < columns.length;) {
        let end = start + 1;
        const group = (index) => JSON.stringify(columns[index][1].slice(0, level + 1));
        while (end < columns.length && group(end) === group(start)) end += 1;
        const heading = broken(make("th"), columns[start][1][level] || "–");
        heading.scope = end - start > 1 ? "colgroup" : "col";
        heading.colSpan = end - start;
        row.append(heading);
        start = end;
      }
    });
    return thead;
  }

  function field(cell, figure) {
    const [mark, kind, meaning] = MARKS[cell.standing] || ["", "", ""];
    const value = cell[figure];
    const clock = figure === "time_ms" && cell.clock_mhz ? ` at ${exact(cell.clock_mhz)} MHz` : "";
    const words = cell.standing === "no result" ? cell.status : figure && value !== null ? brief(figure, value) + clock : figure ? "–" : cell.standing;
    const button = make("button", `${mark} ${words}`, kind);
    button.type = "button";
    button.dataset.cell = cell.cell;
    button.title = [data.shown.map((name) => cell[name]).filter(Boolean).join(" · "), meaning, cell.why || cell.message].filter(Boolean).join("\n");
    return button;
  }

  function drawGrid(found) {
    const grid = byId("grid");
    const figure = byId("figure").value;
    const rows = axis(found, data.beside);
    const columns = axis(found, data.above);
    grid.replaceChildren();
    const isLarge = rows.length * columns.length > MOST_FIELDS;
    byId("grid-note").textContent = isLarge
      ? `The matrix would have ${exact(rows.length * columns.length)} fields: filter, so that it has at most ${exact(MOST_FIELDS)}.`
      : found.length ? "" : "No cell is left by the filters.";
    if (isLarge || !found.length) return;
    const places = new Map();
    for (const cell of found) {
      const key = keyOf(cell, data.beside) + keyOf(cell, data.above);
      places.set(key, [...(places.get(key) || []), cell]);
    }
    const body = make("tbody");
    for (const [key, names] of rows) {
      const row = body.insertRow();
      const heading = broken(make("th"), names.filter(Boolean).join(" · "));
      heading.scope = "row";
      row.append(heading);
      for (const [column] of columns) {
        const here = row.insertCell();
        here.append(...(places.get(key + column) || []).map((cell) => field(cell, figure)));
      }
    }
    const caption = make("caption", figure ? figureOf[figure].title : "Standing of each cell", "hidden");
    grid.append(caption, head(columns), body);
    showWinner(grid);
  }

  // In a narrow window, the first winner is where the matrix is scrolled to.
  function showWinner(grid) {
    const frame = grid.parentElement;
    const winner = grid.querySelector(".is-winner") || grid.querySelector(".is-pareto");
    const end = winner ? winner.getBoundingClientRect().right - grid.getBoundingClientRect().left : 0;
    frame.scrollLeft = Math.max(0, end - frame.clientWidth + 8);
  }

  function addFigures() {
    const select = byId("figure");
    select.append(new Option("standing alone", ""), ...data.figures.filter(({ name }) => name !== "exit_code").map(({ name, title }) => new Option(title, name)));
    select.value = figureOf[data.first] ? data.first : "";
    const present = new Set(cells.map((cell) => cell.standing));
    for (const [name, [mark, kind, meaning]] of Object.entries(MARKS)) {
      if (!present.has(name)) continue;
      const item = make("li");
      item.append(make("span", mark, `mark ${kind}`), ` ${meaning}`);
      byId("legend").append(item);
    }
  }

  /* List */

  const COLUMNS = [
    { name: "cell", title: "cell" },
    ...data.shown.map((name) => ({ name, title: titleOf(name), kind: "word" })),
    { name: "status", title: "status", kind: "brief" },
    { name: "standing", title: "standing", kind: "brief" },
    ...data.figures.filter(({ name }) => name !== "exit_code" && cells.some((cell) => cell[name] !== null)).map(({ name, title, short, unit }) => ({ name, title: unit && !short.includes(unit) ? `${short}, ${unit}` : short, long: title, isNumber: true })),
    ...(values("npu_cycles_source").some(Boolean) ? [{ name: "npu_cycles_source", title: "source of times", kind: "brief" }] : []),
    { name: "text", title: "message", kind: "text" },
    { name: "link", title: "more", kind: "word" },
  ];
  const textOf = (cell) => [cell.message, cell.hint && `(${cell.hint})`, cell.why].filter(Boolean).join(" ");
  for (const cell of cells) cell.text = textOf(cell);

  let listed = [];
  let order = null;

  function addHeadings() {
    const row = byId("list").tHead.insertRow();
    COLUMNS.forEach((column, index) => {
      const heading = make("th", undefined, column.isNumber ? "number" : "");
      heading.scope = "col";
      heading.setAttribute("aria-sort", "none");
      const button = make("button", column.title);
      if (column.long) button.title = column.long;
      button.type = "button";
      button.addEventListener("click", () => sortBy(index));
      heading.append(button);
      row.append(heading);
    });
  }

  function sortBy(index) {
    order = { index, rising: !(order && order.index === index && order.rising) };
    [...byId("list").tHead.rows[0].cells].forEach((heading, at) => {
      heading.setAttribute("aria-sort", at !== index ? "none" : order.rising ? "ascending" : "descending");
    });
    drawList(listed);
  }

  function sorted(found) {
    if (!order) return found;
    const { name, isNumber } = COLUMNS[order.index];
    const isUnknown = (cell) => cell[name] === null || cell[name] === "";
    // Equal infinities have no difference.
    const compare = isNumber ? (a, b) => (a < b ? -1 : Number(a > b)) : natural.compare;
    return [...found].sort((a, b) => {
      // What is not known comes last in both directions.
      if (isUnknown(a) || isUnknown(b)) return isUnknown(a) - isUnknown(b);
      return order.rising ? compare(a[name], b[name]) : compare(b[name], a[name]);
    });
  }

  function entry(cell) {
    const row = make("tr");
    for (const { name, isNumber, kind } of COLUMNS) {
      const place = row.insertCell();
      if (isNumber) {
        place.className = "number";
        place.textContent = exact(cell[name]);
      } else if (name === "cell") {
        const button = make("button", cell.cell, "open");
        button.type = "button";
        button.dataset.cell = cell.cell;
        place.append(button);
      } else if (name === "link") {
        if (cell.link) place.append(linkTo(cell));
      } else {
        place.className = `${kind}${name === "status" && cell.status !== "pass" ? " bad" : ""}`;
        place.append(broken(make("div", undefined, "clamp"), cell[name]));
      }
    }
    return row;
  }

  function linkTo(cell) {
    const link = make("a", cell.link_text);
    link.href = cell.link;
    return link;
  }

  function addRows() {
    const body = byId("list").tBodies[0];
    const start = body.rows.length;
    body.append(...listed.slice(start, start + PAGE).map(entry));
    const left = listed.length - body.rows.length;
    byId("more").hidden = left === 0;
    byId("more").textContent = `Show ${exact(Math.min(left, PAGE))} more of ${exact(left)} cells`;
  }

  function drawList(found) {
    listed = sorted(found);
    byId("list").tBodies[0].replaceChildren();
    byId("list-note").textContent = found.length ? "" : "No cell is left by the filters.";
    addRows();
  }

  /* Details */

  function commandOf(what, line) {
    if (!line) return [];
    const command = make("div", undefined, "command");
    const button = make("button", "Copy", "copy");
    button.type = "button";
    command.append(make("code", line, "line"), button);
    return [make("p", what, "note"), command];
  }

  function showDetails(cell) {
    const rows = byId("details-rows");
    rows.replaceChildren();
    const add = (name, text) => {
      if (text === "") return;
      const row = rows.insertRow();
      const heading = make("th", name);
      heading.scope = "row";
      row.append(heading, broken(make("td"), text));
    };
    byId("details-title").textContent = `Cell ${cell.cell}`;
    const [mark, , meaning] = MARKS[cell.standing] || ["", "", ""];
    byId("details-stand").textContent = [`${mark} ${meaning}`, cell.why].filter(Boolean).join(": ");
    byId("details-link").replaceChildren(...(cell.link ? ["Open its ", linkTo(cell)] : []));
    byId("details-commands").replaceChildren(
      ...commandOf("Do this cell again, in the folder of SWEEP.toml:", cell.repeat),
      ...commandOf("Write its report:", cell.report),
    );
    add("status", cell.status);
    add("message", cell.message);
    add("hint", cell.hint);
    add("error", cell.error);
    for (const name of Object.keys(data.titles)) add(titleOf(name), cell[name]);
    add("SHA-256 of the model", cell.model_sha256);
    for (const { name, title, unit } of data.figures) {
      const clock = name === "time_ms" && cell.clock_mhz ? `at ${exact(cell.clock_mhz)} MHz` : "";
      const origin = ["time_ms", "judged_ms", "npu_cycles"].includes(name) ? [cell.npu_cycles_source, clock].filter(Boolean).join(", ") : "";
      const source = origin && ` (${origin})`;
      if (cell[name] !== null) add(title, `${exact(cell[name])} ${unit}`.trim() + source);
    }
    byId("details").showModal();
    byId("details").scrollTop = 0;
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-cell]");
    if (!button) return;
    const cell = cellOf.get(button.dataset.cell);
    if (cell) showDetails(cell);
  });

  /* Plot */

  const plot = byId("pareto");
  const model = byId("plot-model");
  let view = null;
  async function choose() {
    if (view) await view.signal("chosen", model.value).runAsync();
    if (view) plot.dispatchEvent(new CustomEvent("redrawn")); // other marks
    if (plot) plot.dataset.model = model.value;
  }
  if (plot) {
    plot.addEventListener("drawn", (event) => { view = event.detail; choose(); });
    model.addEventListener("change", choose);
  }

  /* All of it */

  function update() {
    const found = chosen();
    byId("count").textContent = `${exact(found.length)} of ${exact(cells.length)} cells`;
    drawGrid(found);
    drawList(found);
  }

  addSelects();
  addFigures();
  addHeadings();
  let waiting = 0; // a word that is typed is searched once
  byId("filters").addEventListener("input", (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(update, event.target === byId("search") ? 150 : 0);
  });
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("reset", () => setTimeout(update));
  byId("figure").addEventListener("input", () => drawGrid(chosen()));
  byId("more").addEventListener("click", addRows);
  update();
})();
