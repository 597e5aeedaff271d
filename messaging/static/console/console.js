"use strict";

// What the theme leaves to the mouse, or without a name, becomes usable by keyboard and by ear.
const ICON = ".material-symbols-outlined";
const MOUSE_ONLY = "[x-on\\:click]:not(a[href], button, input, select, label, [id$='-close'])";
const NAMES = { dock_to_right: "menu", more_vert: "more", send: "home" };
// The words of scripts, in the language of the page.
const words = () => document.getElementById("page")?.dataset ?? {};

function nameOfIcon(control) {
  const icons = [...control.querySelectorAll(ICON)];
  const text = icons.reduce((rest, icon) => rest.replace(icon.textContent, ""), control.textContent);
  const icon = control.matches(ICON) ? control : icons[0];
  if (!icon || (icon !== control && text.trim()) || control.title) return "";
  const name = icon.textContent.trim();
  return words()[NAMES[name]] || name.replaceAll("_", " ");
}

function pressByKey(event) {
  if (event.target !== event.currentTarget || (event.key !== "Enter" && event.key !== " ")) return;
  event.preventDefault();
  event.currentTarget.click();
}

function completeTheme(root) {
  for (const control of root.querySelectorAll(MOUSE_ONLY)) {
    control.tabIndex = 0;
    control.setAttribute("role", "button");
    control.addEventListener("keydown", pressByKey);
  }
  for (const control of root.querySelectorAll("a[href], button, [role=button]")) {
    const name = nameOfIcon(control);
    if (name && !control.hasAttribute("aria-label")) control.setAttribute("aria-label", name);
  }
  for (const icon of root.querySelectorAll(`${ICON}:not([role])`)) icon.ariaHidden = "true";
  for (const table of root.querySelectorAll(".overflow-x-auto, .readonly table")) table.tabIndex = 0;
}

// Fields of lists and of rows in tables get the name of their label or column.
function nameFields(root) {
  for (const shown of root.querySelectorAll(".select2-selection__rendered[id^='select2-']")) {
    const label = root.querySelector(`label[for='${shown.id.slice(8, -10)}']`);
    if (label) shown.ariaLabel = label.textContent.trim();
  }
  for (const field of root.querySelectorAll("td select, td input, td textarea")) {
    const name = /-\d+-(\w+)$/.exec(field.id);
    if (name && !field.labels?.length && !field.ariaLabel) field.ariaLabel = name[1].replaceAll("_", " ");
  }
  for (const head of root.querySelectorAll("th")) {
    if (head.textContent.trim() || head.querySelector("input")) continue;
    head.append(Object.assign(document.createElement("span"), { className: "c-hidden", textContent: words().remove }));
  }
  for (const help of root.querySelectorAll(".help-tooltip[aria-label]")) help.setAttribute("role", "img");
}

// A page of something that runs shows its progress every two seconds, until it has ended. Where
// `data-running` names an element, only that one changes, every second: the page has fields.
// The header says that nobody did anything, so the session may end meanwhile.
async function showProgress() {
  const running = document.querySelector("[data-running]");
  if (!running) return;
  const part = running.dataset.running || "content";
  const answer = await fetch(window.location.href, { headers: { "X-Rme-Poll": "1" } }).catch(() => null);
  const text = answer?.ok && (await answer.text().catch(() => ""));
  const page = text && new DOMParser().parseFromString(text, "text/html");
  const fresh = page && page.getElementById(part);
  if (fresh) {
    document.getElementById(part).replaceWith(fresh);
    offerCopies(fresh);
  }
  setTimeout(showProgress, part === "content" ? 2000 : 1000);
}

// An account moves up or down in its lane: by its place, which the form sends. Equal places share.
const placeOf = (row) => row.querySelector(".c-place input");

function moveAccount(event) {
  const button = event.currentTarget;
  const row = button.closest("tr");
  const rows = [...row.parentElement.children];
  const up = button.dataset.move === "up";
  const other = rows[rows.indexOf(row) + (up ? -1 : 1)];
  if (!other) return;
  const own = Number(placeOf(row).value);
  const next = Number(placeOf(other).value);
  if (own !== next) {
    [placeOf(row).value, placeOf(other).value] = [next, own];
  } else {
    const behind = (each) => Number(placeOf(each).value) > own || (up && Number(placeOf(each).value) === own);
    for (const each of rows) if (each !== row && behind(each)) placeOf(each).value = Number(placeOf(each).value) + 1;
    if (!up) placeOf(row).value = own + 1;
  }
  if (up) other.before(row); else other.after(row);
  offerOrder(row);
  button.focus();
}

