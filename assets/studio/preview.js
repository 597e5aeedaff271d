// The rendering: asked for when typing pauses, shown beside the editor, its HTML in a frame.
import { say } from "./words.js";

const show = (name, text) => {
  for (const each of document.querySelectorAll(`[data-show="${name}"]`)) each.textContent = text ?? "";
};

const item = (text, tag = "li") => Object.assign(document.createElement(tag), { textContent: text });

export function showRendering(found) {
  for (const name of ["subject", "text", "title", "body", "image", "link", "badge"]) show(name, found[name]);
  const { sms } = found;
  show("size", sms && say(sms.segments === 1 ? "segment" : "segments", sms));
  show("forced", found.forced?.length ? say("forced", { characters: found.forced.join(" ") }) : "");
  show("data", found.data && Object.entries(found.data).map(([name, text]) => `${name}: ${text}`).join("\n"));
  const missing = found.missing?.length ? [say("missing", { names: found.missing.join(", ") })] : [];
  const warnings = (found.warnings || []).map((each) => `${each.field}: ${each.message}`);
  document.getElementById("studio-warnings").replaceChildren(...[...missing, ...warnings].map((text) => item(text)));
}

// A variable that the texts name and the schema lacks is declared by one click.
export function showUndeclared(names, declare) {
  const place = document.getElementById("studio-undeclared");
  place.replaceChildren(...names.map((name) => {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "c-button c-small", textContent: say("declare", { name }) });
    button.addEventListener("click", () => declare(name));
    const row = item(`${say("undeclared", { name })} `);
    row.append(button);
    return row;
  }));
}

// Of an email's parts one is shown; the others stay in the form.
export function chooseParts(form) {
  const group = document.getElementById("studio-parts");
  if (!group) return;
  const buttons = [...group.querySelectorAll("[data-part]")];
  const show = (chosen) => {
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(button === chosen));
      form.querySelector(`[data-text="${button.dataset.part}"]`).hidden = button !== chosen;
    }
  };
  for (const button of buttons) button.addEventListener("click", () => show(button));
  group.hidden = false;
  show(buttons[0]);
}

export function showProblems(problems, failure) {
  const lines = problems.map((each) => `${each.line ? say("atLine", each) : `${each.field}: ${each.message}`}`);
  if (failure) lines.push(failure);
  const place = document.getElementById("studio-problems");
  const text = lines.join("\n");
  if (place.textContent === text) return;
  place.className = text ? "c-error c-pre" : "";
  place.textContent = text;
}

// The form itself goes to the frame: nothing is stored, and the document has its own policy.
export function showFrame(form) {
  if (!document.getElementsByName("studio-rendering").length) return;
  const { action } = form;
  form.action = form.dataset.frame;
  form.target = "studio-rendering";
  HTMLFormElement.prototype.submit.call(form);
  form.action = action;
  form.removeAttribute("target"); // with one it would be no form to write in: see forms.js
}

export function chooseForms(form, changed) {
  const frame = document.getElementsByName("studio-rendering")[0];
  const text = document.getElementById("studio-text");
  for (const button of document.querySelectorAll("[data-form]")) {
    button.addEventListener("click", () => {
      const kind = button.dataset.form;
      for (const each of document.querySelectorAll("[data-form]")) each.setAttribute("aria-pressed", String(each === button));
      form.elements.form.value = kind;
      frame.hidden = kind === "text";
      text.hidden = kind !== "text";
      frame.classList.toggle("c-phone", kind === "phone");
      frame.classList.toggle("c-dark-frame", kind === "dark");
      changed();
    });
  }
}
