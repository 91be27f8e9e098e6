// SPDX-License-Identifier: BSD-3-Clause
// Cases of the page: the rows of pytest-html's table, their index and links, and one case with its windows.
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
      const button = make("button", { class: "ic-show", "data-place": result.place, "aria-label": `windows of ${nameOf(result)}` }, "windows");
      return make("li", { id: result.anchor }, name, ...parts, " ", button);
    }));
  }

  function filterTable() {
    let shown = 0, all = 0, fitting = 0;
    for (const body of document.querySelectorAll("#results-table tbody.results-table-row")) {
      const row = body.querySelector("tr.collapsible");
      if (!row) continue;
      const fits = !words.length || matches([row.textContent, ...results(body).map(said)].join(" "));
      all += 1;
      fitting += fits ? 1 : 0;
      const hidden = !fits || fitting > most;
      body.classList.toggle("ic-hidden", hidden);
      shown += hidden ? 0 : 1;
      if (!hidden) fillLines(body);
    }
    document.getElementById("ic-count").textContent = words.length || shown < all ? `${shown} of ${all} rows` : "";
    const more = document.getElementById("ic-more-rows");
    if (more) more.classList.toggle("ic-hidden", fitting <= most);
    const links = document.querySelector("#results-table .col-links a");
    const table = document.getElementById("results-table");
    if (table) table.classList.toggle("ic-no-links", !links);
  }

  function moreRows() {
    const button = (text, number) => make("button", { type: "button", onclick: () => { most = number(); filterTable(); } }, text);
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

  // -- the index: links to all cases, by path; filled when it is opened

  function fillIndex() {
    const index = document.getElementById("ic-index");
    const paths = new Map();
    page.cases.forEach((result) => paths.set(result.path, [...(paths.get(result.path) || []), result]));
    const groups = [...paths].map(([path, results]) => {
      const list = make("ul", { class: "ic-links" });
      const group = make("details", {}, make("summary", {}, `${path} (${results.length})`), list);
      const fill = () => list.childElementCount || list.append(...results.map(link));
      group.addEventListener("toggle", fill);
      if (page.cases.length <= 60) { group.open = true; fill(); }
      return group;
    });
    index.append(...groups);
  }

  function link(result) {
    const tail = result.case.startsWith(`${result.path}-`) ? result.case.slice(result.path.length + 1) : result.case;
    const verdict = !page.plain.includes(result.verdict) ? [" ", make("b", {}, result.verdict)] : [];
    return make("li", {}, make("a", { href: `#${result.anchor}` }, `${tail}, ${result.dimension}`), ...verdict);
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
    fillIndex();
    filterTable();
    fillCases();
  }

  return { start, filterTable, reveal, moreRows, nameOf };
})();