// A dragged account takes the place where it is dropped; others that share a place go on sharing it.
function dragAccount(handle) {
  const row = handle.closest("tr");
  const body = row.parentElement;
  handle.hidden = false;
  handle.addEventListener("dragstart", (event) => {
    row.dataset.dragged = "";
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", "");
    event.dataTransfer.setDragImage(row, 0, 0);
  });
  handle.addEventListener("dragend", () => {
    delete row.dataset.dragged;
    let place = 0;
    let before = null;
    for (const each of body.children) {
      const own = placeOf(each).value;
      if (each === row || own !== before) place += 1;
      before = each === row ? null : own;
      placeOf(each).value = place;
    }
    offerOrder(row);
  });
  row.addEventListener("dragover", (event) => {
    const dragged = body.querySelector("[data-dragged]");
    if (!dragged || dragged === row) return;
    event.preventDefault();
    const { top, height } = row.getBoundingClientRect();
    if (event.clientY < top + height / 2) row.before(dragged); else row.after(dragged);
  });
}

// Where scripts run, the button that saves an order comes when something has changed.
function offerOrder(row) {
  row.closest("form").dataset.typed = "";
  const part = row.closest("form").querySelector("[data-order]");
  part.hidden = false;
  part.open = true;
}

function hideOrder(part) {
  part.hidden = !part.open;
  for (const place of part.closest("form").querySelectorAll(".c-place input")) place.type = "hidden";
  part.closest("form").addEventListener("input", () => offerOrder(part));
}

// A button that copies the text of an element; without scripts it stays hidden.
function offerCopies(root) {
  for (const button of root.querySelectorAll("button[data-copies]")) {
    const source = document.getElementById(button.dataset.copies);
    if (!source || !navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      const label = button.dataset.label || button.textContent;
      button.dataset.label = label;
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = words().copied;
      setTimeout(() => { button.textContent = label; }, 2000);
    });
  }
}

// A line or bars of hours tell the hour under the pointer, or the one that the arrow keys choose.
function tellHour(spark, place) {
  const texts = spark.dataset.texts.split("\n");
  const chosen = Math.max(0, Math.min(texts.length - 1, place));
  const label = spark.querySelector(".c-spark-text") || spark.appendChild(document.createElement("span"));
  label.className = "c-spark-text";
  label.textContent = texts[chosen];
  spark.dataset.place = chosen;
  spark.style.setProperty("--at", chosen / Math.max(1, texts.length - 1));
  // A slider's value is read aloud whenever it changes.
  const states = { role: "slider", "aria-valuemin": 0, "aria-valuemax": texts.length - 1, "aria-valuenow": chosen, "aria-valuetext": texts[chosen] };
  for (const [name, value] of Object.entries(states)) spark.setAttribute(name, value);
}

function tellHourUnderPointer(event) {
  const spark = event.target.closest?.("[data-texts]");
  if (!spark) return;
  const { left, width } = spark.getBoundingClientRect();
  const last = spark.dataset.texts.split("\n").length - 1;
  tellHour(spark, Math.round(last * (event.clientX - left) / width));
}

function tellNextHour(event) {
  const spark = event.target.closest("[data-texts]");
  const last = spark?.dataset.texts.split("\n").length - 1;
  const place = Number(spark?.dataset.place ?? last);
  const places = { ArrowLeft: place - 1, ArrowDown: place - 1, ArrowRight: place + 1, ArrowUp: place + 1, Home: 0, End: last };
  if (!spark || !(event.key in places)) return;
  event.preventDefault();
  tellHour(spark, places[event.key]);
}

function tellLastHour(event) {
  const spark = event.target.closest("[data-texts]");
  if (spark && !spark.dataset.place) tellHour(spark, Infinity);
}

// A field with `data-suggests` offers what that address knows of the typed text; the arrow keys and
// Enter choose, as the pointer does.
class Suggestions {
  constructor(field) {
    this.field = field;
    this.list = Object.assign(document.createElement("ul"), { id: `${field.id}_suggestions`, className: "c-suggestions", hidden: true, role: "listbox", ariaLabel: words().suggestions });
    this.chosen = -1;
    field.after(this.list);
    const states = { role: "combobox", autocomplete: "off", "aria-autocomplete": "list", "aria-controls": this.list.id, "aria-expanded": "false" };
    for (const [name, value] of Object.entries(states)) field.setAttribute(name, value);
    field.addEventListener("input", () => { clearTimeout(this.timer); this.timer = setTimeout(() => this.ask(), 150); });
    field.addEventListener("keydown", (event) => this.press(event));
    field.addEventListener("blur", () => this.show([]));
    // A press of the pointer comes before the field loses the focus.
    this.list.addEventListener("pointerdown", (event) => { event.preventDefault(); this.take(event.target.closest("[role=option]")); });
  }

  async ask() {
    const typed = this.field.value;
    const answer = await fetch(`${this.field.dataset.suggests}?q=${encodeURIComponent(typed)}`).catch(() => null);
    const { contacts } = (answer?.ok && await answer.json().catch(() => null)) || { contacts: [] };
    if (this.field.value === typed && document.activeElement === this.field) this.show(contacts);
  }

