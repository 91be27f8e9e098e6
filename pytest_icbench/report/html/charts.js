// SPDX-License-Identifier: BSD-3-Clause
// Charts of the page: their scales, which a section shares, legends that hide series, tables and files.
// Texts from results enter the document as text nodes only.
"use strict";
const icCharts = (function () {
  //: Number of listed charts of a section; one line unfolds the rest.
  const LISTED = 12;
  let page = null;
  let observer = null;
  let words = [];
  const drawn = new Map();
  const shapes = {
    circle: "M11 6A5 5 0 1 1 1 6A5 5 0 1 1 11 6Z", square: "M1 1H11V11H1Z", "triangle-up": "M6 1L11 11H1Z",
    diamond: "M6 0L11 6L6 12L1 6Z", cross: "M4 1H8V4H11V8H8V11H4V8H1V4H4Z", "triangle-down": "M1 1H11L6 11Z",
    "triangle-left": "M11 1L1 6L11 11Z",
  };

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

  function matches(text) {
    const low = text.toLowerCase();
    return words.every((word) => low.includes(word));
  }

  // -- data: it comes by column, in runs where values repeat

  function unpacked(column) {
    if (Array.isArray(column)) return column;
    const values = [];
    for (let at = 0; at < column.runs.length; at += 2) {
      for (let left = column.runs[at + 1]; left; left -= 1) values.push(column.runs[at]);
    }
    return values;
  }

  function unpack(figures) {
    for (const figure of figures) {
      const columns = figure.rows.map(unpacked);
      figure.rows = (columns[0] || []).map((_, at) => columns.map((column) => column[at]));
    }
    return figures;
  }

  function indexOf(figure, name) {
    return figure.columns.findIndex((column) => column[0] === name);
  }

  function visible(section, figure) {
    const series = indexOf(figure, "series");
    return series < 0 || !section.hidden.size ? figure.rows : figure.rows.filter((row) => !section.hidden.has(row[series]));
  }

  function rowsOf(entry) {
    const rows = visible(entry.section, entry.figure);
    return words.length ? rows.filter((row) => matches(row.join(" "))) : rows;
  }

  // Returns the columns that are drawn as the figure's values: those of the choice.
  function chosen(section, figure) {
    const choice = figure.choices.find(([name]) => name === section.choice);
    return choice ? choice[1] : figure.values;
  }

  function records(section, figure, rows) {
    const columns = chosen(section, figure);
    return rows.map((row) => {
      const record = Object.fromEntries(figure.columns.map(([name], at) => [name, row[at]]));
      figure.values.forEach((name, at) => { record[name] = row[indexOf(figure, columns[at])]; });
      return record;
    });
  }

  // -- scales: one for all charts of a section with the same unit

  function unitOf(figure) {
    const at = indexOf(figure, figure.values[0]);
    return at < 0 ? "" : figure.columns[at][1].split(", ").pop();
  }

  function scaleOf(section, unit) {
    let least = Infinity, greatest = 0, zero = false;
    for (const figure of section.charts) {
      if (!figure.values.length || unitOf(figure) !== unit) continue;
      const places = chosen(section, figure).map((name) => indexOf(figure, name));
      const source = indexOf(figure, "source");
      for (const row of visible(section, figure)) {
        if (source >= 0 && row[source] !== page.measured) continue;
        for (const at of places) {
          const value = row[at];
          if (typeof value !== "number") continue;
          if (value > 0) { least = Math.min(least, value); greatest = Math.max(greatest, value); } else zero = true;
        }
      }
    }
    const kind = section.kind || (!zero && greatest / least > page.log_ratio ? "log" : "linear");
    if (!greatest) return { kind: "linear", scale: { type: "linear", domain: [0, 1] } };
    if (kind === "log") return { kind, scale: { type: "log", domain: [least / 1.25, greatest * 1.25], nice: false } };
    return { kind, scale: { type: "linear", domain: [0, round(greatest * 1.04)], nice: false, zero: true } };
  }

  // The next round number, a tick of about ten: what is drawn has to know where the scale ends.
  function round(value) {
    const power = 10 ** Math.floor(Math.log10(value / 10));
    const step = [1, 2, 5, 10].find((each) => value <= 10 * Math.SQRT2 * each * power) * power;
    return Number((Math.ceil(value / step) * step).toPrecision(12));
  }

  function ticks([least, greatest]) {
    const decades = Math.log10(greatest / least);
    const steps = decades < 1.2 ? [1, 1.5, 2, 3, 5, 7] : decades < 2.2 ? [1, 2, 5] : decades < 4.5 ? [1, 3] : [1];
    const values = [];
    for (let power = Math.floor(Math.log10(least)); power <= Math.log10(greatest); power += 1) {
      for (const step of steps) values.push(Number(`${step}e${power}`));
    }
    return values.filter((value) => value >= least && value <= greatest);
  }

  // Fills in what a specification leaves open: the section's scale, what titles say about it, and legends.
  function filled(value, shared, titles, legend) {
    if (Array.isArray(value)) return value.map((item) => filled(item, shared, titles, legend));
    if (typeof value === "string") {
      const text = titles.reduce((old, [before, after]) => old.replace(before, after), value);
      return text.endsWith("@kind") ? text.slice(0, -5) + (shared.kind === "log" ? " (logarithmic)" : "") : text;
    }
    if (value === null || typeof value !== "object") return value;
    const copy = Object.fromEntries(Object.entries(value).filter(([name]) => name !== "@scale")
      .map(([name, item]) => [name, name === "legend" && !legend ? null : filled(item, shared, titles, legend)]));
    if ("@scale" in value) return Object.assign({}, shared.scale, copy);
    // The axis of a logarithmic scale: its own ticks are many, and few of them have room for a label.
    if (value.axis && value.scale && "@scale" in value.scale && shared.kind === "log") copy.axis.values = ticks(shared.scale.domain);
    return copy;
  }

  function specOf(entry, rows, width, legend) {
    const { section, figure } = entry;
    const shared = scaleOf(section, unitOf(figure));
    const columns = chosen(section, figure);
    const titles = figure.values.map((name, at) => [name, columns[at]]).filter(([before, after]) => before !== after)
      .map((names) => names.map((name) => figure.columns[indexOf(figure, name)][1]));
    const spec = filled(typeof figure.spec === "number" ? page.specs[figure.spec] : figure.spec, shared, titles, legend);
    // Measured values determine the scale. Published values outside of it are counted, not drawn.
    const source = indexOf(figure, "source");
    const [least, greatest] = shared.scale.domain;
    const places = figure.values.map((name) => indexOf(figure, name));
    const drawn = rows.filter((row) => source < 0 || row[source] === page.measured
      || places.every((at) => typeof row[at] !== "number" || (row[at] >= least && row[at] <= greatest)));
    entry.outside = rows.length - drawn.length;
    spec.data = { values: records(section, figure, drawn) };
    spec.width = width;
    spec.height = figure.height;
    spec.autosize = { type: "fit-x", contains: "padding" };
    spec.config = Object.assign({}, page.config);
    spec.config.legend = Object.assign({ columns: Math.max(1, Math.floor(width / 170)) }, spec.config.legend);
    return spec;
  }

  // -- charts that are markup

  // Returns the path under test as a list: stations, and arrows with what passes between them.
  function pathList(figure, rows) {
    const [kind, title, detail, busy, limit] = ["kind", "title", "detail", "busy", "limit"].map((name) => indexOf(figure, name));
    return make("ol", { class: "ic-path", role: "list" }, ...rows.map((row) => {
      const item = make("li", { class: `ic-path-${row[kind]}` }, make("span", { class: "ic-path-title" }, row[title]));
      if (row[limit]) {
        item.classList.add("ic-path-limit");
        item.append(make("strong", {}, "\u25c0 the limit"));
      }
      if (row[detail]) item.append(make("span", { class: "ic-path-detail" }, row[detail]));
      if (row[busy] !== null) {
        const bar = make("span", { class: "ic-path-bar", "aria-hidden": "true" }, make("span", {}));
        bar.firstChild.style.width = `${100 * row[busy]}%`;
        item.append(make("span", { class: "ic-path-busy" }, `busy ${Number((100 * row[busy]).toPrecision(3))} %`, bar));
      }
      return item;
    }));
  }

  //: Charts that are markup instead of a drawing, by their kind.
  const MARKUP = { path: pathList };

  // Saves markup as a page with the rules that it needs.
  function saveMarkup(entry) {
    const saved = document.implementation.createHTMLDocument(entry.figure.title);
    const rules = [...document.styleSheets].filter((sheet) => !sheet.href).flatMap((sheet) => [...sheet.cssRules])
      .map((rule) => rule.cssText).filter((text) => /^body|--ic-paper|\.ic-path/.test(text));
    const list = MARKUP[entry.figure.kind](entry.figure, rowsOf(entry));
    saved.head.append(make("meta", { charset: "utf-8" }), make("style", {}, rules.join("\n")));
    saved.body.append(make("h1", {}, entry.figure.title), list, make("p", {}, entry.figure.text));
    save(`${entry.figure.id}.html`, "text/html", `<!doctype html>\n${saved.documentElement.outerHTML}\n`);
  }

  // -- drawing

  function missing(entry) {
    if (!entry.figure.rows.length) return entry.figure.empty || "There is no value to draw.";
    return words.length ? "No case in this chart matches the filter." : "All series are hidden: choose one in the legend.";
  }

  const OPTIONS = { mode: "vega-lite", renderer: "svg", actions: false, defaultStyle: false, hover: false, logLevel: 1 };

  function draw(entry) {
    entry.stale = false;
    const turn = entry.turn = (entry.turn || 0) + 1;
    const rows = rowsOf(entry);
    if (entry.table.open) fillTable(entry);
    const markup = MARKUP[entry.figure.kind];
    if (!rows.length || markup || !window.icbenchVega) {
      const shown = rows.length ? (markup ? [markup(entry.figure, rows)] : []) : [make("p", {}, missing(entry))];
      entry.plot.replaceChildren(...shown);
      return Promise.resolve();
    }
    const width = Math.max(Math.floor(entry.plot.clientWidth), 240);
    const place = make("div", {});
    entry.width = width;
    const spec = specOf(entry, rows, width, !entry.legend);
    return window.icbenchVega.embed(place, spec, OPTIONS).then((chart) => {
      if (turn !== entry.turn) { chart.finalize(); return; }
      if (entry.chart) entry.chart.finalize();
      entry.chart = chart;
      for (const svg of place.querySelectorAll("svg")) svg.setAttribute("aria-hidden", "true");
      entry.plot.replaceChildren(place);
      entry.note.textContent = entry.figure.text + (entry.outside ? ` ${entry.outside} published beyond the scale.` : "");
    }).catch((error) => console.error("icbench chart:", entry.figure.id, error));
  }

  function redraw(entries) {
    for (const entry of entries) {
      entry.stale = true;
      if (entry.visible && entry.box.open) draw(entry);
    }
  }

  function drawRest() {
    return Promise.all([...drawn.values()].filter((entry) => entry.box.open && entry.stale).map(draw));
  }

  // -- a chart's table, legend and files

  function show(value) {
    if (value === null || value === undefined) return "";
    return typeof value === "boolean" ? (value ? "yes" : "") : String(value);
  }

  function fillTable(entry) {
    const rows = rowsOf(entry);
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

  function csv(entry) {
    const cell = (value) => {
      const text = show(value);
      return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
    };
    const lines = [entry.figure.columns.map(([, title]) => cell(title)), ...rowsOf(entry).map((row) => row.map(cell))];
    return lines.map((line) => line.join(",")).join("\r\n") + "\r\n";
  }

  async function saveSvg(entry) {
    const rows = rowsOf(entry);
    if (!rows.length) return;
    // The page's own legend is not in the chart, so it is drawn once more with one.
    const chart = await window.icbenchVega.embed(make("div", {}), specOf(entry, rows, entry.width || 700, true), OPTIONS);
    const text = await chart.view.toSVG();
    chart.finalize();
    // A saved chart has no style sheet, so it takes the values after the commas.
    save(`${entry.figure.id}.svg`, "image/svg+xml", text.replace(/var\(--[\w-]+,\s*([^)]+)\)/g, "$1"));
  }

  function symbol(series) {
    const [colour, shape] = page.looks[series];
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    for (const [name, value] of [["width", "12"], ["height", "12"], ["aria-hidden", "true"]]) svg.setAttribute(name, value);
    path.setAttribute("d", shapes[shape]);
    path.style.fill = colour;
    svg.append(path);
    return svg;
  }

  function hide(section, series) {
    if (!section.hidden.delete(series)) section.hidden.add(series);
    for (const button of section.node.querySelectorAll(".ic-legend button")) {
      button.setAttribute("aria-pressed", String(!section.hidden.has(button.dataset.series)));
    }
    redraw(section.entries);
  }

  // The legend: a button for each series, which hides it in all charts of the section.
  function legendOf(section, figure) {
    const at = indexOf(figure, "series");
    const series = at < 0 ? [] : [...new Set(figure.rows.map((row) => row[at]))].filter((name) => page.looks[name]);
    if (section.place === "first" || !series.length || !section.node) return null;
    const buttons = series.map((name) => make("button", {
      type: "button", "aria-pressed": "true", "data-series": name, onclick: () => hide(section, name),
    }, symbol(name), ` ${name}`));
    return make("div", { class: "ic-legend", role: "group", "aria-label": `Paths in ${figure.title}` }, ...buttons);
  }

  function addChart(section, figure, open) {
    // A picture hides what is in it from screen readers; markup is read.
    const role = figure.kind in MARKUP ? "group" : "img";
    const plot = make("div", { class: "ic-plot", role, "aria-label": `${figure.title}. ${figure.aria}` });
    const tableBody = make("div", { class: "ic-scroll", tabindex: "0", role: "group", "aria-label": `Data of ${figure.title}` });
    const table = make("details", { class: "ic-data" }, make("summary", {}, "Data as a table"), tableBody);
    const note = make("p", { class: "ic-dim ic-caption" }, figure.text);
    const entry = { section, figure, plot, table, tableBody, note, chart: null, stale: true, visible: false, width: 0 };
    entry.legend = legendOf(section, figure);
    const tools = make("div", { class: "ic-tools" },
      make("button", { type: "button", class: "ic-csv", onclick: () => save(`${figure.id}.csv`, "text/csv", csv(entry)), "aria-label": `Save CSV of ${figure.title}` }, "Save CSV"));
    const file = figure.kind in MARKUP ? "HTML" : window.icbenchVega ? "SVG" : "";
    if (file) {
      tools.append(make("button", {
        type: "button", class: `ic-${file.toLowerCase()}`, onclick: () => (file === "SVG" ? saveSvg : saveMarkup)(entry),
        "aria-label": `Save ${file} of ${figure.title}`,
      }, `Save ${file}`));
    }
    const more = make("details", { class: "ic-more" }, make("summary", {}, "Data and files"), tools, table);
    const box = make("details", { class: "ic-figure", id: `ic-fig-${figure.id}` },
      make("summary", {}, figure.title), plot, ...(entry.legend ? [entry.legend] : []), note, more);
    box.open = open;
    entry.box = box;
    table.addEventListener("toggle", () => table.open && fillTable(entry));
    box.addEventListener("toggle", () => box.open && entry.stale && draw(entry));
    drawn.set(figure.id, entry);
    section.entries.push(entry);
    observer.observe(box);
    return box;
  }

  function removeCharts(start) {
    for (const [id, entry] of drawn) {
      if (!id.startsWith(start)) continue;
      observer.unobserve(entry.box);
      drawn.delete(id);
    }
  }

  // -- sections

  function selector(section, label, options, chosenNow, change) {
    const select = make("select", { onchange: () => { change(select.value); redraw(section.entries); } },
      ...options.map(([value, text]) => make("option", { value }, text)));
    select.value = chosenNow;
    return make("label", {}, `${label} `, select);
  }

  function addSection(section, open) {
    Object.assign(section, { hidden: new Set(), kind: "", choice: "", entries: [] });
    const id = `ic-${section.name}`;
    const scaled = section.charts.filter((figure) => figure.values.length);
    const controls = make("div", { class: "ic-controls" });
    if (scaled.length) {
      const kinds = [["linear", "linear"], ["log", "logarithmic"]];
      controls.append(selector(section, "Scale", kinds, scaleOf(section, unitOf(scaled[0])).kind, (kind) => { section.kind = kind; }));
    }
    const choices = (section.charts.find((figure) => figure.choices.length) || { choices: [] }).choices;
    if (choices.length) {
      controls.append(selector(section, "Value", choices.map(([name]) => [name, name]), choices[0][0], (name) => { section.choice = name; }));
    }
    const grid = make("div", { class: "ic-figures" });
    // Without a heading it belongs to a part of the page that has one, and is no separate landmark.
    const head = section.heading ? [make("h2", { id: `${id}-head` }, section.heading)] : [];
    section.node = make("section", { id, ...(head.length ? { "aria-labelledby": `${id}-head` } : {}), class: `ic-charts ic-${section.place}` },
      make("div", { class: "ic-section-head" }, ...head, controls), grid);
    const boxes = section.charts.map((figure, at) => addChart(section, figure, at < open));
    const listed = boxes.length > LISTED ? Math.max(open, LISTED) : boxes.length;
    grid.append(...boxes.slice(0, listed));
    const rest = boxes.slice(listed);
    if (rest.length) {
      section.node.append(make("details", { class: "ic-rest" }, make("summary", {}, `${rest.length} more charts`),
        make("div", { class: "ic-figures" }, ...rest)));
    }
    return section.node;
  }

  // Returns a section for charts that stand alone, as those of a case.
  function alone(charts) {
    return { name: "", place: "case", charts, hidden: new Set(), kind: "", choice: "", entries: [], node: null };
  }

  function seen(changes) {
    const entries = new Map([...drawn.values()].map((entry) => [entry.box, entry]));
    for (const change of changes) {
      const entry = entries.get(change.target);
      if (!entry) continue;
      entry.visible = change.isIntersecting;
      if (entry.visible && entry.box.open && entry.stale) draw(entry);
    }
  }

  let resizing = 0;
  function resized() {
    clearTimeout(resizing);
    resizing = setTimeout(() => {
      redraw([...drawn.values()].filter((entry) => entry.chart && Math.abs(entry.plot.clientWidth - entry.width) >= 8));
    }, 150);
  }

  function start(data) {
    page = data;
    for (const section of page.sections) unpack(section.charts);
    observer = new IntersectionObserver(seen, { rootMargin: "200px" });
    window.addEventListener("resize", resized);
  }

  function setWords(chosenWords) {
    words = chosenWords;
    redraw(drawn.values());
  }

  return { make, matches, start, setWords, addSection, addChart, alone, removeCharts, unpack, unpacked, drawRest, scaleOf, unitOf };
})();
