// SPDX-License-Identifier: BSD-3-Clause
// Cases of the page: the table of all of them, the rows of pytest-html's table, and one case with its windows.
"use strict";
const icCases = (function () {
  const { make, matches } = icCharts;
  //: Number of rows that are shown at once: a browser takes long to lay out thousands.
  const ROWS = 200;
  let page = null;
  let words = [];
  let most = ROWS;
  const places = new Map();  // of cases by their anchors

  function nameOf(result) {
    return `${result.test}: ${result.dimension}` + (result.test.includes(result.case) ? "" : ` of ${result.case}`);
  }

  // -- the table: rows that are shown get the lines of their results, since thousands would take long

  function results(body) {
    const list = body.querySelector(".ic-lines");
    return list ? list.dataset.places.split(",").map((place) => page.cases[place]) : [];
  }

  function said(result) {
    return [result.verdict || "not judged", ...result.line].join(" · ");
  }

  function fillLines(body) {
    const list = body.querySelector(".ic-lines");
    if (!list || list.childElementCount) return;
    const own = results(body);
    const several = new Set(own.map((result) => result.case)).size > 1;
    list.append(...own.map((result) => {
      const verdict = result.verdict || "not judged";
      const parts = [make("b", { class: `ic-${verdict.replace(/\W/g, "")}` }, verdict), ...result.line.map((part) => ` · ${part}`)];
      const name = `${result.dimension}${several ? ` of ${result.case}` : ""}: `;
      return make("li", { id: result.anchor }, name, ...parts);
    }));
  }

  function filterTable() {
    let fitting = 0;
    for (const body of document.querySelectorAll("#results-table tbody.results-table-row")) {
      const row = body.querySelector("tr.collapsible");
      if (!row) continue;
      const fits = !words.length || matches([row.textContent, ...results(body).map(said)].join(" "));
      fitting += fits ? 1 : 0;
      const hidden = !fits || fitting > most;
      body.classList.toggle("ic-hidden", hidden);
      if (!hidden) fillLines(body);
    }
    const links = document.querySelector("#results-table .col-links a");
    const table = document.getElementById("results-table");
    if (table) table.classList.toggle("ic-no-links", !links);
  }

  function moreRows() {
    const button = (text, number) => make("button", { type: "button", onclick: () => { most = number(); fillTable(); filterTable(); } }, text);
    return make("div", { id: "ic-more-rows", class: "ic-tools ic-hidden" },
      button(`Show ${ROWS} more rows`, () => most + ROWS), button("Show all rows", () => Infinity));
  }

  function bodyOf(place) {
    const list = [...document.querySelectorAll("#results-table .ic-lines")].find((one) => one.dataset.places.split(",").includes(String(place)));
    return list && list.closest("tbody");
  }

  // Shows the place that the address names, even if its row is not shown yet.
  function reveal() {
    const id = decodeURIComponent(location.hash.slice(1));
    const body = places.has(id) && bodyOf(places.get(id));
    if (body && body.classList.contains("ic-hidden")) {
      if (words.length) {
        document.getElementById("ic-filter").value = "";
        setFilter("");
      }
      const rows = [...document.querySelectorAll("#results-table tbody.results-table-row")];
      most = Math.max(most, rows.indexOf(body) + 1);
      filterTable();
    }
    const node = id && document.getElementById(id);
    if (!node) return;
    for (const other of document.querySelectorAll(".ic-target")) other.classList.remove("ic-target");
    if (body) node.classList.add("ic-target");  // a line that is made later is no target of the browser
    for (let box = node.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    node.scrollIntoView({ block: "start" });
  }

  // -- the table of all cases: it sorts by a click on a head, and has the rows that the filter leaves

  const HEADS = ["Case", "Value", "Unit", "95 %", "Change", "Limit by", "Verdict"];
  const NUMBERS = ["Value", "95 %", "Change"];
  let sorted = { column: -1, down: false };

  function cellsOf(result) {
    const apart = result.apart ? ` (${result.apart})` : "";
    return [`${result.case}${apart}`, ...result.cells, result.verdict || "not judged"];
  }

  // Returns what a column is sorted by: the number of a value within its unit, else the text with its numbers as such.
  function compare(one, other) {
    const { column } = sorted;
    const [first, second] = [one, other].map((result) => cellsOf(result)[column]);
    if (HEADS[column] !== "Value") return first.localeCompare(second, "en", { numeric: true });
    const unit = one.cells[1].localeCompare(other.cells[1]);
    return unit || (one.value ?? -Infinity) - (other.value ?? -Infinity);
  }

  function sortBy(column) {
    sorted = { column, down: sorted.column === column && !sorted.down };
    fillTable();
    document.querySelector("#ic-table th:not([aria-sort=none]) button").focus();
  }

  function fillTable() {
    const fitting = page.cases.filter((result) => matches([...cellsOf(result), result.test, ...result.line].join(" ")));
    if (sorted.column >= 0) fitting.sort((one, other) => (sorted.down ? -1 : 1) * compare(one, other));
    const shown = fitting.slice(0, most);
    const kept = HEADS.map((_, column) => column).filter((column) => page.cases.some((result) => cellsOf(result)[column]));
    const look = (column) => (NUMBERS.includes(HEADS[column]) ? { class: "ic-n" } : {});
    const heads = kept.map((column) => make("th", {
      ...look(column), scope: "col", "aria-sort": column !== sorted.column ? "none" : sorted.down ? "descending" : "ascending",
    }, make("button", { type: "button", onclick: () => sortBy(column) }, HEADS[column])));
    const rows = shown.map((result) => {
      const texts = cellsOf(result);
      const verdict = texts[texts.length - 1];
      const button = make("button", { class: "ic-show", "data-place": result.place, "aria-label": `details of ${nameOf(result)}` }, "details");
      return make("tr", {}, make("td", {}, make("a", { href: `#${result.anchor}` }, texts[0])),
        ...kept.slice(1, -1).map((column) => make("td", look(column), texts[column])),
        make("td", { class: `ic-${verdict.replace(/\W/g, "")}` }, verdict), make("td", {}, button));
    });
    document.getElementById("ic-table").replaceChildren(make("thead", {}, make("tr", {}, ...heads, make("td", {}))), make("tbody", {}, ...rows));
    const all = page.cases.length;
    document.getElementById("ic-count").textContent = words.length || shown.length < all ? `${shown.length} of ${all} cases` : "";
    document.getElementById("ic-more-rows").classList.toggle("ic-hidden", fitting.length <= most);
  }

  // -- one case: its facts and its windows over time

  function fillCases() {
    const select = document.getElementById("ic-case");
    const chosen = select.value;
    const options = page.cases.map((result, at) => [result, at])
      .filter(([result]) => matches(`${result.test} ${result.case} ${result.verdict}`))
      .map(([result, at]) => make("option", { value: at }, nameOf(result)));
    select.replaceChildren(...options);
    if (options.some((option) => option.value === chosen)) select.value = chosen;
    else showCase();
  }

  function windowRows(result, windows) {
    const rows = [];
    windows.launches.forEach(([index, start, step, points], at) => {
      const disturbed = new Set(windows.disturbed[at] || []);
      icCharts.unpacked(points).forEach((value, place) => {
        if (value === null) return;
        const seconds = Math.round((start + (place + 0.5) * step) * 1e4) / 1e4;
        const shown = windows.unit === "kpps" ? value / 1e3 : value;
        rows.push([result.case, index, seconds, shown, disturbed.has(place)]);
      });
    });
    return rows;
  }

  function windowFigure(result, windows, at) {
    const unit = windows.unit === "kpps" ? "received, Mpps" : "median RTT, µs";
    const template = page.windows;
    const spec = JSON.parse(JSON.stringify(page.specs[template.spec]).replaceAll("@unit", unit)
      .replaceAll('"@low"', JSON.stringify(result.low)).replaceAll('"@high"', JSON.stringify(result.high))
      .replaceAll('"@value"', JSON.stringify(result.value)));
    const rows = windowRows(result, windows);
    const disturbed = rows.filter((row) => row[4]).length;
    const crosses = disturbed ? ` Crosses: the host took time from an endpoint (${disturbed} of ${rows.length}).` : "";
    const reaches = result.search ? "reaches to the relevant upper bound" : "is its interval";
    const band = result.low === null ? "" : `The line across is the value, the band ${reaches}.`;
    const text = `A point is a window, a line a launch.${crosses} ${band}`;
    return Object.assign({}, template, {
      id: `windows-${at}`, title: `Windows over time: ${result.case}`, text, aria: text,
      spec, columns: template.columns.map(([name, title]) => [name, title.replace("@unit", unit)]), rows,
      empty: windows.unit === "kpps" ? "" : "Fewer than 20 answers a window: no medians.",
    });
  }

  function showCase() {
    const select = document.getElementById("ic-case");
    const place = document.getElementById("ic-case-body");
    const result = page.cases[select.value];
    icCharts.removeCharts("windows-");
    place.replaceChildren();
    if (!result) return;
    const facts = make("dl", { class: "ic-facts" });
    for (const [name, value] of result.facts) facts.append(make("dt", {}, name), make("dd", {}, value));
    place.append(make("p", {}, make("a", { href: `#${result.anchor}` }, "Its row in the table")), facts);
    const windows = page.series[select.value];
    const charts = [...(windows ? [windowFigure(result, windows, select.value)] : []),
      ...result.charts.map((figure) => Object.assign({}, figure, { id: `windows-${figure.id}` }))];
    if (!windows) place.append(make("p", { class: "ic-dim" }, "No windows of this case were kept."));
    for (const figure of charts) place.append(icCharts.addChart(icCharts.alone([figure]), figure, true));
  }

  function chooseCase(event) {
    const button = event.target.closest && event.target.closest(".ic-show");
    if (!button) return;
    event.stopPropagation();  // pytest-html folds a row on any click in it
    event.preventDefault();
    const select = document.getElementById("ic-case");
    select.value = button.dataset.place;
    showCase();
    const section = document.getElementById("ic-one-case");
    section.scrollIntoView({ block: "start" });
    section.focus();
  }

  function setFilter(text) {
    words = text.toLowerCase().split(/\s+/).filter(Boolean);
    icCharts.setWords(words);
    fillTable();
    filterTable();
    fillCases();
  }

  function start(data) {
    page = data;
    page.cases.forEach((result, place) => {
      const anchor = result.anchor || `case-${result.dimension}-${result.case}`.replaceAll(" ", "_");
      Object.assign(result, { place, anchor, charts: icCharts.unpack(result.charts || []) });
      places.set(anchor, place);
    });
    const filter = document.getElementById("ic-filter");
    let typing = 0;
    filter.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => setFilter(filter.value), 120); });
    document.getElementById("ic-case").addEventListener("change", showCase);
    document.addEventListener("click", chooseCase, true);
    window.addEventListener("hashchange", reveal);
    fillTable();
    filterTable();
    fillCases();
  }

  return { start, filterTable, reveal, moreRows, nameOf };
})();
