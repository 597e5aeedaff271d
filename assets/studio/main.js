// The template studio. Without this script the page is a form with plain fields.
import { ask, formOf } from "./ask.js";
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
    const answer = await ask(data.preview, formOf(form));
    if (!answer || turn !== latest) return;
    const { found } = answer;
    if (answer.isForeign) return showProblems([], "There is no rendering: you are logged out, or may not see it any more.");
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
      const { submitter } = event;
      if (other.dataset.isSent || !(await draft.flush()) || other.dataset.isSent) return;
      other.dataset.isSent = "yes"; // pressed twice, it is done once
      draft.leave();
      for (const each of document.querySelectorAll("#studio-samples [name]")) {
        other.append(Object.assign(document.createElement("input"), { type: "hidden", name: each.name, value: each.value }));
      }
      other.append(Object.assign(document.createElement("input"), { type: "hidden", name: "do", value: submitter.value }));
      other.submit();
    });
  }
  // A page that the browser has kept, and shows again, has not sent anything yet.
  window.addEventListener("pageshow", () => { for (const each of document.forms) delete each.dataset.isSent; });
  render();
}

const place = document.getElementById("studio-data");
if (place) studio(document.getElementById("studio-form"), JSON.parse(place.textContent));
