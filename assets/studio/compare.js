// Two versions of a template's texts side by side, or below each other where there is no room. Without
// this script the page has a unified difference.
import { getChunks, MergeView, unifiedMergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { shown } from "./reading.js";
import { say } from "./words.js";

const COLLAPSED = { margin: 3, minSize: 6 };
const DIFF = { scanLimit: 1000, timeout: 500 };

const readOnly = [EditorState.readOnly.of(true), EditorView.contentAttributes.of({ "aria-readonly": "true" })];

// Returns the editor that has the newer text, and the element of the whole.
function compared({ name, label, language, old, new: next }, { old: before, new: after }, isWide, collapseUnchanged) {
  const kind = language || "text";
  const shared = { highlightChanges: true, gutter: true, collapseUnchanged, diffConfig: DIFF };
  if (isWide) {
    const side = (text, version) => ({ doc: text, extensions: [shown(kind, say("one", { label, number: version })), readOnly] });
    const merge = new MergeView({ a: side(old, before), b: side(next, after), ...shared });
    return { name, view: merge.b, dom: merge.dom, destroy: () => merge.destroy() };
  }
  const both = say("both", { label, before, after });
  const view = new EditorView({
    doc: next,
    extensions: [shown(kind, both), readOnly, unifiedMergeView({ original: old, mergeControls: false, ...shared })],
  });
  return { name, view, dom: view.dom, destroy: () => view.destroy() };
}

function comparison(data) {
  const wide = window.matchMedia("(min-width: 64rem)");
  const all = document.getElementById("compare-all");
  const state = document.getElementById("compare-state");
  let parts = [], at = -1;

  function build() {
    for (const each of parts) each.destroy();
    const collapse = all.getAttribute("aria-pressed") === "true" ? undefined : COLLAPSED;
    parts = data.fields.map((field) => compared(field, data, wide.matches, collapse));
    for (const { name, dom } of parts) {
      const host = Object.assign(document.createElement("div"), { className: "c-code c-compare" });
      host.append(dom);
      document.getElementById(`compare-${name}`).replaceChildren(host);
    }
    at = -1;
  }
  const changes = () => parts.flatMap(({ view }) => (getChunks(view.state)?.chunks || []).map((chunk) => ({ view, chunk })));
  function go(step) {
    const found = changes();
    if (!found.length) return;
    at = at < 0 && step < 0 ? found.length - 1 : (at + step + found.length) % found.length;
    const { view, chunk } = found[at];
    const position = Math.min(chunk.fromB, view.state.doc.length);
    view.dispatch({ selection: { anchor: position }, effects: EditorView.scrollIntoView(position, { y: "center" }) });
    view.focus();
    state.textContent = say("change", { number: at + 1, count: found.length });
  }
  document.getElementById("compare-next").addEventListener("click", () => go(1));
  document.getElementById("compare-previous").addEventListener("click", () => go(-1));
  all.addEventListener("click", () => {
    all.setAttribute("aria-pressed", String(all.getAttribute("aria-pressed") !== "true"));
    build();
  });
  wide.addEventListener("change", build);
  document.getElementById("compare-bar").hidden = false;
  build();
}

const place = document.getElementById("compare-data");
if (place) comparison(JSON.parse(place.textContent));
