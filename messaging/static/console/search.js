"use strict";

// Search while typing: a field and the results below it, in the bar (⌘K) and in the switcher.
// The server answers with both parts of what is shown: the results, and what is said about them.
const TYPING_PAUSE = 120;

class Finder {
  constructor(form) {
    this.form = form;
    this.field = form.querySelector("[role=combobox]");
    this.list = form.querySelector("[role=listbox]");
    this.status = form.querySelector("[role=status]");
    this.unfiltered = document.getElementById(form.dataset.filters);
    this.field.value = "";
    this.stop();
    this.field.addEventListener("input", () => this.wait());
    this.field.addEventListener("keydown", (event) => this.press(event));
  }

  get options() {
    return [...this.list.querySelectorAll("[role=option]")];
  }

  get selected() {
    return this.list.querySelector("[aria-selected=true]");
  }

  // Nothing stays selected, and no answer that comes later shows anything.
  stop() {
    this.request?.abort();
    clearTimeout(this.timer);
    this.isWaiting = this.opensFirst = false;
    this.show([], []);
  }

  wait() {
    clearTimeout(this.timer);
    this.request?.abort(); // its results are of another text
    this.isWaiting = true;
    this.opensFirst = false;
    this.timer = setTimeout(() => this.find(), TYPING_PAUSE);
  }

  async find() {
    clearTimeout(this.timer);
    this.request?.abort();
    this.request = new AbortController();
    const { signal } = this.request;
    const query = new URLSearchParams(new FormData(this.form));
    const answer = await fetch(`${this.form.dataset.finds}?${query}`, { signal }).catch(() => null);
    const text = answer?.ok && !answer.redirected && (await answer.text().catch(() => ""));
    if (signal.aborted) return;
    const parts = new DOMParser().parseFromString(text || "", "text/html").body.children;
    this.isWaiting = false;
    if (parts.length === 2) this.show(parts[0].children, parts[1].childNodes);
    else this.show([], [this.status.dataset.failed]);
    if (this.opensFirst) this.open();
  }

  show(results, words) {
    this.list.replaceChildren(...results);
    this.status.replaceChildren(...words);
    const isOpen = this.options.length > 0;
    this.list.hidden = !isOpen;
    this.field.ariaExpanded = String(isOpen);
    if (this.unfiltered) this.unfiltered.hidden = this.field.value.trim() !== "";
    this.select(this.field.value.trim() ? this.options[0] : null);
  }

  select(option) {
    if (this.selected) this.selected.ariaSelected = "false";
    this.field.removeAttribute("aria-activedescendant");
    if (!option) return;
    option.ariaSelected = "true";
    option.scrollIntoView({ block: "nearest" });
    this.field.setAttribute("aria-activedescendant", option.id);
  }

  move(step) {
    const { options } = this;
    const place = options.indexOf(this.selected);
    const next = place < 0 && step < 0 ? options.length - 1 : place + step;
    this.select(options[(next + options.length) % options.length]);
  }

  press(event) {
    if (event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      this.move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (!this.isWaiting) this.open();
      else {
        this.opensFirst = true;
        this.find();
      }
    }
  }

  open() {
    if (this.selected) this.selected.click();
    else if (this.field.value.trim()) this.form.submit();
  }
}

// The search of the bar. Its results open when somebody clicks into the field, types or presses the shortcut, but not
// when Tab passes by. On a narrow page, a button opens the field first.
class BarSearch {
  constructor(form) {
    this.form = form;
    this.finder = new Finder(form);
    this.field = this.finder.field;
    this.panel = form.querySelector(".c-search-panel");
    this.origin = null; // where the focus was before
    this.field.addEventListener("click", () => this.open());
    this.field.addEventListener("input", () => { this.panel.hidden = false; });
    form.addEventListener("keydown", (event) => this.press(event));
    form.addEventListener("focusout", (event) => { if (!form.contains(event.relatedTarget)) this.hide(); });
    form.querySelector("[data-closes]").addEventListener("click", () => this.close());
    this.panel.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
  }

  open() {
    const { activeElement } = document;
    if (!this.form.contains(activeElement)) this.origin = activeElement;
    this.form.dataset.open = "";
    this.field.focus();
    if (!this.panel.hidden) return;
    this.panel.hidden = false;
    this.finder.find();
  }

  hide() {
    this.finder.stop();
    this.panel.hidden = true;
    this.origin = null;
    delete this.form.dataset.open;
  }

  close() {
    const { origin } = this;
    this.field.value = "";
    this.hide();
    if (origin) this.field.blur();
    origin?.focus();
  }

  press(event) {
    if (event.isComposing) return;
    if (event.key === "Escape" && !this.panel.hidden) this.close();
    else if (event.key === "ArrowDown" && this.panel.hidden) this.open();
    else return;
    event.preventDefault();
  }
}

function prepareBarSearch(link) {
  const form = document.getElementById(link.dataset.opens);
  const search = new BarSearch(form);
  search.field.setAttribute("aria-keyshortcuts", "Control+K Meta+K /");
  if (!/Mac|iP(hone|ad)/.test(navigator.platform)) form.querySelector("kbd").textContent = "Ctrl K";
  link.setAttribute("role", "button");
  link.addEventListener("click", (event) => {
    event.preventDefault();
    search.open();
  });
  link.addEventListener("keydown", (event) => {
    if (event.key === " ") link.click();
    if (event.key === " ") event.preventDefault();
  });
  // ⌘K and Ctrl K lead to it, as / does outside of fields; not behind a question.
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
    const isShortcut = (event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k";
    if (!isShortcut && (event.key !== "/" || isTyping)) return;
    if (document.querySelector("dialog:modal")) return;
    event.preventDefault();
    search.open();
    search.field.select();
  });
}

document.addEventListener("DOMContentLoaded", () => {
  for (const each of document.querySelectorAll("[data-opens]")) prepareBarSearch(each);
  for (const each of document.querySelectorAll(".c-menu form[data-finds]")) new Finder(each);
});
