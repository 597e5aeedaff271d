// What a template is tried with: a contact, and a field for each plain value of the variables.
import { ask } from "./ask.js";
import { say } from "./words.js";

const PREFIX = "s:";

function control(field) {
  const options = field.kind === "boolean" ? ["true", "false"] : field.choices;
  if (field.kind === "choice" || field.kind === "boolean") {
    const select = document.createElement("select");
    for (const each of options) select.append(new Option(field.kind === "boolean" ? (each === "true" ? say("yes") : say("no")) : each, each));
    return select;
  }
  return document.createElement(field.kind === "list" || field.kind === "numbers" ? "textarea" : "input");
}

// Shows the fields; returns whether there are others than before, with values to render by.
export function showSamples(fields, changed) {
  const place = document.getElementById("studio-samples");
  const shape = JSON.stringify(fields.map(({ path, kind, choices }) => [path, kind, choices]));
  if (place.dataset.shape === shape) return false;
  const before = new Map([...place.querySelectorAll("[name]")].map((each) => [each.name, each.value]));
  place.dataset.shape = shape;
  place.replaceChildren(...fields.map((field, index) => {
    const input = control(field);
    input.id = `sample-${index}`;
    input.name = PREFIX + field.path;
    input.setAttribute("form", "studio-form");
    input.autocomplete = "off";
    input.className = "c-input";
    input.value = before.get(input.name) ?? String(field.value ?? "");
    input.addEventListener("input", changed);
    const label = Object.assign(document.createElement("label"), { htmlFor: input.id, textContent: field.label });
    const box = Object.assign(document.createElement("div"), { className: "c-field" });
    box.append(label, input);
    return box;
  }));
  return fields.length > 0;
}

export function chooseContact(form, address, changed) {
  const field = document.getElementById("studio-contact");
  if (!field) return;
  const list = document.getElementById("studio-contacts");
  let timer, latest = 0;
  const choose = (id, text) => {
    form.elements.contact.value = id;
    field.value = text;
    list.replaceChildren();
    field.focus();
    changed();
  };
  field.addEventListener("input", () => {
    clearTimeout(timer);
    if (!field.value.trim()) return choose("", "");
    timer = setTimeout(async () => {
      const turn = ++latest;
      const answer = await ask(`${address}?q=${encodeURIComponent(field.value)}`);
      if (!answer?.ok || turn !== latest) return;
      const { found } = answer;
      const rows = found.contacts.map(({ id, name, address: shown }) => {
        const text = [name, shown].filter(Boolean).join(", ");
        const button = Object.assign(document.createElement("button"), { type: "button", className: "c-button", textContent: text });
        button.addEventListener("click", () => choose(id, text));
        const row = document.createElement("li");
        row.append(button);
        return row;
      });
      const none = Object.assign(document.createElement("li"), { textContent: found.problem || say("nobody") });
      list.replaceChildren(...(rows.length ? rows : [none]));
    }, 250);
  });
}
