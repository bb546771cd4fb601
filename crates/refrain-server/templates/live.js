// Keeps a page as it is on the server. One page of a browser listens, and tells the others; each reads itself anew.
(() => {
  "use strict";
  const body = document.body, gone = document.getElementById("gone");
  let after = body.dataset.after, timer = null, read = -Infinity, reading = false, again = false;
  const others = "BroadcastChannel" in window ? new BroadcastChannel("refrain") : null;

  function concerns(news) {
    const { project, loop } = body.dataset;
    return !loop || (news.project === project && (news.loop === loop || news.loop.startsWith(loop + "-")));
  }

  function hear(kind, news) {
    if (kind === "gone" || kind === "here") {
      gone.hidden = kind === "here";
      if (kind === "gone") return;
    }
    if (kind === "printed") {
      if (concerns(news)) follow();
    } else if (kind === "alive" ? document.querySelector("[data-live] .status.running, [data-live] .status.waiting") : kind !== "recorded" || concerns(news)) {
      soon();
    }
  }

  function tell(kind, news) {
    hear(kind, news);
    if (others) others.postMessage({ kind, news, after });
  }

  if (others) others.onmessage = ({ data }) => { after = data.after || after; hear(data.kind, data.news); };

  // After a quiet period an event is shown at once; in a burst, no more often than a person can read. A hidden page waits.
  function soon() {
    if (timer === null) timer = setTimeout(() => { timer = null; renew(); }, Math.max(5, read + 300 - performance.now()));
  }
  document.addEventListener("visibilitychange", () => { if (!document.hidden && again) { again = false; soon(); } });

  async function renew() {
    if (!document.querySelector("[data-live]")) return;
    if (reading || document.hidden) { again = true; return; }
    reading = true;
    read = performance.now();
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" }, redirect: "follow" });
      if (answer.ok) put(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch { /* The stream says so, too. */ }
    reading = false;
    if (again && !document.hidden) { again = false; soon(); }
  }

  // Only what differs is renewed: the rest keeps its place, and what a person opened stays open.
  function renewAs(old, fresh) {
    if (old.isEqualNode(fresh) || (old.nodeName === "TIME" && old.dateTime === fresh.dateTime)) return;
    const now = [...old.childNodes], next = [...fresh.childNodes];
    if (old.nodeName !== fresh.nodeName || old.nodeType !== Node.ELEMENT_NODE || old.id !== fresh.id) return old.replaceWith(fresh);
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !["open", "hidden"].includes(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    if (now.length === next.length) now.forEach((it, n) => renewAs(it, next[n]));
    else old.replaceChildren(...next);
  }

  function put(page) {
    document.title = page.title;
    const icon = page.querySelector("link[rel=icon]"), shown = document.querySelector("link[rel=icon]");
    if (icon && shown && icon.getAttribute("href") !== shown.getAttribute("href")) shown.replaceWith(icon);
    const listed = later?.childElementCount ? [...document.querySelectorAll(LISTED)].map((row) => row.cloneNode(true)) : [];
    for (const fresh of page.querySelectorAll("[data-live][id]")) {
      const old = document.getElementById(fresh.id);
      if (!old) continue;
      const active = document.activeElement;
      // Keep what the user is typing, or has typed.
      const fields = [...old.querySelectorAll("input, textarea")];
      if (fields.some((it) => it === active || it.value !== it.defaultValue || it.checked !== it.defaultChecked)) continue;
      if (old.querySelector(".menu[open]")) continue;
      const focused = old.contains(active) ? active.id || (active.name && `${active.name}`) : null;
      const places = [...old.querySelectorAll(".scroll")].map((it) => [it.scrollLeft, it.scrollTop]);
      renewAs(old, fresh);
      [...old.querySelectorAll(".scroll")].forEach((it, n) => { if (places[n]) [it.scrollLeft, it.scrollTop] = places[n]; });
      if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    }
    if (listed.length) pushed(listed);
    tick();
    choose();
    // Of the agent's work only what is new is read, until it is of another attempt.
    const doing = document.getElementById("doing"), begun = page.getElementById("doing");
    if (!doing || !begun || doing.dataset.attempt === begun.dataset.attempt) return follow();
    const wanted = document.getElementById("find")?.value ?? "";
    doing.replaceWith(begun);
    const find = document.getElementById("find");
    if (find) find.value = wanted;
    sift();
  }

  // The rows that new ones have pushed off the first part of the list become the first of the later parts.
  const later = document.getElementById("later"), LISTED = "#needs .card, #running .row, #rest .row";
  const rowId = (row) => row.querySelector(".go").id;
  function pushed(listed) {
    const kept = [...document.querySelectorAll(LISTED)].map(rowId), last = kept.at(-1);
    const at = listed.findIndex((row) => rowId(row) === last);
    // Rows between the two parts were never read.
    if (at < 0 && ![...later.children].some((row) => rowId(row) === last)) { location.reload(); return; }
    for (const row of [...later.children]) if (kept.includes(rowId(row))) row.remove();
    if (at >= 0) later.prepend(...listed.slice(at + 1).filter((row) => !kept.includes(rowId(row))));
  }

  let following = false, behind = false;
  async function follow() {
    const list = document.getElementById("activity");
    if (!list?.dataset.source) return;
    if (following) { behind = true; return; }
    following = true;
    behind = false;
    try {
      const answer = await fetch(`${list.dataset.source}?from=${list.dataset.next}`);
      if (answer.ok) {
        const part = await answer.json();
        const atEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 8;
        for (const line of part.lines) {
          const folder = list.dataset.folder.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
          line.text = line.text.replace(new RegExp(`(?<![\\p{L}\\p{N}/._~-])${folder}`, "gu"), "");
          const last = list.lastElementChild;
          if (line.part && last?.className === line.kind) {
            last.textContent += line.text;
            continue;
          }
          if (last?.className === "tool" && (line.kind === "result" || line.kind === "failed")) {
            fold(last, line);
            continue;
          }
          const item = document.createElement("li");
          item.className = line.kind;
          item.textContent = line.text;
          list.append(item);
        }
        while (list.childElementCount > 2000) list.firstElementChild.remove();
        behind ||= part.next < part.total && part.next > Number(list.dataset.next);
        list.dataset.next = part.next;
        const context = document.getElementById("context");
        if (part.context && context) {
          context.hidden = false;
          context.querySelector("output").textContent = part.context.toLocaleString("en");
        }
        sift();
        if (atEnd) list.scrollTop = list.scrollHeight;
      }
    } catch { /* The stream says so, too. */ }
    following = false;
    if (behind) follow();
  }

  // The result of a tool is folded below its call, as the server does it.
  function fold(call, line) {
    let details = call.querySelector("details");
    if (!details) {
      details = document.createElement("details");
      const summary = document.createElement("summary");
      summary.textContent = call.textContent;
      details.append(summary);
      call.replaceChildren(details);
    }
    const result = document.createElement("pre");
    result.className = line.kind;
    result.textContent = line.text;
    details.append(result);
  }

  function sift() {
    const find = document.getElementById("find");
    if (!find) return;
    const wanted = find.value.toLowerCase();
    for (const item of document.querySelectorAll("#activity > li")) item.hidden = !item.textContent.toLowerCase().includes(wanted);
  }
  document.addEventListener("input", ({ target }) => {
    if (target.id === "find") sift();
    if (target.id === "filter") choose();
  });

  // The list, as far as it is on the page, narrows down as a person types; Enter asks the server.
  function choose() {
    const filter = document.getElementById("filter");
    if (!filter) return;
    const wanted = filter.value.toLowerCase().split(/\s+/);
    const rows = [...document.querySelectorAll("[data-row]")];
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every((word) => text.includes(word));
    }
    const shown = rows.filter((row) => !row.hidden).length, matched = document.getElementById("matched");
    // A part without a match has no heading.
    for (const part of document.querySelectorAll("#needs, #running, #rest")) {
      const own = [...part.querySelectorAll("[data-row]")];
      part.hidden = own.length > 0 && own.every((row) => row.hidden);
    }
    later.hidden = [...later.children].every((row) => row.hidden);
    matched.hidden = shown === rows.length;
    matched.textContent = `${shown} of ${rows.length}`;
    document.getElementById("no-match").hidden = shown > 0 || rows.length === 0;
  }

  // Times stay current, and show the local time.
  function tick() {
    for (const time of document.querySelectorAll("time[datetime]")) {
      const then = new Date(time.dateTime), seconds = Math.max(0, Math.round((Date.now() - then) / 1000));
      const [number, unit] = seconds < 60 ? [seconds, "s"] : seconds < 3600 ? [seconds / 60, "m"] : seconds < 86400 ? [seconds / 3600, "h"] : [seconds / 86400, "d"];
      const text = seconds < 5 ? "just now" : `${Math.floor(number)}${unit} ago`;
      if (time.textContent !== text) time.textContent = text;
      time.title = then.toLocaleString();
    }
  }
  setInterval(() => { if (!document.hidden) tick(); }, 5000);

  // A page that asks something is shown as a dialog.
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-ask]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    try {
      const answer = await fetch(link.href, { headers: { accept: "text/html" } });
      const form = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("ask");
      if (!answer.ok || !form) throw new Error();
      link.closest("details")?.removeAttribute("open");
      const dialog = document.createElement("dialog");
      dialog.setAttribute("aria-labelledby", "ask-title");
      dialog.append(form);
      document.body.append(dialog);
      dialog.addEventListener("close", () => dialog.remove());
      form.querySelector("[data-close]").addEventListener("click", (back) => { back.preventDefault(); dialog.close(); });
      dialog.showModal();
    } catch { location.href = link.href; }
  });
  document.addEventListener("click", ({ target }) => {
    for (const menu of document.querySelectorAll(".menu[open]")) if (!menu.contains(target)) menu.removeAttribute("open");
  });

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "k") {
      event.preventDefault();
      palette();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") document.querySelector(".menu[open]")?.removeAttribute("open");
    if (event.target.closest("input, textarea, select")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const rows = [...document.querySelectorAll("[data-row]:not([hidden]) .go")];
    const at = rows.indexOf(document.activeElement);
    const keys = {
      "/": () => (document.getElementById("filter") ?? document.getElementById("find"))?.focus(),
      j: () => rows[Math.min(at + 1, rows.length - 1)]?.focus(),
      k: () => rows[Math.max(at - 1, 0)]?.focus(),
      n: () => { location.href = "/start"; },
      h: () => { location.href = "/"; },
      "?": () => document.getElementById("keys")?.showModal(),
    };
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });

  // The palette: the links and actions of this page, all loops that the server lists, and a search.
  async function palette() {
    const dialog = document.getElementById("palette"), field = document.getElementById("palette-field"), list = document.getElementById("palette-list");
    if (!dialog || dialog.open) return;
    const of = (selector, kind) => [...document.querySelectorAll(selector)].map((it) => ({ name: it.textContent.trim(), kind, act: () => it.click() }));
    let all = [...of(".headbar .acts button, .headbar .acts a.button", "action"), ...of(".tabs a", "tab"), ...of(".top nav a, #new", "page")], shown = [], at = 0;
    const go = (href) => () => { location.href = href; };
    const mark = (next) => {
      at = Math.max(0, Math.min(next, shown.length - 1));
      [...list.children].forEach((it, n) => it.setAttribute("aria-selected", n === at));
      field.setAttribute("aria-activedescendant", shown.length ? `palette-${at}` : "");
      list.children[at]?.scrollIntoView({ block: "nearest" });
    };
    const draw = () => {
      const wanted = field.value.trim(), words = wanted.toLowerCase().split(/\s+/);
      shown = all.filter((it) => words.every((word) => `${it.name} ${it.more ?? ""} ${it.kind}`.toLowerCase().includes(word))).slice(0, 40);
      if (wanted) shown.push({ name: `Search everything for “${wanted}”`, kind: "search", act: go(`/search?text=${encodeURIComponent(wanted)}`) });
      list.replaceChildren(...shown.map((it, n) => {
        const item = document.createElement("li"), part = (text, name) => {
          const span = document.createElement("span");
          span.className = name;
          span.textContent = text;
          return span;
        };
        item.id = `palette-${n}`;
        item.setAttribute("role", "option");
        item.append(part(it.name, "name"), part(it.more ?? "", "goal"), part(it.kind, "chip"));
        item.addEventListener("click", () => { dialog.close(); it.act(); });
        return item;
      }));
      mark(0);
    };
    field.value = "";
    field.oninput = draw;
    field.onkeydown = (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) mark(at + step);
      else if (event.key === "Enter" && shown[at]) { dialog.close(); shown[at].act(); }
      else return;
      event.preventDefault();
    };
    draw();
    dialog.showModal();
    try {
      const answer = await fetch("/api/v1/loops?limit=500");
      const loops = (await answer.json()).loops.map((it) => ({ name: it.loop.id, more: `${it.loop.project.split("/").pop()} · ${it.loop.reason}`, kind: it.loop.status, act: go(`/p/${it.project}/${it.loop.id}`) }));
      all = all.concat(loops);
      if (dialog.open) draw();
    } catch { /* The pages and actions are there. */ }
  }

  // A click on a changed line opens the comment on it.
  document.addEventListener("click", ({ target }) => {
    const row = target.closest?.(".diff tr"), box = row?.closest(".file").querySelector(".comment");
    // To select a text is no comment.
    if (!box || row.contains(box) || String(getSelection())) return;
    const line = row.cells[1].textContent || row.cells[0].textContent;
    if (!line) return;
    const place = document.createElement("tr"), cell = place.insertCell();
    cell.colSpan = 3;
    const before = box.closest("tr");
    cell.append(box);
    before?.remove();
    row.after(place);
    box.open = true;
    box.querySelector("[name=line]").value = line;
    box.querySelector("[name=text]").focus();
  });

  // The next part of a long list follows when its end is in sight.
  const end = document.getElementById("next");
  if (end && later && "IntersectionObserver" in window) {
    let loading = false;
    const more = new IntersectionObserver(async ([seen]) => {
      if (!seen.isIntersecting || loading) return;
      loading = true;
      try {
        const answer = await fetch(end.href, { headers: { accept: "text/html" } });
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const row of page.querySelectorAll("#running .row, #rest .row")) if (!document.getElementById(row.querySelector(".go").id)) later.append(row);
        document.querySelector("#pager span").textContent = page.querySelector("#pager span")?.textContent ?? "";
        const next = page.getElementById("next");
        if (next) end.href = next.href; else { end.remove(); more.disconnect(); }
        choose();
        tick();
      } catch { /* The link stays. */ }
      loading = false;
      if (end.isConnected) { more.unobserve(end); more.observe(end); }
    }, { rootMargin: "600px" });
    more.observe(end);
  }

  function listen() {
    const stream = new EventSource(`/api/v1/events?after=${encodeURIComponent(after)}`);
    const heard = (kind) => (event) => {
      if (event.lastEventId) after = event.lastEventId;
      tell(kind, event.data ? JSON.parse(event.data) : null);
    };
    for (const kind of ["recorded", "printed", "reset"]) stream.addEventListener(kind, heard(kind));
    stream.addEventListener("hello", heard("here"));
    // A runner that was killed writes nothing: a page that shows a running loop checks it now and then.
    stream.addEventListener("alive", () => tell("alive", null));
    stream.onerror = () => {
      tell("gone", null);
      // A browser tries again by itself where the connection broke, and not where it was refused.
      if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
    };
  }

  // A notice of what a form did is not said again.
  if (document.getElementById("refused")) history.replaceState(null, "", body.dataset.loop ? `/p/${body.dataset.project}/${body.dataset.loop}` : "/");
  const place = new URL(location.href);
  if (place.searchParams.has("did")) {
    place.searchParams.delete("did");
    history.replaceState(null, "", place);
  }
  tick();
  choose();
  for (const it of document.querySelectorAll("#activity, .to-end")) [it.scrollLeft, it.scrollTop] = [it.classList.contains("to-end") ? it.scrollWidth : 0, it.scrollHeight];
  // One page of the browser listens for all: a browser has only a few connections for a server.
  if (navigator.locks && others) navigator.locks.request("refrain-live", () => new Promise(() => listen()));
  else listen();
})();
