"use strict";

// Times are written in the organization's zone by the server; a browser knows the reader's.
function showLocalTimes(root) {
  for (const each of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(each.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    each.title = each.dateTime;
    const parts = (options) => new Intl.DateTimeFormat("en-GB", options).format(moment);
    const day = parts({ day: "numeric", month: "short", year: "numeric" });
    each.textContent = `${day}, ${parts({ hour: "2-digit", minute: "2-digit", second: "2-digit" })}`;
  }
}

// ⌘K and Ctrl K lead to the search field, as / does outside of fields.
function focusSearch(event) {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  const shortcut = (event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k";
  if (!shortcut && (event.key !== "/" || typing)) return;
  const field = document.getElementById("console-search");
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
}

document.addEventListener("DOMContentLoaded", () => {
  showLocalTimes(document);
  document.addEventListener("keydown", focusSearch);
  for (const each of document.querySelectorAll("select[data-goes]")) {
    each.addEventListener("change", () => { window.location.href = each.value; });
  }
});