  show(contacts) {
    this.list.replaceChildren(...contacts.map(({ typed, name, address }, place) => {
      const option = Object.assign(document.createElement("li"), { id: `${this.list.id}_${place}`, role: "option" });
      option.dataset.typed = typed;
      for (const text of [name, address].filter(Boolean)) option.append(Object.assign(document.createElement("span"), { textContent: text }));
      return option;
    }));
    this.list.hidden = contacts.length === 0;
    this.field.setAttribute("aria-expanded", String(contacts.length > 0));
    this.choose(-1);
  }

  choose(place) {
    const options = [...this.list.children];
    this.chosen = place;
    options.forEach((option, each) => option.setAttribute("aria-selected", String(each === place)));
    if (options[place]) this.field.setAttribute("aria-activedescendant", options[place].id);
    else this.field.removeAttribute("aria-activedescendant");
    options[place]?.scrollIntoView({ block: "nearest" });
  }

  press(event) {
    const count = this.list.children.length;
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (!count) return;
    if (event.key in steps) this.choose((Math.max(this.chosen, steps[event.key] < 0 ? 0 : -1) + steps[event.key] + count) % count);
    else if (event.key === "Enter" && this.chosen >= 0) this.take(this.list.children[this.chosen]);
    else if (event.key === "Escape") this.show([]);
    else return;
    event.preventDefault();
  }

  take(option) {
    if (!option) return;
    this.field.value = option.dataset.typed;
    this.show([]);
    this.field.dispatchEvent(new Event("change", { bubbles: true }));
  }
}

// A link or a form with `data-asks` leads to a page that asks something. Its question opens over this page; without
// scripts, and where the answer has no question, the page itself opens. Closed, the focus is where it was.
let askedBy = null;
let latestQuestion = 0;

async function ask(url, control) {
  const former = control.closest("[data-asked]"); // the link leads from one question to another
  if (former) former.close(); else askedBy = control;
  const turn = ++latestQuestion;
  const answer = await fetch(url).catch(() => null);
  const text = answer?.ok && !answer.redirected && (await answer.text().catch(() => ""));
  const page = new DOMParser().parseFromString(text || "", "text/html");
  if (turn !== latestQuestion) return; // of two quick clicks the last one counts
  const question = page.querySelector("[data-question]");
  if (!question) {
    window.location.href = url;
    return;
  }
  const dialog = document.getElementById("question").content.cloneNode(true).firstElementChild;
  dialog.querySelector("h2").textContent = page.querySelector("h1").textContent;
  dialog.append(question);
  for (const form of dialog.querySelectorAll("form:not([action])")) form.action = url;
  for (const link of question.querySelectorAll("a[href^='?']")) link.href = new URL(link.getAttribute("href"), url);
  dialog.addEventListener("click", (event) => {
    if (!event.target.closest("[data-cancel]")) return;
    event.preventDefault();
    dialog.close();
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (!document.querySelector("[data-asked]")) askedBy.focus();
  });
  document.getElementById("content").append(dialog);
  dialog.showModal();
  dialog.querySelector("[data-question] :is(input:not([type=hidden]), select, textarea, button)")?.focus();
}

function askByLink(event) {
  const link = event.target.closest("a[data-asks]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  ask(link.href, link);
}

function askByForm(event) {
  const { target: form, submitter } = event;
  if (!form.matches("[data-asks]")) return;
  event.preventDefault();
  ask(`${submitter.formAction}?${new URLSearchParams(new FormData(form))}`, submitter);
}

// A dialog that came open, such as with an error, becomes like one that its button has opened: Escape closes it.
function takeOver(dialog) {
  dialog.close();
  dialog.showPopover();
  dialog.querySelector("input:not([type=hidden]), select, textarea")?.focus();
}

// A form whose answer belongs into a frame of the page.
function fillFrame(form) {
  document.getElementsByName(form.target)[0].hidden = false;
  form.submit();
}

document.addEventListener("DOMContentLoaded", () => {
  for (const each of document.querySelectorAll("[data-suggests]")) new Suggestions(each);
  for (const each of document.querySelectorAll("form[data-at-once]")) fillFrame(each);
  for (const each of document.querySelectorAll("[data-move]")) {
    each.hidden = false;
    each.addEventListener("click", moveAccount);
  }
  for (const each of document.querySelectorAll("[data-drag]")) dragAccount(each);
  for (const each of document.querySelectorAll("details[data-order]")) hideOrder(each);
  document.addEventListener("click", askByLink);
  document.addEventListener("submit", askByForm, true);
  for (const each of document.querySelectorAll("dialog[popover][open]")) takeOver(each);
  completeTheme(document);
  setTimeout(showProgress, 1000);
  offerCopies(document);
  document.addEventListener("pointermove", tellHourUnderPointer);
  document.addEventListener("keydown", tellNextHour);
  document.addEventListener("focusin", tellLastHour);
  for (const each of document.querySelectorAll("select[data-goes]")) {
    each.addEventListener("change", () => { window.location.href = each.value; });
  }
});
// The theme builds some of its fields when the page has loaded.
window.addEventListener("load", () => setTimeout(() => nameFields(document)));
