"use strict";

// Home shows what is true now: its state and figures are read again every few seconds while the page
// is seen, unless the focus is in them.
const SECONDS = 4;

async function readAgain() {
  const shown = document.getElementById("home");
  if (document.hidden || !shown || shown.contains(document.activeElement)) return;
  const answer = await fetch(window.location.href).catch(() => null);
  if (!answer?.ok || answer.redirected) return;
  const text = await answer.text().catch(() => "");
  const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("home");
  if (fresh) shown.replaceWith(fresh);
}

setInterval(readAgain, 1000 * SECONDS);
