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

  const put = (fresh) => {
    document.title = fresh.title;
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = fresh.getElementById(part.id);
      if (!other || other.outerHTML === part.outerHTML || touched(part)) continue;
      const open = [...part.querySelectorAll("details[open][id]")].map((one) => one.id);
      const place = document.adoptNode(other);
      part.replaceWith(place);
      for (const id of open) document.getElementById(id)?.setAttribute("open", "");
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
