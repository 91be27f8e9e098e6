// SPDX-License-Identifier: BSD-3-Clause
// The page as a whole: it puts pytest-html's parts in order, below the first screen, and makes them work without a mouse.
"use strict";
(function () {
  const { make } = icCharts;
  //: Number of open charts of a section; the rest is folded.
  const OPEN = 4;
  let page = null;

  // -- order: title and facts, contents, the answer, charts, cases, and pytest-html's own parts last

  function arrange() {
    const body = document.body;
    const generated = document.querySelector("#title + p");
    const main = make("main", { id: "ic-main", tabindex: "-1" });
    const header = make("header", {}, document.getElementById("title"), document.getElementById("ic-head"));
    const contents = make("nav", { id: "ic-contents", "aria-label": "Contents" });
    const cases = document.getElementById("ic-cases");
    const summary = document.querySelector(".summary");
    const prefix = document.querySelector(".additional-summary.prefix");
    const postfix = document.querySelector(".additional-summary.postfix");
    const tests = document.getElementById("ic-tests");
    cases.append(icCases.moreRows(), tests);
    for (const selector of [".run-count", ".summary__reload", ".filter", ".controls"]) {
      const part = summary.querySelector(selector);
      if (part) tests.append(part);
    }
    const mine = (node) => node.tagName !== "SCRIPT" && node.tagName !== "STYLE";
    main.append(...[...prefix.children].filter(mine), ...[...postfix.children].filter(mine));
    for (const heading of summary.querySelectorAll("h2")) heading.remove();
    // The additions of other plugins follow the report's own parts.
    main.append(summary);
    const about = make("section", { id: "ic-environment", "aria-label": "Environment" },
      document.getElementById("environment-header"), document.getElementById("environment"), generated);
    body.prepend(make("a", { class: "ic-skip", href: "#ic-main" }, "Skip to the answer"), header, contents, main);
    main.append(about);
    // Last, since moving thousands of rows takes long.
    tests.append(document.getElementById("results-table"));
  }

  function fillContents() {
    const links = [];
    for (const section of document.querySelectorAll("#ic-main section[id]")) {
      const head = section.querySelector("h2");
      if (!head || section.id === "ic-one-case") continue;
      links.push(make("li", {}, make("a", { href: `#${section.id}` }, head.textContent.trim())));
    }
    document.getElementById("ic-contents").replaceChildren(make("ul", {}, ...links));
  }

  // -- keyboards and screen readers, which pytest-html does not support

  function improve() {
    document.documentElement.lang = "en";
    document.head.append(make("meta", { name: "viewport", content: "width=device-width, initial-scale=1" }));
    for (const box of document.querySelectorAll("input.filter")) {
      const text = box.nextElementSibling;
      if (!text) continue;
      box.setAttribute("aria-label", `show ${text.textContent.replace(",", "").trim()}`);
      for (const node of [box, text]) node.classList.toggle("ic-hidden", /^\s*0 /.test(text.textContent));
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
      log.setAttribute("aria-label", "expand [+], the whole log");
      log.setAttribute("aria-expanded", log.parentNode.classList.contains("expanded"));
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
        icCases.filterTable();
        asButtons();
      }
    }).observe(document.getElementById("ic-tests"), { childList: true });
  }

  function start() {
    icCharts.start(page);
    arrange();
    for (const section of page.sections) {
      const place = document.getElementById(section.place === "first" ? "ic-first" : "ic-figures");
      place.append(icCharts.addSection(section, OPEN));
    }
    icCases.start(page);
    improve();
    fillContents();
    watchTable();
    window.addEventListener("beforeprint", icCharts.drawRest);
    icCases.reveal();
    const later = window.requestIdleCallback || ((run) => setTimeout(run, 500));
    later(() => icCharts.drawRest().then(() => { document.documentElement.dataset.icReady = "yes"; }));
  }

  // pytest-html's template of a row has a video element, which takes a browser longer than the rest of the row. Its own
  // script has not run yet. Without media it asks for the outer element only.
  function lightenRows() {
    const template = document.getElementById("template_results-table__tbody");
    const media = template && template.content.querySelector(".media");
    if (media) media.replaceChildren();
  }

  page = JSON.parse(document.getElementById("ic-data").textContent);
  if (!page.media) lightenRows();
  document.addEventListener("DOMContentLoaded", start);
})();
