// Script of the console. Every page is readable without this script.
// An element with data-part="NAME" gets the behaviour that part(NAME, start) defines below, once for each NAME.
"use strict";
(() => {
  // Address of this console. It is below `/v/NAME` if there are several vaults. The script is in `static/` below it.
  const home = new URL("..", document.currentScript.src).pathname;
  const parts = {};
  const part = (name, start) => { parts[name] = start; };
  const find = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Starts the behaviours of an element and its children. It is also called for fetched elements.
  const wake = (root) => {
    for (const element of all("[data-part]", root)) {
      if (element.dataset.awake) continue;
      element.dataset.awake = "yes";
      const start = parts[element.dataset.part];
      if (start) start(element);
    }
  };

  // Fetches a part of a page as HTML. Returns null if the session has ended or the server does not answer.
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

  // Shows or hides the message that the server does not answer.
  const connection = (is_there) => { find("[data-lost]").hidden = is_there; };

  // Relative times, which are updated while the page is open.
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

  // A submitted form cannot be submitted again before the answer arrives.
  document.addEventListener("submit", (event) => {
    if (event.target.method === "dialog") return;  // a dialog sends no request
    const buttons = all("button", event.target);
    setTimeout(() => buttons.forEach((button) => { button.disabled = true; }), 0);
    setTimeout(() => buttons.forEach((button) => { button.disabled = false; }), 8000);
  });
  window.addEventListener("pageshow", () => all("button[disabled]").forEach((button) => { button.disabled = false; }));

  // Groups of checkboxes with a button for all of them. The bar is shown only while a box is ticked.
  part("boxes", (form) => {
    const bar = find("[data-bar]", form), [one, many] = bar ? bar.dataset.bar.split(" ") : [];
    const count = () => {
      const number = all("[data-group] input[type=checkbox]:not([name=seen]):checked", form).length;
      if (bar.matches(".many")) bar.hidden = number === 0;
      for (const told of all("[data-count]", bar)) told.textContent = number ? `${number} ${number === 1 ? one : many}` : `the ticked ${many}`;
      for (const button of all("[data-needs]", bar)) button.disabled = number === 0;
    };
    if (bar) {
      if (bar.matches(".many")) bar.classList.add("floats");
      form.addEventListener("change", count);
      window.addEventListener("pageshow", count);
      count();
    }
    for (const group of all("[data-group]", form)) {
      const button = find("[data-all]", group), boxes = all("input[type=checkbox]:not([name=seen])", group);
      const name = () => { button.textContent = boxes.every((box) => box.checked) ? "Tick none" : "Tick all"; };
      button.hidden = boxes.length < 2;
      button.onclick = () => { const wanted = !boxes.every((box) => box.checked); for (const box of boxes) box.checked = wanted; name(); if (bar) count(); };
      group.addEventListener("change", name);
      name();
    }
  });

  // Quick switcher. Notes whose names match are listed below the field. Enter opens a note, Shift+Enter searches.
  part("switcher", (form) => {
    const field = find("input", form), list = find("ul", form);
    let asked = null, timer = 0;
    const set = (name, value) => field.setAttribute(name, value);
    for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id })) set(name, value);
    const choose = (at) => {
      all("li", list).forEach((row, number) => row.setAttribute("aria-selected", String(number === at)));
      set("aria-activedescendant", at < 0 ? "" : list.children[at].id);
    };
    const chosen = () => [...list.children].findIndex((row) => row.ariaSelected === "true");
    const show = (rows, of = "") => {
      list.replaceChildren(...rows);
      list.dataset.of = of;
      list.hidden = rows.length === 0;
      set("aria-expanded", String(rows.length > 0));
      choose(rows.length ? 0 : -1);
    };
    const ask = async () => {
      if (asked) asked.abort();
      asked = new AbortController();
      const wanted = field.value;
      const text = wanted.trim() ? await fetchPart(`${home}find?q=${encodeURIComponent(wanted)}`, asked.signal) : "";
      if (text !== null && wanted === field.value) show(all("li", new DOMParser().parseFromString(text, "text/html")), wanted);
    };
    field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 60); });
    field.addEventListener("keydown", async (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], count = list.children.length;
      if (step && count) { event.preventDefault(); choose((chosen() + step + count) % count); }
      else if (event.key === "Escape") show([]);
      else if (event.key === "Enter" && event.shiftKey) { event.preventDefault(); form.submit(); }
      else if (event.key === "Enter") {
        event.preventDefault();
        clearTimeout(timer);
        if (field.value !== list.dataset.of) await ask();
        const row = list.children[chosen()];
        if (row) find("a", row).click(); else form.submit();
      }
    });
    document.addEventListener("click", (event) => { if (!form.contains(event.target)) show([]); });
  });

  // Keyboard shortcuts: ? shows the list, / moves to the search field, g and a letter open a page.
  // A key has no effect as a shortcut in a field or while the list is open.
  const isTyping = (event) => {
    const field = event.target.closest?.("input, textarea, select, [contenteditable]");
    return Boolean(field) && !field.matches("input[type=checkbox], input[type=radio]");
  };
  const isForPage = (event) => !(event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey
    || event.altKey || isTyping(event) || find("dialog[open]"));
  const showKeys = () => { const help = find("#keys"); if (help && !help.open) help.showModal(); };
  let leader = 0;
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && isTyping(event)) event.target.blur();
    if (!isForPage(event)) return;
    const is_led = Date.now() - leader < 1200;
    leader = 0;
    if (is_led) {
      event.preventDefault();  // the page must not use this key for its own shortcuts
      find(`a[data-key="${CSS.escape(event.key)}"]`)?.click();
    } else if (event.key === "g") {
      leader = Date.now();
    } else if (event.key === "?") {
      event.preventDefault();
      showKeys();
    } else if (event.key === "/") {
      const search = find("#quick");
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    }
  });
  part("keys", (button) => { button.hidden = false; button.addEventListener("click", showKeys); });

  // -- behaviours of elements, by page --

  // -- overview: live feed, and elements that show the state of the server --
  {
    // Waits with random jitter, so that many consoles do not send requests at the same time.
    const later = (act, milliseconds) => setTimeout(act, milliseconds * (1 + Math.random() / 4));
    // Converts a fetched part to elements. Text becomes markup only here, and only if the server has rendered it.
    const pieceOf = (text) => new DOMParser().parseFromString(text, "text/html");

    // Refreshes the [data-fill] elements every 15 seconds while the page is visible. The wait is shorter
    // if an element has [data-soon].
    part("refresh", (element) => {
      const refresh = async () => {
        const text = document.hidden ? null : await fetchPart(element.dataset.address);
        for (const fresh of text === null ? [] : all("[data-fill]", pieceOf(text))) {
          const place = find(`[data-fill="${CSS.escape(fresh.dataset.fill)}"]`, element);
          if (place && !place.contains(document.activeElement)) place.replaceChildren(...fresh.childNodes);
        }
        again();
      };
      const again = () => later(refresh, find("[data-soon]", element) ? 2000 : 15000);
      again();
    });

    // An event stream reports new events. The rows are then fetched as HTML.
    part("feed", (element) => {
      const form = find("form", element), pause = find("[data-pause]", element), live = find("[data-live]", element);
      const list = find("[data-head]", element), none = find("[data-none]", element), most = Number(element.dataset.most);
      let stream = null, is_paused = false, missed = 0;
      let asking = false, next = "", rest = 150, timer = 0, patience = 500;

      const query = () => new URLSearchParams([...new FormData(form)].filter(([, value]) => value.trim()));
      const tell = () => {
        const is_live = stream !== null && stream.readyState === EventSource.OPEN;
        live.hidden = false;
        live.textContent = is_paused ? "paused" : is_live ? "live" : "connecting";
        live.className = `badge ${is_paused ? "warn" : is_live ? "ok" : "plain"}`;
        pause.textContent = !is_paused ? "Pause" : missed ? `Continue (${missed} new)` : "Continue";
        pause.setAttribute("aria-pressed", String(is_paused));
      };

      // Folds an older row into a newer row of the same kind, as the server does for the rows that it sends.
      const fold = (row) => {
        const older = row.nextElementSibling, at = (one) => Date.parse(find("time", one).dateTime);
        if (!older || older.dataset.alike !== row.dataset.alike || at(row) - at(older) > 300000) return;
        const inner = find("details ol", older), more = inner ? [...inner.children] : [];
        const mine = find("details", row) || find("[data-folding]", element).firstElementChild.cloneNode(true);
        const place = find("ol", mine);
        if (place.children.length + more.length >= 50) return;
        find("details", older)?.remove();
        place.append(older, ...more);
        find("summary span", mine).textContent = place.children.length;
        row.append(mine);
      };
      const take = (fresh, whole) => {
        // After many new rows, the next request is sent later.
        rest = Math.min(Math.max(fresh.children.length * 100, 150), 5000);
        const last = Number(list.dataset.head);
        const rows = [...fresh.children].filter((row) => whole || Number(row.dataset.seq) > last);
        if (whole) list.replaceChildren();
        else for (const row of rows) row.classList.add("fresh");
        list.prepend(...rows);
        if (!whole && rows.length) fold(rows.at(-1));
        while (list.children.length > most) list.lastElementChild.remove();
        list.dataset.head = fresh.dataset.head;
        none.hidden = list.children.length > 0;
        const filtered = query().toString() ? "yes" : "no";
        for (const told of all("[data-filtered]", none)) told.hidden = told.dataset.filtered !== filtered;
      };
      // Fetches new rows or the whole list, with one request at a time. Returns false if the server does not answer.
      const update = async (whole = false) => {
        if (asking) { next = whole ? "whole" : next || "new"; return true; }
        asking = true;
        const wanted = query(), before = wanted.toString();
        if (!whole) wanted.set("after", list.dataset.head);
        const text = await fetchPart(`${home}feed?${wanted}`);
        const fresh = text === null ? null : find("[data-head]", pieceOf(text));
        asking = false;
        if (text !== null && fresh === null) connection(false);
        if (fresh !== null && !is_paused && before === query().toString()) take(fresh, whole);
        const then = next;
        next = "";
        return then && fresh !== null ? update(then === "whole") : fresh !== null;
      };

      const fits = (event) => {
        const { type, agent, tag } = Object.fromEntries(query());
        if (type && type !== event.type && type !== event.type.split(".")[0]) return false;
        if (!agent && !tag) return true;
        const told = JSON.parse(event.data);
        return (!agent || told.agent === agent.trim()) && (!tag || told.tags.includes(tag.trim().replace(/^#/, "")));
      };
      const hear = (event) => {
        if (!fits(event)) return;
        if (is_paused) { missed += 1; tell(); }
        else if (!timer) timer = later(() => { timer = 0; update(); }, rest);
      };

      // A hidden page has no stream, and is refreshed when it becomes visible. A stream that has ended is opened
      // again after an answer, because the answer shows that the server is back. An ended session leads to the login.
      const close = () => { if (stream) stream.close(); stream = null; };
      const retry = () => { later(connect, patience); patience = Math.min(patience * 2, 15000); };
      const connect = async () => {
        if (stream || document.hidden) return;
        if (!await update()) { tell(); retry(); return; }
        if (stream || document.hidden) return;
        stream = new EventSource(`${home}events?since=${list.dataset.head}`);
        stream.onopen = () => { patience = 500; tell(); update(); };
        stream.onerror = () => { close(); tell(); retry(); };
        stream.addEventListener("resync", () => update(true));
        for (const type of element.dataset.types.split(" ")) stream.addEventListener(type, hear);
      };
      document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else connect(); });

      let typing = 0;
      form.addEventListener("input", () => {
        clearTimeout(typing);
        typing = setTimeout(() => { history.replaceState(null, "", `${home}?${query()}`); update(true); }, 250);
      });
      pause.hidden = false;
      pause.addEventListener("click", () => {
        is_paused = !is_paused;
        missed = 0;
        tell();
        if (!is_paused) update();
      });
      find("[data-plain]", form).hidden = true;  // typed text filters immediately, so the button is not needed
      tell();
      connect();
    });
  }

  // -- search: results while the user types --
  // Waits for a pause in the typing, cancels the previous request, keeps the focus and updates the address.
  // Retrievals need Enter. The server answers other keystrokes with a hint.
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
    form.addEventListener("input", (event) => soon(event.target.matches("select") ? 0 : 80));
    form.addEventListener("change", () => soon(0));
    form.addEventListener("submit", () => clearTimeout(timer));
  });

  // -- graph: move and zoom through the view box, and highlight the neighbours of a note --
  part("graph", (figure) => {
    const svg = find("svg", figure), near = find(".e-near", svg), whole = { ...box(svg) };
    const nodes = all(".node", svg), pairs = (svg.dataset.pairs || "").split(" ").filter(Boolean).map((pair) => pair.split(",").map(Number));
    find(".graph-tools", figure).hidden = false;
    const show = (view) => {
      const width = Math.min(whole.width, Math.max(whole.width / 12, view.width)), height = width * whole.height / whole.width;
      const x = Math.min(whole.width - width, Math.max(0, view.x)), y = Math.min(whole.height - height, Math.max(0, view.y));
      svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
      svg.classList.toggle("z2", width < whole.width / 1.8);
      svg.classList.toggle("z3", width < whole.width / 4);
    };
    const zoom = (factor, at) => {
      const view = box(svg), centre = at || { x: view.x + view.width / 2, y: view.y + view.height / 2 };
      const width = Math.min(whole.width, view.width / factor), share = width / view.width;
      show({ x: centre.x - (centre.x - view.x) * share, y: centre.y - (centre.y - view.y) * share, width });
    };
    const place = (event) => {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      return { x: point.x, y: point.y };
    };
    figure.addEventListener("click", (event) => {
      const button = event.target.closest("[data-zoom]");
      if (button) ({ in: () => zoom(1.5), out: () => zoom(1 / 1.5), all: () => show(whole) })[button.dataset.zoom]();
    });
    svg.addEventListener("wheel", (event) => {
      if (event.deltaY > 0 && box(svg).width >= whole.width && !event.ctrlKey) return;  // the whole graph is visible, so the page scrolls
      event.preventDefault();
      zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, place(event));
    }, { passive: false });
    figure.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const view = box(svg), step = view.width / 10;
      const act = {
        "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), "0": () => show(whole),
        ArrowLeft: () => show({ ...view, x: view.x - step }), ArrowRight: () => show({ ...view, x: view.x + step }),
        ArrowUp: () => show({ ...view, y: view.y - step }), ArrowDown: () => show({ ...view, y: view.y + step }),
      }[event.key];
      if (act) { event.preventDefault(); act(); }
    });
    const held = new Map();
    let moved = 0;
    svg.addEventListener("pointerdown", (event) => { if (event.button === 0) { held.set(event.pointerId, event); if (held.size === 1) moved = 0; } });
    svg.addEventListener("pointermove", (event) => {
      const before = held.get(event.pointerId);
      if (!before) return;
      const view = box(svg), size = 1 / svg.getScreenCTM().a;
      if (held.size === 2) {
        const [one, other] = [...held.values()], still = one.pointerId === event.pointerId ? other : one;
        const apart = (point) => Math.hypot(point.clientX - still.clientX, point.clientY - still.clientY) || 1;
        zoom(apart(event) / apart(before), place(event));
      } else {
        show({ ...view, x: view.x - (event.clientX - before.clientX) * size, y: view.y - (event.clientY - before.clientY) * size });
      }
      moved += Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY);
      if (moved > 4) { svg.classList.add("moving"); svg.setPointerCapture(event.pointerId); }
      held.set(event.pointerId, event);
    });
    const release = (event) => { held.delete(event.pointerId); svg.classList.remove("moving"); };
    svg.addEventListener("pointerup", release);
    svg.addEventListener("pointercancel", release);
    svg.addEventListener("pointerleave", (event) => { if (!svg.hasPointerCapture(event.pointerId)) release(event); });
    svg.addEventListener("dragstart", (event) => event.preventDefault());
    svg.addEventListener("click", (event) => { if (moved > 4) { event.preventDefault(); event.stopPropagation(); moved = 0; } }, true);
    const highlight = (node) => {
      const number = node ? nodes.indexOf(node) : -1;
      let lines = "";
      for (const other of nodes) other.classList.remove("near");
      for (const [start, end] of number < 0 ? [] : pairs) {
        if (start !== number && end !== number) continue;
        const [one, other] = [start, end].map((at) => find("circle", nodes[at]));
        lines += `M${one.getAttribute("cx")} ${one.getAttribute("cy")}L${other.getAttribute("cx")} ${other.getAttribute("cy")}`;
      }
      near.setAttribute("d", lines);
    };
    for (const name of ["pointerover", "focusin"]) svg.addEventListener(name, (event) => highlight(event.target.closest(".node")));
    for (const name of ["pointerleave", "focusout"]) svg.addEventListener(name, () => highlight(null));
    svg.addEventListener("focusin", (event) => {
      const circle = event.target.closest(".node")?.querySelector("circle"), view = box(svg);
      if (!circle) return;
      const x = Number(circle.getAttribute("cx")), y = Number(circle.getAttribute("cy"));
      const is_seen = x > view.x && x < view.x + view.width && y > view.y && y < view.y + view.height;
      if (!is_seen) show({ ...view, x: x - view.width / 2, y: y - view.height / 2 });
    });
  });
  const box = (svg) => { const { x, y, width, height } = svg.viewBox.baseVal; return { x, y, width, height }; };

  // -- review: shortcuts, and proposals that are created or decided elsewhere --
  part("review", (element) => {
    const rows = all("[data-proposal]", element), can = (name, row) => find(`[data-do="${name}"]`, row);
    let here = rows.findIndex((row) => `#${row.id}` === location.hash);
    const choose = (at, moves) => {
      if (at < 0 || at >= rows.length) return;
      here = at;
      rows.forEach((row, number) => { row.classList.toggle("here", number === at); if (number === at) row.setAttribute("aria-current", "true"); else row.removeAttribute("aria-current"); });
      if (moves) { rows[at].focus({ preventScroll: true }); rows[at].scrollIntoView({ block: "nearest" }); }
    };
    choose(Math.max(here, 0), here >= 0);
    for (const hint of all("[data-keys]", element)) hint.hidden = false;
    element.addEventListener("focusin", (event) => choose(rows.indexOf(event.target.closest("[data-proposal]")), false));
    const step = (by, way) => { const link = can(way, document); if (rows.length === 1 && link) link.click(); else choose(here + by, true); };
    const keys = {
      j: () => step(1, "next"),
      k: () => step(-1, "previous"),
      a: (row) => {
        const button = can("approve", row), seen = button && find("input[name=seen]", button.form);
        if (seen && !seen.checked) { seen.scrollIntoView({ block: "center" }); seen.focus(); } else button?.click();
      },
      r: (row) => {
        const told = can("reject", row)?.closest("details");
        if (told) { told.open = true; find("input[name=reason]", told).focus(); }
      },
      e: (row) => { const way = can("change", row); if (way?.matches("textarea")) { way.scrollIntoView({ block: "center" }); way.focus(); } else if (way) way.click(); },
    };
    document.addEventListener("keydown", (event) => {
      const act = keys[event.key];
      if (!act || !rows.length || !isForPage(event)) return;
      event.preventDefault();
      if (!event.repeat || act === keys.j || act === keys.k) act(rows[here]);  // holding a key down decides only once
    });

    const news = find("[data-news]", element), places = Object.fromEntries(rows.map((row) => [row.dataset.proposal, row]));
    let stream = null, head = element.dataset.head, count = 0, patience = 500;
    const hear = (event) => {
      head = event.lastEventId || head;
      const [kind, row] = [event.type.split(".")[1], places[JSON.parse(event.data).proposal_id]];
      if (kind === "created" && !row) count += 1;
      for (const told of row ? all("[data-decided]", row) : []) {
        told.textContent = kind === "created" ? "changed in the meantime: reload the page" : `${kind} in the meantime`;
        told.hidden = false;
      }
      if (!news || !count) return;
      find("[data-told]", news).textContent = count === 1 ? "1 new proposal has arrived." : `${count} new proposals have arrived.`;
      news.hidden = false;
    };
    const close = () => { if (stream) stream.close(); stream = null; };
    // A request shows whether the server answers. If the session has ended, it leads to the login.
    const retry = () => {
      setTimeout(async () => { if (await fetchPart(`${home}find?q=`) === null) retry(); else connect(); }, patience);
      patience = Math.min(patience * 2, 15000);
    };
    const connect = () => {
      if (stream || document.hidden) return;
      const types = ["created", "approved", "rejected", "expired", "withdrawn"].map((kind) => `proposal.${kind}`);
      stream = new EventSource(`${home}events?since=${head}&types=${types.join(",")}`);
      stream.onopen = () => { patience = 500; };
      stream.onerror = () => { close(); retry(); };
      for (const type of types) stream.addEventListener(type, hear);
    };
    document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else connect(); });
    connect();
  });

  window.addEventListener("DOMContentLoaded", () => {
    const here = find(".side nav [aria-current=page]");
    if (here && here.offsetParent) here.closest("nav").scrollLeft = here.offsetLeft - 60;
    wake(document);
  });
})();
