// The editors: CodeMirror over each text of the form, which keeps the text for the server.
import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { html } from "@codemirror/lang-html";
import { liquid } from "@codemirror/lang-liquid";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import {
  drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { liquidCompletions } from "./completion.js";

// The colours are those of studio.css, for light and dark.
const colours = HighlightStyle.define([
  { tag: [tags.tagName, tags.keyword], class: "c-syn-tag" },
  { tag: [tags.attributeName, tags.propertyName], class: "c-syn-name" },
  { tag: [tags.string, tags.attributeValue, tags.number], class: "c-syn-value" },
  { tag: [tags.comment, tags.meta], class: "c-syn-quiet" },
  { tag: [tags.variableName, tags.function(tags.variableName)], class: "c-syn-variable" },
]);
const base = html({ autoCloseTags: false, matchClosingTags: false });
const oneLine = EditorState.transactionFilter.of((change) =>
  change.newDoc.lines > 1
    ? [{ changes: { from: 0, to: change.startState.doc.length, insert: change.newDoc.toString().replace(/\s*\n\s*/g, " ") } }]
    : change);

export function extensionsOf(kind, label, settings) {
  const shared = [
    syntaxHighlighting(colours),
    liquid(kind === "html" ? { base } : {}).language,
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "true" }),
  ];
  if (settings.isReadOnly) shared.push(EditorState.readOnly.of(true));
  if (kind !== "line") shared.push(lineNumbers(), highlightActiveLineGutter(), lintGutter());
  return shared;
}

// Without the Tab key, which leads out of the editor as from any other field.
const keys = keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap, ...searchKeymap, ...lintKeymap]);

export function makeEditor(field, settings) {
  const kind = field.dataset.editor;
  const label = field.labels[0].textContent.trim();
  const view = new EditorView({
    doc: field.value,
    extensions: [
      extensionsOf(kind, label, { isReadOnly: field.readOnly }),
      history(),
      drawSelection(),
      bracketMatching(),
      autocompletion({ override: [liquidCompletions(settings, kind === "html")], icons: false }),
      kind === "line" ? oneLine : [highlightActiveLine(), highlightSelectionMatches()],
      keys,
      EditorView.updateListener.of((update) => update.docChanged && settings.changed()),
    ],
  });
  view.dom.classList.add("c-code", kind === "line" ? "c-code-line" : "c-code-block");
  field.hidden = true;
  field.labels[0].htmlFor = "";
  field.after(view.dom);
  field.removeAttribute("id");
  return { name: field.name, field, view };
}

export function writeBack(editor) {
  editor.field.value = editor.view.state.doc.toString();
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
