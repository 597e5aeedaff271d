// A text of a template as it is shown: to be written, or compared.
import { html } from "@codemirror/lang-html";
import { liquid } from "@codemirror/lang-liquid";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

// The colours are those of studio.css, for light and dark.
const colours = HighlightStyle.define([
  { tag: [tags.tagName, tags.keyword], class: "c-syn-tag" },
  { tag: [tags.attributeName, tags.propertyName], class: "c-syn-name" },
  { tag: [tags.string, tags.attributeValue, tags.number], class: "c-syn-value" },
  { tag: [tags.comment, tags.meta], class: "c-syn-quiet" },
  { tag: [tags.variableName, tags.function(tags.variableName)], class: "c-syn-variable" },
]);
const base = html({ autoCloseTags: false, matchClosingTags: false });

// The policy of the page allows the styles that CodeMirror adds by it.
const { nonce } = document.currentScript;

export const shown = (kind, label) => [
  syntaxHighlighting(colours),
  liquid(kind === "html" ? { base } : {}).language,
  EditorView.cspNonce.of(nonce),
  EditorView.lineWrapping,
  EditorView.contentAttributes.of({ "aria-label": label }),
  kind === "line" ? [] : lineNumbers(),
];
