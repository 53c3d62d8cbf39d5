// Search as one types, what changes shown as it happens, and keys. All pages can be read without this.
"use strict";

const TYPING_MS = 20, LIVE_MS = 1500;

// Fills the regions that match from another copy of this page, but never one that somebody is in.
const swap = (text, regions) => {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  for (const old of document.querySelectorAll(regions)) {
    const now = fresh.getElementById(old.id);
    const busy = old.contains(document.activeElement) || old.querySelector("details[open]");
    const keep = old.hasAttribute("data-live") && (busy || now?.innerHTML === old.innerHTML);
    if (now && !keep) old.replaceChildren(...now.childNodes);
  }
};

// Refusals come as JSON, as no page is asked for in their place; they are raised with their words.
const page = async (address, signal) => {
  const answer = await fetch(address, { signal, headers: { Accept: "*/*" } });
  if (!answer.ok) throw new Error((await answer.json()).detail);
  return answer.text();
};

// Shows why there is no answer, in its place: the one before belongs to other words.
const refuse = (error) => {
  const told = document.createElement("p");
  told.className = "problem";
  told.setAttribute("role", "alert");
  told.textContent = error instanceof TypeError ? "The server does not answer." : error.message;
  const places = [...document.querySelectorAll("[data-typed-answer]")];
  for (const place of places) place.replaceChildren();
  places.at(-1).append(told);
};

for (const form of document.querySelectorAll("form[data-typed]")) {
  let waiting, asked;
  const ask = async () => {
    const given = [...new FormData(form)].filter(([, value]) => value !== "");
    const address = `${form.getAttribute("action")}?${new URLSearchParams(given)}`;
    asked?.abort();
    asked = new AbortController();
    try {
      swap(await page(address, asked.signal), "[data-typed-answer]");
      history.replaceState(null, "", address);
    } catch (error) {
      if (error.name !== "AbortError") refuse(error);
    }
  };
  const soon = () => { clearTimeout(waiting); waiting = setTimeout(ask, TYPING_MS); };
  form.addEventListener("input", soon);
  form.addEventListener("change", soon);
}

// A browser opens few connections to one server, so that a page that nobody sees lets go of its stream.
if (document.querySelector("[data-live]")) {
  let stream, waiting;
  const refresh = async () => {
    waiting = undefined;
    try { swap(await page(location.href), "[data-live]"); } catch { /* the server is gone; the stream tries again */ }
  };
  const happened = () => { waiting ??= setTimeout(refresh, LIVE_MS); };
  const follow = () => {
    stream?.close();
    if (document.hidden || !document.body.dataset.events) return;
    stream = new EventSource(document.body.dataset.events);
    for (const name of ["operation_recorded", "refreshed", "session_flushed", "window_filled", "documents_edited", "missed"])
      stream.addEventListener(name, happened);
  };
  document.addEventListener("visibilitychange", () => { follow(); if (!document.hidden) refresh(); });
  addEventListener("pagehide", () => stream?.close());
  follow();
}

// What was summarised is fetched when it is opened; without this there is a link to it.
for (const details of document.querySelectorAll("details[data-load]")) {
  details.addEventListener("toggle", async () => {
    let text;
    try { text = await page(details.dataset.load); } catch { return; }  // the link stays
    const part = new DOMParser().parseFromString(text, "text/html").getElementById(`part-${details.dataset.part}`);
    if (part) details.querySelector("p").replaceWith(part.querySelector("ul"));
  }, { once: true });
}

document.addEventListener("keydown", (event) => {
  const inField = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !inField && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const field = document.querySelector("main input[type=search]") ?? document.querySelector("input[type=search]");
    if (field) { event.preventDefault(); field.focus(); field.select(); }
  } else if (event.key === "Escape" && inField) {
    event.target.blur();
  }
});

// What was typed and is not saved yet is left only after a question.
for (const form of document.querySelectorAll("form[data-unsaved]")) {
  let isSent = false;
  form.opened.value = form.opened.value;  // so that a browser that brings back what was typed brings back this, too
  form.addEventListener("submit", () => { isSent = true; });
  addEventListener("beforeunload", (event) => {
    if (!isSent && form.text.value !== form.opened.value) event.preventDefault();
  });
}
