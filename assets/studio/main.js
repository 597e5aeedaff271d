// The template studio. Without this script the page is a form with plain fields.
import { ask, formOf } from "./ask.js";
import { makeEditor, mark } from "./editor.js";
import { makeDraft } from "./draft.js";
import { chooseForms, chooseParts, showFrame, showProblems, showRendering, showUndeclared } from "./preview.js";
import { declare, growRows, variableNames } from "./rows.js";
import { chooseContact, showSamples } from "./samples.js";
import { say } from "./words.js";

const PAUSE = 300;

function studio(form, data) {
  const editors = [];
  let timer = 0, latest = 0;

  async function render() {
    const turn = ++latest;
    const answer = await ask(data.preview, formOf(form));
    if (!answer || turn !== latest) return;
    const { found } = answer;
    if (answer.isForeign) return showProblems([], say("noPreview"));
    const problems = found.problems || found.errors || [];
    for (const each of editors) mark(each, problems.filter(({ field, line }) => line && field === each.name));
    showProblems(problems, found.failure);
    if (!found.fields) return;
    showRendering(found);
    if (data.draft) showUndeclared(found.undeclared, (name) => declare(form, name));
    if (showSamples(found.fields, changed)) return render();
    if (form.elements.form.value !== "text") showFrame(form);
  }
  function changed() {
    clearTimeout(timer);
    timer = setTimeout(render, PAUSE);
  }
  const draft = makeDraft(form, data.draft, { showProblems });
  const written = () => { changed(); draft.changed(); };
  const settings = { completion: data.completion, variables: () => variableNames(form), changed: written };
  for (const field of form.querySelectorAll("[data-editor]")) editors.push(makeEditor(field, settings));
  for (const name of ["badge"]) form.elements[name]?.addEventListener("input", written);
  growRows(form, written);
  chooseForms(form, changed);
  chooseParts(form);
  chooseContact(form, data.contacts, changed);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    draft.flush();
  });
  for (const other of document.querySelectorAll("form[data-flush]")) {
    other.addEventListener("submit", async (event) => {
      const { submitter } = event;
      if (other.dataset.sends === "saved") {
        other.dataset.sends = "sent";
        return;
      }
      event.preventDefault();
      if (other.dataset.sends) return; // pressed twice, it is done once
      other.dataset.sends = "saving";
      const isSaved = await draft.flush();
      other.dataset.sends = isSaved ? "saved" : "";
      if (!isSaved) return;
      for (const each of document.querySelectorAll("#studio-samples [name]")) {
        other.append(Object.assign(document.createElement("input"), { type: "hidden", name: each.name, value: each.value }));
      }
      setTimeout(() => other.requestSubmit(submitter)); // not while the first event is under way
    });
  }
  // A page that the browser has kept, and shows again, has not sent anything yet.
  window.addEventListener("pageshow", () => { for (const each of document.forms) delete each.dataset.sends; });
  render();
}

const place = document.getElementById("studio-data");
if (place) studio(document.getElementById("studio-form"), JSON.parse(place.textContent));
