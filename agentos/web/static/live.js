// Keeps a page fresh: when the server says that something has changed, the page is fetched again and the parts that
// differ are put in place. Without JavaScript everything works; one has to reload.
(() => {
  "use strict";
  const body = document.body;

  addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const field = document.querySelector(".find input");
      if (field) { field.focus(); event.preventDefault(); }
    }
  });

  // What was done is told once: not again when the page is loaded again, or its address is kept.
  const shown = new URL(location.href);
  if (shown.searchParams.has("did")) {
    shown.searchParams.delete("did");
    history.replaceState(history.state, "", shown);
  }

  if (!body.dataset.version) return;
  const address = `/events?path=${encodeURIComponent(body.dataset.path)}&since=${encodeURIComponent(body.dataset.version)}`;
  let source = null;
  let busy = false;
  let again = false;
  let leaving = false; // a form was sent: what it asked about may be settled before its answer is here

  const touched = (part) =>
    part.contains(document.activeElement) && document.activeElement.matches("input, textarea, select") ||
    [...part.querySelectorAll("input:not([type=hidden]), textarea")].some((field) => field.value !== field.defaultValue);

  const refresh = async () => {
    if (leaving) return;
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store" });
      if (answer.ok) put(new DOMParser().parseFromString(await answer.text(), "text/html"));
      else if (answer.status === 401) source.close();
    } catch { /* the server is away; the stream connects again by itself */ }
    busy = false;
    if (again) { again = false; refresh(); }
  };

  // A form has another hidden text on each page, and which details are open is the reader's.
  const text = (part) => part.outerHTML.replaceAll(/name="csrf" value="[^"]*"| open=""/g, "");
  const keys = (part) => [...part.querySelectorAll("a[href], button, summary, [tabindex]")];
  const name = (one) => `${one.tagName} ${one.getAttribute("href") ?? one.parentElement.id} ${one.textContent}`;

  const put = (fresh) => {
    if (document.title !== fresh.title) {
      document.title = fresh.title;
      document.getElementById("news").textContent = fresh.title; // a screen reader tells it where the eye sees a number change
    }
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = fresh.getElementById(part.id);
      if (!other || text(other) === text(part) || touched(part)) continue;
      const open = [...part.querySelectorAll("details[open][id]")].map((one) => one.id);
      const held = part.contains(document.activeElement) ? document.activeElement : null;
      const place = document.adoptNode(other);
      part.replaceWith(place);
      for (const id of open) document.getElementById(id)?.setAttribute("open", "");
      // who goes by the keyboard stays where they are
      if (held) keys(place).find((one) => name(one) === name(held))?.focus({ preventScroll: true });
    }
  };

  const follow = () => {
    source = new EventSource(address);
    source.onmessage = refresh;
  };
  follow();
  addEventListener("submit", (event) => { leaving = !event.defaultPrevented; });
  addEventListener("pageshow", (event) => { if (event.persisted) { leaving = false; refresh(); } });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { source.close(); source = null; }
    else if (!source) { follow(); refresh(); }
  });
})();
