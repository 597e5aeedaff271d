// The editors: CodeMirror over each text of the form, which keeps the text for the server.
import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap } from "@codemirror/view";
import { liquidCompletions } from "./completion.js";
import { shown } from "./reading.js";

const oneLine = EditorState.transactionFilter.of((change) =>
  change.newDoc.lines > 1
    ? [{ changes: { from: 0, to: change.startState.doc.length, insert: change.newDoc.toString().replace(/\s*\n\s*/g, " ") } }]
    : change);

// Without the Tab key, which leads out of the editor as from any other field.
const keys = keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap, ...searchKeymap, ...lintKeymap]);

export function makeEditor(field, settings) {
  const kind = field.dataset.editor;
  const label = field.labels[0].textContent.trim();
  const view = new EditorView({
    doc: field.value,
    extensions: [
      shown(kind, label),
      EditorView.editorAttributes.of({ class: kind === "line" ? "c-code c-code-line" : "c-code c-code-block" }),
      EditorView.contentAttributes.of({ spellcheck: "true" }),
      EditorState.readOnly.of(field.readOnly),
      kind === "line" ? [] : [highlightActiveLineGutter(), lintGutter()],
      history(),
      drawSelection(),
      bracketMatching(),
      autocompletion({ override: [liquidCompletions(settings, kind === "html")], icons: false }),
      kind === "line" ? oneLine : [highlightActiveLine(), highlightSelectionMatches()],
      keys,
      EditorView.updateListener.of((update) => {
        if (!update.docChanged) return;
        field.value = update.state.doc.toString();
        settings.changed();
      }),
    ],
  });
  field.hidden = true;
  field.labels[0].htmlFor = "";
  field.after(view.dom);
  field.removeAttribute("id");
  // The page fills the field in again if its text was lost.
  field.addEventListener("input", () => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: field.value } }));
  return { name: field.name, view };
}

// Marks problems at their places; columns and lines count from 1.
export function mark(editor, problems) {
  const { doc } = editor.view.state;
  const found = problems.map(({ line, column, message }) => {
    const at = doc.line(Math.min(line, doc.lines));
    const from = Math.min(at.from + column - 1, at.to);
    return { from, to: Math.min(Math.max(from + 1, from), doc.length), severity: "error", message };
  });
  editor.view.dispatch(setDiagnostics(editor.view.state, found));
}
