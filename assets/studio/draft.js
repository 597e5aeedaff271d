// The draft is saved when typing pauses. What somebody else has changed meanwhile is never overwritten. The
// form says in `data-unsaved` whether something isn't saved yet: the page asks before it is lost.
import { ask, formOf } from "./ask.js";

const LOGGED_OUT = "Not saved: you are logged out, or may not write here any more. Log in in another window; the next change tries again.";
const AWAY = "Not saved: the server does not answer. The next change tries again.";
const say = (text) => { document.getElementById("studio-state").textContent = text; };

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
    say("Saving …");
    const answer = await ask(address, body);
    if (!answer || answer.isForeign) {
      mark(true);
      say(answer ? LOGGED_OUT : AWAY);
      return false;
    }
    const { ok, found } = answer;
    if (ok) {
      adopt(found);
      notice.hidden = true;
      stopped = false;
      say(`Draft ${found.version} is saved.`);
      return true;
    }
    mark(true);
    if (found.changed) {
      stopped = true;
      notice.hidden = false;
      notice.querySelector("span").textContent = `${found.changed.by} has changed this template meanwhile. Your text is not saved, and nothing was overwritten. `;
    } else showProblems(found.errors || [], "");
    say("Not saved.");
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
