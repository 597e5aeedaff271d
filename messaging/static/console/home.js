"use strict";

// Home shows what is true now: its state and figures are read again every few seconds while the page
// is seen, unless the focus is in them or the pointer on a line. The header says that nobody did anything: see `is_poll`.
const SECONDS = 4;

async function readAgain() {
  const shown = document.getElementById("home");
  if (document.hidden || !shown || shown.contains(document.activeElement)) return;
  if (shown.querySelector(".c-spark:hover")) return;
  const poll = { headers: { "X-Rme-Poll": "1" }, redirect: "manual" };
  const answer = await fetch(shown.dataset.address, poll).catch(() => null);
  // The session has ended: lead to the log-in.
  if (answer?.type === "opaqueredirect") window.location.assign(shown.dataset.address);
  if (!answer?.ok) return;
  const text = await answer.text().catch(() => "");
  const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("home");
  if (fresh) shown.replaceWith(fresh);
}

setInterval(readAgain, 1000 * SECONDS);
