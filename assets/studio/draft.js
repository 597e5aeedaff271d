// The draft is saved when typing pauses. What somebody else has changed meanwhile is never overwritten. The
// form says in `data-unsaved` whether something isn't saved yet: the page asks before it is lost.
import { ask, formOf } from "./ask.js";
import { say } from "./words.js";

const show = (text) => { document.getElementById("studio-state").textContent = text; };

export function makeDraft(form, address, { showProblems }) {
  const notice = document.getElementById("studio-changed");
  let dirty = false, saving = null, timer = 0, stopped = !address;
  const mark = (isDirty) => {
    dirty = isDirty;
    form.dataset.unsaved = dirty && address ? "yes" : "no";
  };
  mark(false);

  function adopt(found) {
    for (const name of ["version", "revision"]) {
      for (const each of document.querySelectorAll(`[data-flush] [name=${name}], #studio-form [name=${name}]`)) each.value = found[name];
    }
    for (const each of document.querySelectorAll("[data-draft]")) each.hidden = false;
  }

  async function send(anew) {
    mark(false);
    const body = formOf(form);
    if (anew) body.set("anew", "1");
    show(say("saving"));
    const answer = await ask(address, body);
    if (!answer || answer.isForeign) {
      mark(true);
      show(say(answer ? "loggedOut" : "away"));
      return false;
    }
    const { ok, found } = answer;
    if (ok) {
      adopt(found);
      notice.hidden = true;
      stopped = false;
      show(say("saved", { number: found.version }));
      return true;
    }
    mark(true);
    if (found.changed) {
      stopped = true;
      notice.hidden = false;
      notice.querySelector("span").textContent = `${say("changed", { person: found.changed.by })} `;
    } else showProblems(found.errors || [], "");
    show(say("notSaved"));
    return false;
  }

  const save = (anew = false) => {
    clearTimeout(timer);
    saving = (saving || Promise.resolve()).then(() => send(anew));
    return saving;
  };
  notice.querySelector("[data-load]").addEventListener("click", () => { mark(false); window.location.reload(); });
  notice.querySelector("[data-anew]").addEventListener("click", () => save(true));

  return {
    changed() {
      mark(true);
      clearTimeout(timer);
      if (!stopped) timer = setTimeout(() => save(), 1000);
    },
    // What a button does concerns the text as it stands in the editor, so that is saved first.
    async flush() {
      if (dirty && !stopped) return save();
      return saving ? saving.then(() => !dirty) : !dirty;
    },
  };
}
