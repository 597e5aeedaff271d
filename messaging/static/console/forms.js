"use strict";

// Input survives. Whoever leaves a changed form is asked first. What a form had when the page went is stored
// for this tab: if the next page isn't a page of the console (the session has ended, or the server has failed),
// the form is filled in again when the same person comes back to it. Passwords, codes and files aren't stored.
const STORED = "rme-input";
const BACK = "input-back"; // in the address by which a page without scripts leads back to its form
const SECRET = "[type=password], [type=file], [autocomplete*=password], [autocomplete=one-time-code], [data-secret]";
const SEEN = "[name=version], [name=revision]"; // by them the server finds what others have changed meanwhile
const NO_INPUT = "[type=hidden]:not([name=version], [name=revision]), [type=submit], [type=button], [type=reset], [type=image], :disabled, [readonly]";

// The forms in which people write. A form with a target fills a frame; ticked rows of a list are no input.
const writtenForms = () => document.querySelectorAll("#content form[method=post]:not([target], [data-ticks], #changelist-form)");
const fieldsOf = (form) => [...form.elements].filter((field) => field.name && field.matches("input, select, textarea") && !field.matches(NO_INPUT));

// The value that a field had when it came from the server, as the browser writes it.
function firstValue(field) {
  if (field.matches("textarea")) return field.defaultValue;
  const input = Object.assign(document.createElement("input"), { type: field.type, defaultValue: field.defaultValue });
  return input.value;
}

function isChanged(field) {
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  if (field.type === "file") return field.files.length > 0;
  if (field.type === "hidden") return false;
  if (!field.matches("select")) return field.value !== firstValue(field);
  const options = [...field.options];
  const hasDefault = field.multiple || options.some((option) => option.defaultSelected);
  return hasDefault ? options.some((option) => option.selected !== option.defaultSelected) : field.selectedIndex > 0;
}

// A form that saves itself says in `data-unsaved` whether something isn't saved. Where the server has refused
// what was typed, nothing of it is saved. In a form with `data-typed`, its first values aren't saved either.
const wasRefused = (form) => form.querySelector("[role=alert]") !== null;
const wasTyped = (form) => form.dataset.typed !== undefined;
const hasLoss = (form) => (form.dataset.unsaved ? form.dataset.unsaved === "yes" : wasRefused(form) || fieldsOf(form).some(isChanged));

let submitted = null; // the form that is on its way

function askBeforeLoss(event) {
  const others = [...writtenForms()].filter((form) => form !== submitted);
  if (others.some((form) => hasLoss(form) || (!submitted && wasTyped(form)))) event.preventDefault();
}

// --- what is stored -----------------------------------------------------------------------------------
const person = () => document.querySelector("[data-user]")?.dataset.user;

function place(url = location) {
  const address = new URL(url, location);
  address.searchParams.delete(BACK);
  return address.pathname + address.search;
}

function read() {
  try {
    return JSON.parse(sessionStorage.getItem(STORED));
  } catch {
    return null;
  }
}
const write = (input) => sessionStorage.setItem(STORED, JSON.stringify(input));
const forget = () => sessionStorage.removeItem(STORED);

const nameOf = (form) => form.getAttribute("aria-label") || form.id || form.getAttribute("action") || "";
const sameForms = (name) => [...writtenForms()].filter((form) => nameOf(form) === name);

function valueOf(field) {
  if (field.type === "checkbox" || field.type === "radio") return field.checked;
  return field.matches("select") ? [...field.selectedOptions].map(({ value, text }) => [value, text]) : field.value;
}

const fieldKey = (field) => (field.type === "checkbox" || field.type === "radio" ? `${field.name}=${field.value}` : field.name);

// The input of a question that opened over this page comes back on the question's page.
function store() {
  const question = submitted?.closest("[data-asked]") ?? null;
  const here = [...writtenForms()].filter((form) => form.closest("[data-asked]") === question);
  const forms = here.filter((form) => form === submitted || hasLoss(form) || wasTyped(form)).map((form) => {
    const isWhole = wasRefused(form) || wasTyped(form) || form.dataset.unsaved;
    const isStored = (field) => isWhole || isChanged(field) || field.matches(SEEN);
    const fields = fieldsOf(form).filter((field) => !field.matches(SECRET) && isStored(field));
    const hasInput = fields.some((field) => !field.matches(SEEN));
    return { hasInput, name: nameOf(form), place: here.filter((other) => nameOf(other) === nameOf(form)).indexOf(form), fields: fields.map((field) => [fieldKey(field), valueOf(field)]) };
  });
  const input = { person: person(), place: question ? place(submitted.getAttribute("action")) : place(), over: question && place(), forms: forms.filter(({ hasInput }) => hasInput) };
  if (input.person && input.forms.length) write(input);
}

// --- how it comes back --------------------------------------------------------------------------------
const returned = new WeakMap(); // form: its fields by their keys, as they were stored

function fillField(field, value) {
  if (JSON.stringify(valueOf(field)) === JSON.stringify(value)) return;
  if (typeof value === "boolean") field.checked = value;
  else if (typeof value === "string") field.value = value;
  else {
    for (const option of field.options) option.selected = false;
    for (const [key, text] of value) {
      const option = [...field.options].find((candidate) => candidate.value === key);
      if (option) option.selected = true;
      else field.add(new Option(text, key, false, true)); // of a list that the server searches
    }
  }
  for (const name of ["input", "change"]) field.dispatchEvent(new Event(name, { bubbles: true }));
}

