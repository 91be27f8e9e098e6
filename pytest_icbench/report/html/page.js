// SPDX-License-Identifier: BSD-3-Clause
// The script of the report's page: it draws charts from the page's data, writes their tables and files, and filters.
// Texts from results enter the document as text nodes only.
"use strict";
(function () {
  let page = null;
  let words = [];
  let observer = null;
  const drawn = new Map();

  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name === "class") node.className = value;
      else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }

  // -- the filter

  function matches(text) {
    const low = text.toLowerCase();
    return words.every((word) => low.includes(word));
  }

  function rowsOf(figure) {
    return words.length ? figure.rows.filter((row) => matches(figure.columns.map((_, at) => row[at]).join(" "))) : figure.rows;
  }

  function filterTable() {
    let shown = 0, all = 0;
    for (const body of document.querySelectorAll("#results-table tbody.results-table-row")) {
      const row = body.querySelector("tr.collapsible");
      if (!row) continue;
      const hidden = words.length > 0 && !matches(row.textContent);
      body.classList.toggle("ic-hidden", hidden);
      all += 1;
      shown += hidden ? 0 : 1;
    }
    const count = document.getElementById("ic-count");
    if (count) count.textContent = words.length ? `${shown} of ${all} rows` : "";
  }

  function setFilter(text) {
    words = text.toLowerCase().split(/\s+/).filter(Boolean);
    filterTable();
    fillCases();
    for (const [, entry] of drawn) {
      entry.stale = true;
      if (entry.visible && entry.box.open) draw(entry);
    }
  }

  // -- charts

  function records(figure, rows) {
    return rows.map((row) => Object.fromEntries(figure.columns.map(([name], at) => [name, row[at]])));
  }

  // Returns why a chart has nothing to draw.
  function missing(figure) {
    return figure.rows.length ? "No case in this chart matches the filter." : figure.empty || "There is no value to draw.";
  }

  function draw(entry) {
    entry.stale = false;
    const turn = entry.turn = (entry.turn || 0) + 1;
    const rows = rowsOf(entry.figure);
    if (entry.table.open) fillTable(entry);
    if (!rows.length || !window.icbenchVega) {
      entry.plot.replaceChildren(...(rows.length ? [] : [make("p", {}, missing(entry.figure))]));
      return Promise.resolve();
    }
    const width = Math.max(Math.floor(entry.plot.clientWidth), 240);
    const spec = Object.assign({}, page.specs[entry.figure.spec] || entry.figure.spec, {
      data: { values: records(entry.figure, rows) },
      width: width,
      autosize: { type: "fit-x", contains: "padding" },
    });
    spec.config = Object.assign({}, page.config);
    spec.config.legend = Object.assign({ columns: Math.max(1, Math.floor(width / 170)) }, spec.config.legend);
    const place = make("div", {});
    entry.width = width;
    const options = { mode: "vega-lite", renderer: "svg", actions: false, defaultStyle: false, hover: false, logLevel: 1 };
    return window.icbenchVega.embed(place, spec, options).then((chart) => {
      if (turn !== entry.turn) { chart.finalize(); return; }
      if (entry.chart) entry.chart.finalize();
      entry.chart = chart;
      entry.plot.replaceChildren(place);
    }).catch((error) => console.error("icbench chart:", entry.figure.id, error));
  }

  function show(value) {
    if (value === null || value === undefined) return "";
    return typeof value === "boolean" ? (value ? "yes" : "") : String(value);
  }

  function fillTable(entry) {
    const rows = rowsOf(entry.figure);
    const head = make("tr", {}, ...entry.figure.columns.map(([, title]) => make("th", { scope: "col" }, title)));
    const lines = rows.slice(0, 2000).map((row) =>
      make("tr", {}, ...row.map((value) => make("td", typeof value === "number" ? { class: "ic-n" } : {}, show(value)))));
    const table = make("table", { class: "ic" }, make("thead", {}, head), make("tbody", {}, ...lines));
    const cut = rows.length > 2000 ? [make("p", {}, `The first 2000 of ${rows.length} rows; the CSV has all.`)] : [];
    entry.tableBody.replaceChildren(...cut, table);
  }

  function save(name, type, text) {
    const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: type })), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function csv(figure) {
    const cell = (value) => {
      const text = show(value);
      return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
    };
    const lines = [figure.columns.map(([, title]) => cell(title)), ...rowsOf(figure).map((row) => row.map(cell))];
    return lines.map((line) => line.join(",")).join("\r\n") + "\r\n";
  }

  async function saveSvg(entry) {
    if (entry.stale || !entry.chart) await draw(entry);
    if (!entry.chart) return;
    const text = await entry.chart.view.toSVG();
    // A saved chart has no style sheet, so it takes the values after the commas.
    save(`${entry.figure.id}.svg`, "image/svg+xml", text.replace(/var\(--[\w-]+,\s*([^)]+)\)/g, "$1"));
  }

  function addFigure(figure, open) {
    const plot = make("div", { class: "ic-plot", role: "img", "aria-label": `${figure.title}. ${figure.text}` });
    const tableBody = make("div", { class: "ic-scroll", tabindex: "0", role: "region", "aria-label": `Data of ${figure.title}` });
    const table = make("details", {}, make("summary", {}, "Data as a table"), tableBody);
    const entry = { figure, plot, table, tableBody, chart: null, stale: true, visible: false, width: 0 };
    const tools = make("div", { class: "ic-tools" },
      make("button", { type: "button", class: "ic-csv", onclick: () => save(`${figure.id}.csv`, "text/csv", csv(figure)), "aria-label": `Save data of ${figure.title} as CSV` }, "Save CSV"));
    if (window.icbenchVega) {
      tools.append(make("button", { type: "button", class: "ic-svg", onclick: () => saveSvg(entry), "aria-label": `Save ${figure.title} as SVG` }, "Save SVG"));
    }
    const box = make("details", { class: "ic-figure", id: `ic-fig-${figure.id}` },
      make("summary", {}, figure.title), plot, make("p", { class: "ic-dim" }, figure.text), tools, table);
    box.open = open;
    entry.box = box;
    table.addEventListener("toggle", () => table.open && fillTable(entry));
    box.addEventListener("toggle", () => box.open && entry.stale && draw(entry));
    drawn.set(figure.id, entry);
    observer.observe(box);
    return box;
  }

  function seen(changes) {
    for (const change of changes) {
      const entry = [...drawn.values()].find((candidate) => candidate.box === change.target);
      if (!entry) continue;
      entry.visible = change.isIntersecting;
      if (entry.visible && entry.box.open && entry.stale) draw(entry);
    }
  }

  function drawRest() {
    return Promise.all([...drawn.values()].filter((entry) => entry.box.open && entry.stale).map(draw));
  }

  let resizing = 0;
  function resized() {
    clearTimeout(resizing);
    resizing = setTimeout(() => {
      for (const [, entry] of drawn) {
        if (!entry.chart || Math.abs(entry.plot.clientWidth - entry.width) < 8) continue;
        entry.stale = true;
        if (entry.visible && entry.box.open) draw(entry);
      }
    }, 150);
  }

  // -- one case: its facts and its windows over time

  function nameOf(result) {
    return `${result.test}: ${result.dimension}` + (result.test.includes(result.case) ? "" : ` of ${result.case}`);
  }

  function fillCases() {
    const select = document.getElementById("ic-case");
    if (!select) return;
    const chosen = select.value;
    const options = page.cases.map((result, at) => [result, at])
      .filter(([result]) => matches(`${result.test} ${result.case} ${result.verdict}`))
      .map(([result, at]) => make("option", { value: at }, nameOf(result)));
    select.replaceChildren(...options);
    if (options.some((option) => option.value === chosen)) select.value = chosen;
    else showCase();
  }

  function windowRows(result) {
    const rows = [];
    result.windows.launches.forEach(([index, start, step, points], at) => {
      const disturbed = new Set(result.windows.disturbed[at]);
      points.forEach((value, place) => {
        if (value === null) return;
        const seconds = Math.round((start + (place + 0.5) * step) * 1e4) / 1e4;
        const shown = result.windows.unit === "kpps" ? value / 1e3 : value;
        rows.push([result.case, index, seconds, shown, disturbed.has(place)]);
      });
    });
    return rows;
  }

  function windowFigure(result, at) {
    const unit = result.windows.unit === "kpps" ? "received, Mpps" : "median RTT, µs";
    const template = page.windows;
    const spec = JSON.parse(JSON.stringify(template.spec).replaceAll("@unit", unit)
      .replaceAll('"@low"', JSON.stringify(result.low)).replaceAll('"@high"', JSON.stringify(result.high))
      .replaceAll('"@value"', JSON.stringify(result.value)));
    return {
      id: `windows-${at}`, kind: "windows", title: `Windows over time: ${result.case}`,
      text: `One point a window, a line a launch; crosses are windows in which the host took time from an endpoint. ${result.band}`,
      spec: spec, columns: template.columns.map(([name, title]) => [name, title.replace("@unit", unit)]), rows: windowRows(result),
      empty: result.windows.unit === "kpps" ? "" : "Fewer than 20 answers a window: no medians.",
    };
  }

  function showCase() {
    const select = document.getElementById("ic-case");
    const place = document.getElementById("ic-case-body");
    const result = page.cases[select.value];
    for (const id of [...drawn.keys()].filter((key) => key.startsWith("windows-"))) {
      observer.unobserve(drawn.get(id).box);
      drawn.delete(id);
    }
    place.replaceChildren();
    if (!result) return;
    const facts = make("dl", { class: "ic-facts" });
    for (const [name, value] of result.facts) facts.append(make("dt", {}, name), make("dd", {}, value));
    place.append(facts);
    if (result.windows) place.append(addFigure(windowFigure(result, select.value), true));
    else place.append(make("p", { class: "ic-dim" }, "No windows of this case were kept."));
    for (const figure of result.charts) place.append(addFigure(Object.assign({}, figure, { id: `windows-${figure.id}` }), true));
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

  // -- keyboards and screen readers, which pytest-html does not support

  function improve() {
    document.documentElement.lang = "en";
    document.head.append(make("meta", { name: "viewport", content: "width=device-width, initial-scale=1" }));
    for (const box of document.querySelectorAll("input.filter")) {
      const text = box.nextElementSibling;
      if (text) box.setAttribute("aria-label", `show ${text.textContent.replace(",", "").trim()}`);
    }
    const environment = document.getElementById("environment-header");
    if (environment) environment.click();  // it is long and rarely read first, so it starts folded
    asButtons();
    document.addEventListener("click", pressed, true);
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      const button = event.target.closest(".ic-button, .logexpander");
      if (!button) return;
      event.preventDefault();
      button.click();
    });
  }

  // A heading or cell that pytest-html makes clickable gets a button, which the keyboard can reach.
  function buttonIn(outer) {
    const first = outer.firstElementChild;
    if (first && first.classList.contains("ic-button")) return first;
    const button = make("span", { class: "ic-button", role: "button", tabindex: "0" }, ...outer.childNodes);
    outer.append(button);
    return button;
  }

  function asButtons() {
    const header = document.getElementById("environment-header");
    for (const head of document.querySelectorAll("#environment-header h2")) {
      buttonIn(head).setAttribute("aria-expanded", !header.classList.contains("collapsed"));
    }
    for (const head of document.querySelectorAll("#results-table th.sortable")) {
      buttonIn(head);
      const order = head.classList;
      head.setAttribute("aria-sort", order.contains("asc") ? "ascending" : order.contains("desc") ? "descending" : "none");
    }
    for (const cell of document.querySelectorAll("#results-table tr.collapsible > td.col-result")) {
      buttonIn(cell).setAttribute("aria-expanded", !cell.classList.contains("collapsed"));
    }
    for (const log of document.querySelectorAll(".logexpander")) {
      log.tabIndex = 0;
      log.setAttribute("role", "button");
      log.setAttribute("aria-label", "whole log");
      log.setAttribute("aria-expanded", log.parentNode.classList.contains("expanded"));
    }
    for (const button of document.querySelectorAll("button.ic-show:not([aria-label])")) {
      button.setAttribute("aria-label", `windows of ${nameOf(page.cases[button.dataset.place])}`);
    }
  }

  function pressed(event) {
    const log = event.target.closest && event.target.closest(".logexpander");
    if (log) setTimeout(asButtons);  // after pytest-html's own listener
    const button = event.target.closest && event.target.closest(".ic-button");
    if (!button) return;
    event.stopPropagation();  // pytest-html looks at the clicked element, which has to be the button's parent
    const outer = button.parentElement;
    const row = outer.closest("tr.collapsible");
    outer.click();
    asButtons();  // pytest-html has replaced the row
    const now = row && row.dataset.id ? document.querySelector(`tr[data-id="${row.dataset.id}"] .col-result .ic-button`) : button;
    if (now) now.focus();
  }

  function watchTable() {
    // pytest-html replaces the table whenever it sorts or filters.
    new MutationObserver((changes) => {
      if (changes.some((change) => [...change.addedNodes].some((node) => node.id === "results-table"))) {
        filterTable();
        asButtons();
      }
    }).observe(document.body, { childList: true });
  }

  function start() {
    page = JSON.parse(document.getElementById("ic-data").textContent);
    observer = new IntersectionObserver(seen, { rootMargin: "200px" });
    for (const section of page.sections) {
      const grid = make("div", { class: "ic-figures" }, ...section.charts.map((figure, at) => addFigure(figure, at < 4)));
      document.getElementById("ic-figures").append(make("section", { "aria-label": section.heading }, make("h3", {}, section.heading), grid));
    }
    const filter = document.getElementById("ic-filter");
    let typing = 0;
    filter.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => setFilter(filter.value), 120); });
    document.getElementById("ic-case").addEventListener("change", showCase);
    document.addEventListener("click", chooseCase, true);
    window.addEventListener("resize", resized);
    window.addEventListener("beforeprint", drawRest);
    improve();
    watchTable();
    fillCases();
    const later = window.requestIdleCallback || ((run) => setTimeout(run, 500));
    later(() => drawRest().then(() => { document.documentElement.dataset.icReady = "yes"; }));
  }

  document.addEventListener("DOMContentLoaded", start);
})();
