// The console's script: what a page cannot do by itself. Every page is readable without it.
// A part of a page asks for behaviour by data-part="NAME"; each NAME is defined once below by part(NAME, start).
"use strict";
(() => {
  const parts = {};
  const part = (name, start) => { parts[name] = start; };
  const find = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Starts what a piece of the page asks for; also called for pieces that were fetched.
  const wake = (root) => {
    for (const element of all("[data-part]", root)) {
      if (element.dataset.awake) continue;
      element.dataset.awake = "yes";
      const start = parts[element.dataset.part];
      if (start) start(element);
    }
  };

  // Fetches a piece of a page as HTML; null when the session has ended or the server does not answer.
  const fetchPart = async (address, signal) => {
    const url = new URL(address, location.href);
    url.searchParams.set("partial", "1");
    try {
      const response = await fetch(url, { signal, headers: { "X-Requested-With": "console" } });
      if (response.status === 401) { location.reload(); return null; }
      connection(true);
      return await response.text();
    } catch (failure) {
      if (failure.name !== "AbortError") connection(false);
      return null;
    }
  };

  // Says that the server does not answer, and that it does again.
  const connection = (is_there) => { find("[data-lost]").hidden = is_there; };

  // Times as they go by.
  const steps = [[60, "s"], [60, "min"], [24, "h"], [30, "d"], [12, "mo"]];
  const ago = (moment) => {
    const seconds = (Date.now() - moment) / 1000;
    let value = Math.abs(seconds), unit = "y";
    if (value < 5) return "just now";
    for (const [size, name] of steps) {
      if (value < size) { unit = name; break; }
      value /= size;
    }
    const shown = `${Math.floor(value)} ${unit}`;
    return seconds > 0 ? `${shown} ago` : `in ${shown}`;
  };
  setInterval(() => {
    for (const element of all("time[datetime]")) element.textContent = ago(Date.parse(element.dateTime));
  }, 15000);

  // A submitted form cannot be submitted again until its answer is there.
  document.addEventListener("submit", (event) => {
    const buttons = all("button", event.target);
    setTimeout(() => buttons.forEach((button) => { button.disabled = true; }), 0);
    setTimeout(() => buttons.forEach((button) => { button.disabled = false; }), 8000);
  });
  window.addEventListener("pageshow", () => all("button[disabled]").forEach((button) => { button.disabled = false; }));

  // Keys: / searches; g and a letter goes to a page.
  let leader = 0;
  document.addEventListener("keydown", (event) => {
    const field = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (field) { if (event.key === "Escape") field.blur(); return; }
    if (event.key === "/") {
      const search = find("#main input[type=search]") || find("#quick");
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    } else if (event.key === "g") {
      leader = Date.now();
    } else if (Date.now() - leader < 1200) {
      const link = find(`a[data-key="${CSS.escape(event.key)}"]`);
      leader = 0;
      if (link) link.click();
    }
  });

  // -- parts of pages (each page's own below its heading) --

  // -- search: results as one types --
  // Waits for a pause, drops what was asked before, keeps the focus; the address follows. Retrievals wait for
  // Enter: the server answers a keystroke with a hint instead.
  part("live-search", (form) => {
    const results = find("#search-results"), said = find("#search-said");
    let timer = 0, asking = null, last = location.search;
    const ask = async () => {
      const given = [...new FormData(form)].filter(([name, value]) => value && !(name === "limit" && value === "10") && !(name === "depth" && value === "2"));
      const query = `?${new URLSearchParams(given)}`;
      if (query === last) return;
      last = query;
      if (asking) asking.abort();
      const mine = asking = new AbortController();
      find(".found", results)?.setAttribute("aria-busy", "true");
      const html = await fetchPart(form.action + query, mine.signal);
      if (mine !== asking) return;
      find(".found", results)?.removeAttribute("aria-busy");
      if (html === null) { last = ""; return; }
      results.innerHTML = html;
      wake(results);
      said.textContent = find("[data-said]", results)?.dataset.said ?? "";
      history.replaceState(null, "", form.action + query);
    };
    const soon = (wait) => { clearTimeout(timer); timer = setTimeout(ask, wait); };
    form.addEventListener("input", (event) => soon(event.target.matches("select") ? 0 : 120));
    form.addEventListener("submit", () => clearTimeout(timer));
  });

  window.addEventListener("DOMContentLoaded", () => wake(document));
})();
