"use strict";
(() => {
  function sortBy(table, column) {
    const headings = [...table.tHead.rows[0].cells];
    const rising = headings[column].getAttribute("aria-sort") !== "ascending";
    const isNumber = headings[column].classList.contains("number");
    const key = (row) => row.cells[column].dataset.sort;
    const compare = isNumber
      ? (a, b) => Number(a) - Number(b)
      : (a, b) => a.localeCompare(b, "en", { numeric: true });
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => {
      // What is not known comes last in both directions.
      if (key(a) === "" || key(b) === "") return (key(a) === "") - (key(b) === "");
      return rising ? compare(key(a), key(b)) : compare(key(b), key(a));
    });
    table.tBodies[0].append(...rows);
    headings.forEach((heading, index) => {
      heading.setAttribute("aria-sort", index !== column ? "none" : rising ? "ascending" : "descending");
    });
  }

  function search(input) {
    const rows = [...document.getElementById(input.dataset.table).tBodies[0].rows];
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    const count = (number) => number.toLocaleString("en");
    input.parentElement.querySelector("output").textContent = `${count(shown)} of ${count(rows.length)} rows`;
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      heading.querySelector("button").addEventListener("click", () => sortBy(table, column));
    });
  }
  for (const input of document.querySelectorAll("input[data-table]")) {
    input.addEventListener("input", () => search(input));
  }
})();
