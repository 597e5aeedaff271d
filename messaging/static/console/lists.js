"use strict";

// The panel beside a list shows a row's page, or the part of it that the row names. Without this script,
// and on a phone, a row leads to its page.
const WIDE = window.matchMedia("(min-width: 64rem)");

function peekOf(table, panel) {
  const content = panel.querySelector("#peek-content");
  const rows = [...table.querySelectorAll("tbody tr")].filter((row) => row.querySelector(".c-open"));
  const linkOf = (row) => row.querySelector(".c-open");
  let shown = null;

  function mark(row) {
    for (const each of rows) each.toggleAttribute("data-shown", each === row);
    shown = row;
  }

  async function show(row) {
    mark(row);
    const link = linkOf(row);
    panel.hidden = false;
    panel.querySelector("[data-peek-open]").href = link.href;
    const answer = await fetch(row.dataset.peek || link.href).catch(() => null);
    const text = answer?.ok && (await answer.text().catch(() => ""));
    const parts = new DOMParser().parseFromString(text || "", "text/html").querySelectorAll("[data-peek]");
    if (shown !== row) return;
    if (parts.length) content.replaceChildren(...parts);
    else link.click(); // its page says why, such as that the session has ended
  }

  function close() {
    panel.hidden = true;
    content.replaceChildren();
    const row = shown;
    mark(null);
    if (row) linkOf(row).focus();
  }

  function move(step) {
    const current = shown || document.activeElement.closest("tbody tr");
    const row = rows[rows.indexOf(current) + step];
    if (!row) return;
    linkOf(row).focus();
    row.scrollIntoView({ block: "nearest" });
    if (!panel.hidden) show(row);
  }

  function press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || !WIDE.matches) return;
    if (document.querySelector("dialog:modal")) return;
    const focused = document.activeElement;
    if (focused.closest("input:not([type=checkbox]), select, textarea, details[open], [popover], dialog")) return;
    if (event.key === "Escape" && !panel.hidden) close();
    else if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === " " && focused.matches(".c-open")) show(focused.closest("tr"));
    else if (event.key === "Enter" && !panel.hidden && focused === document.body) linkOf(shown).click();
    else return;
    event.preventDefault();
  }

  table.addEventListener("click", (event) => {
    const row = event.target.closest("tbody tr");
    if (!row || !rows.includes(row) || !WIDE.matches || event.target.closest("a, label, input, button")) return;
    linkOf(row).focus({ preventScroll: true });
    show(row);
  });
  panel.querySelector("[data-peek-close]").addEventListener("click", close);
  document.addEventListener("keydown", press);
  table.classList.add("c-can-peek");
}

// The box in the head ticks all rows; the bar says how many are ticked.
function countTicks(table) {
  const all = table.querySelector("[data-ticks-all]");
  const boxes = [...table.querySelectorAll("tbody [type=checkbox]")];
  const words = document.querySelector("[data-ticked]");
  if (!all || !boxes.length) return;
  all.parentElement.hidden = false;
  function count() {
    const number = boxes.filter((box) => box.checked).length;
    all.checked = number === boxes.length;
    all.indeterminate = number > 0 && number < boxes.length;
    if (words && number) words.textContent = words.dataset.ticked.replace("%s", number);
  }
  all.addEventListener("change", () => {
    for (const box of boxes) box.checked = all.checked;
    count();
  });
  table.addEventListener("change", count);
  count();
}

// A menu of the line closes by Escape and by a click beside it.
function closeMenus(event) {
  for (const menu of document.querySelectorAll("details.c-drop[open]")) {
    const leaves = event.type === "keydown" ? event.key === "Escape" : !menu.contains(event.target);
    if (!leaves) continue;
    menu.open = false;
    if (event.type === "keydown") menu.querySelector("summary").focus();
  }
}

document.addEventListener("DOMContentLoaded", () => {
  const panel = document.getElementById("peek");
  for (const table of document.querySelectorAll(".c-data")) {
    countTicks(table);
    if (panel && table.hasAttribute("data-peeks")) peekOf(table, panel);
  }
  document.addEventListener("keydown", closeMenus);
  document.addEventListener("click", closeMenus);
});