function fillIn(form) {
  for (const [key, value] of returned.get(form) || []) {
    const field = fieldsOf(form).find((candidate) => fieldKey(candidate) === key && !candidate.matches(SECRET));
    if (field) fillField(field, value);
  }
}

function reveal(form) {
  for (let part = form; part; part = part.parentElement) {
    if (part.matches("details")) part.open = true;
    if (part.matches("dialog:not([open], [popover])")) part.showModal();
    if (part.matches("[popover]:not(:popover-open)")) part.showPopover();
  }
  const notice = document.getElementById("input-notice").content.cloneNode(true);
  form.prepend(notice);
  form.scrollIntoView({ block: "nearest" });
}

function bringBack(input) {
  for (const { name, place: index, fields } of input.forms) {
    const form = sameForms(name)[index];
    if (!form) continue;
    returned.set(form, fields);
    reveal(form);
    fillIn(form);
  }
}

function takeUp() {
  const input = read();
  if (!input) return;
  const isRefused = !person() || document.querySelector("[data-refused]") !== null;
  const isBack = new URL(location).searchParams.has(BACK) || performance.getEntriesByType("navigation")[0]?.type === "back_forward";
  if (isRefused) write({ ...input, isRefused: true });
  else if (input.person !== person() || !(input.isRefused || isBack)) forget();
  else if (input.over === place()) location.replace(input.place);
  else if (input.place === place()) {
    forget();
    bringBack(input);
  }
}

// --- fields that change -------------------------------------------------------------------------------
// A choice that changes which fields its form has: the server answers with that part of the page. Of two
// quick choices the last one counts, whichever answer comes first.
function refreshFields(choice) {
  const part = choice.dataset.refreshes;
  let latest = 0;
  choice.addEventListener("change", async () => {
    const turn = ++latest;
    const answer = await fetch(window.location.href, { method: "POST", body: new FormData(choice.form) }).catch(() => null);
    const text = answer?.ok && (await answer.text().catch(() => ""));
    const fresh = text && new DOMParser().parseFromString(text, "text/html").getElementById(part);
    if (!fresh || turn !== latest) return;
    document.getElementById(part).replaceWith(fresh);
    choice.form.dataset.typed = "";
    fillIn(choice.form);
  });
}

// A field for several choices takes the list of another field. Its button makes a box of the chosen option.
function addChoice(button) {
  const field = button.previousElementSibling;
  const list = button.form.elements[button.dataset.adds].cloneNode(true);
  list.prepend(new Option(field.ariaLabel, ""));
  for (const option of list.options) option.defaultSelected = !option.value; // else it counts as changed
  list.value = "";
  for (const name of ["id", "name", "aria-label"]) list.setAttribute(name, field.getAttribute(name));
  for (const { value } of field.form.querySelectorAll(`[type=checkbox][name="${field.name}"]`)) {
    for (const option of list.options) if (option.value === value) option.remove();
  }
  field.replaceWith(list);
  button.hidden = false;
  button.addEventListener("click", () => {
    const [option] = list.selectedOptions;
    if (!option.value) return;
    const box = Object.assign(document.createElement("input"), { type: "checkbox", name: list.name, value: option.value, checked: true });
    const label = Object.assign(document.createElement("label"), { className: "c-check" });
    label.append(box, ` ${option.text}`);
    button.parentElement.before(label);
    option.remove();
    list.value = "";
    list.focus();
  });
}

// A button that makes a passkey and sends it with its form, without the fields of a password.
function offerPasskey(part) {
  if (!window.PublicKeyCredential) return;
  part.hidden = false;
  const button = part.querySelector("button");
  const { form } = button;
  const names = [...form.elements].filter((field) => field.required);
  button.addEventListener("click", async () => {
    if (!names.every((field) => field.reportValidity())) return;
    const options = JSON.parse(document.getElementById(part.dataset.passkey).textContent);
    const state = part.querySelector("[role=status]");
    state.textContent = "";
    const credential = await window.webauthnJSON.create(options).catch(() => null);
    if (!credential) {
      state.textContent = state.dataset.failed;
      return;
    }
    form.elements.credential.value = JSON.stringify(credential);
    form.submit();
  });
}

document.addEventListener("DOMContentLoaded", () => {
  for (const each of document.querySelectorAll("[data-passkey]")) offerPasskey(each);
  for (const each of document.querySelectorAll("[data-refreshes]")) refreshFields(each);
  for (const each of document.querySelectorAll("[data-adds]")) addChoice(each);
  takeUp();
});
let isLoggedOut = false;
let submittedAt = 0;
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented) return;
  // A second click within two seconds is a double click: what it would add is there already.
  if (submitted === event.target && event.timeStamp - submittedAt < 2000) {
    event.preventDefault();
    return;
  }
  submitted = event.target;
  submittedAt = event.timeStamp;
  if (submitted.id === "logout-form") isLoggedOut = true;
});
document.addEventListener("input", () => { submitted = null; });
window.addEventListener("beforeunload", askBeforeLoss);
window.addEventListener("pageshow", (event) => { if (event.persisted) submitted = null; });
window.addEventListener("pagehide", () => { if (isLoggedOut) forget(); else store(); });
