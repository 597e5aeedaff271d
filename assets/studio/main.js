// The template studio. Without this script the page is a form with plain fields.
import { makeEditor, mark, writeBack } from "./editor.js";
import { makeDraft } from "./draft.js";
import { chooseForms, showFrame, showProblems, showRendering } from "./preview.js";
import { growRows, variableNames } from "./rows.js";
import { chooseContact, showSamples } from "./samples.js";

const PAUSE = 300;

function studio(form, data) {
  const editors = [];
  const write = () => editors.forEach(writeBack);
  let timer = 0, latest = 0;

  async function render() {
    write();
    const turn = ++latest;
    const answer = await fetch(data.preview, { method: "POST", body: new URLSearchParams(new FormData(form)) }).catch(() => null);
    if (!answer || turn !== latest) return;
    const found = await answer.json().catch(() => ({ errors: [{ field: "", message: "The server does not answer." }] }));
    if (turn !== latest) return;
    const problems = found.problems || found.errors || [];
    for (const each of editors) mark(each, problems.filter(({ field, line }) => line && field === each.name));
    showProblems(problems, found.failure);
    if (!found.fields) return;
    showRendering(found);
    if (showSamples(found.fields, changed)) return render();
    if (form.elements.form.value !== "text") showFrame(form);
  }
  function changed() {
    clearTimeout(timer);
    timer = setTimeout(render, PAUSE);
  }
  const draft = makeDraft(form, data.draft, { write, showProblems });
  const written = () => { changed(); draft.changed(); };
  const settings = { completion: data.completion, variables: () => variableNames(form), changed: written };
  for (const field of form.querySelectorAll("[data-editor]")) editors.push(makeEditor(field, settings));
  for (const name of ["badge"]) form.elements[name]?.addEventListener("input", written);
  growRows(form, written);
  chooseForms(form, changed);
  chooseContact(form, data.contacts, changed);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    draft.flush();
  });
  for (const other of document.querySelectorAll("form[data-flush]")) {
    other.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (!(await draft.flush())) return;
      draft.leave();
      for (const each of document.querySelectorAll("#studio-samples [name]")) {
        other.append(Object.assign(document.createElement("input"), { type: "hidden", name: each.name, value: each.value }));
      }
      other.append(Object.assign(document.createElement("input"), { type: "hidden", name: "do", value: event.submitter.value }));
      other.submit();
    });
  }
  render();
}

const place = document.getElementById("studio-data");
if (place) studio(document.getElementById("studio-form"), JSON.parse(place.textContent));
