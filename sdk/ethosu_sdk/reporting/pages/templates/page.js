"use strict";
(() => {
  /* The profile: a tree of rows, of which leaves have figures and all others the sums of theirs. */

  const WRITTEN = {
    whole: (value) => Math.round(value).toLocaleString("en"),
    time: (value, table) => (value * Number(table.dataset.scale))
      .toLocaleString("en", { minimumFractionDigits: table.dataset.digits, maximumFractionDigits: table.dataset.digits }),
    share: (value) => value.toLocaleString("en", { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 }),
  };

  function tree(table) {
    const headings = [...table.tHead.rows[0].cells];
    const keys = headings.map((heading) => heading.dataset.key);
    const rows = [...table.tBodies[0].rows].map((row) => ({
      row, id: row.dataset.id, isLeaf: "leaf" in row.dataset, isOpen: "isOpen" in row.dataset, children: [],
      text: row.textContent.toLowerCase(),
    }));
    const byId = new Map(rows.map((node) => [node.id, node]));
    const roots = [];
    for (const node of rows) {
      const parent = byId.get(node.row.dataset.parent);
      node.parent = parent;
      (parent ? parent.children : roots).push(node);
      if (parent) node.text += ` ${parent.text}`;
    }
    const summed = keys.map((key, at) => at)
      .filter((at) => ["whole", "time"].includes(headings[at].dataset.format) && keys[at] !== "index");
    const leaves = rows.filter((node) => node.isLeaf);
    let words = [];

    const numberIn = (row, at) => (row.cells[at].dataset.sort ? Number(row.cells[at].dataset.sort) : null);

    function sums(nodes) {
      return summed.map((at) => {
        const known = nodes.map((node) => numberIn(node.row, at)).filter((value) => value !== null);
        return known.length ? known.reduce((one, other) => one + other, 0) : null;
      });
    }

    function write(row, found) {
      const values = {};
      summed.forEach((at, number) => {
        const value = found[number];
        values[keys[at]] = value;
        row.cells[at].dataset.sort = value === null ? "" : String(value);
        row.cells[at].textContent = value === null ? ""
          : value === 0 && ["time", "modelled"].includes(keys[at]) ? table.dataset.parallel
          : WRITTEN[headings[at].dataset.format](value, table);
      });
      const at = keys.indexOf("utilisation");
      if (at < 0) return;
      const most = values.modelled * Number(table.dataset.ideal);
      const use = values.macs && most ? values.macs / most : null;
      row.cells[at].dataset.sort = use === null ? "" : String(use);
      row.cells[at].textContent = use === null ? "" : WRITTEN.share(use);
    }

    function total(node) {
      if (node.isLeaf) return node.matches ? [node] : [];
      const below = node.children.flatMap(total);
      node.matches = below.length > 0;
      if (node.matches) write(node.row, sums(below));
      return below;
    }

    function show() {
      const isSearch = words.length > 0;
      const visit = (node, isShown) => {
        node.row.hidden = !(isShown && node.matches);
        const isOpen = node.isOpen || (isSearch && node.row.classList.contains("module"));
        const toggle = node.row.querySelector(".toggle");
        if (toggle) toggle.setAttribute("aria-expanded", String(isOpen));
        for (const child of node.children) visit(child, isShown && isOpen);
      };
      for (const node of roots) visit(node, true);
    }

    function search(text) {
      words = text.toLowerCase().split(/\s+/).filter(Boolean);
      for (const node of leaves) node.matches = words.every((word) => node.text.includes(word));
      const left = roots.flatMap(total);
      write(table.tFoot.rows[0], sums(left));
      show();
      return [left.length, leaves.length];
    }

    function sortBy(column) {
      const isNumber = headings[column].classList.contains("number");
      const before = headings[column].getAttribute("aria-sort");
      // Of a figure, the largest come first.
      const rising = before === "none" ? !isNumber || keys[column] === "index" : before === "descending";
      const key = (node) => node.row.cells[column].dataset.sort;
      const compare = isNumber ? (a, b) => Number(a) - Number(b) : (a, b) => a.localeCompare(b, "en", { numeric: true });
      const order = (a, b) => {
        // What is not known comes last in both directions.
        if (key(a) === "" || key(b) === "") return (key(a) === "") - (key(b) === "");
        return rising ? compare(key(a), key(b)) : compare(key(b), key(a));
      };
      const flat = (nodes) => nodes.sort(order).flatMap((node) => [node.row, ...flat(node.children)]);
      table.tBodies[0].append(...flat(roots));
      headings.forEach((heading, index) => {
        heading.setAttribute("aria-sort", index !== column ? "none" : rising ? "ascending" : "descending");
      });
    }

    function openAll(isOpen) {
      for (const node of rows) node.isOpen = isOpen;
      show();
    }

    function reveal(row) {
      for (let node = byId.get(row.dataset.id); node; node = node.parent) node.isOpen = true;
      show();
      row.scrollIntoView({ block: "center" });
    }

    headings.forEach((heading, column) => {
      heading.querySelector("button").addEventListener("click", () => sortBy(column));
    });
    table.addEventListener("click", (event) => {
      const toggle = event.target.closest(".toggle");
      if (!toggle) return;
      const node = byId.get(toggle.closest("tr").dataset.id);
      node.isOpen = toggle.getAttribute("aria-expanded") !== "true";
      show();
    });
    search("");
    return { search, openAll, reveal };
  }

  const trees = new Map([...document.querySelectorAll("table.tree")].map((table) => [table.id, tree(table)]));

  const count = (number) => number.toLocaleString("en");
  for (const input of document.querySelectorAll("input[data-table]")) {
    input.addEventListener("input", () => {
      const [left, all] = trees.get(input.dataset.table).search(input.value);
      input.parentElement.querySelector("output").textContent = `${count(left)} of ${count(all)} operations`;
    });
  }
  for (const button of document.querySelectorAll("[data-open]")) {
    button.addEventListener("click", () => trees.get(button.dataset.open).openAll(true));
  }
  for (const button of document.querySelectorAll("[data-close]")) {
    button.addEventListener("click", () => trees.get(button.dataset.close).openAll(false));
  }

  function follow() {
    const target = document.getElementById(location.hash.slice(1));
    if (!target) return;
    if (target.matches(".tree tr")) trees.get(target.closest("table").id).reveal(target);
    if (target.matches("details")) target.open = true;
  }
  window.addEventListener("hashchange", follow);
  follow();
})();
