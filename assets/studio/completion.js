// Completion of Liquid: variables of the schema and what every template sees, filters, tags, partials.
import { htmlCompletionSource } from "@codemirror/lang-html";

const PATH = /(?:^|[\s({,:=|])((?:[\w-]+\.)?[\w-]*)$/;

const options = (names, type) => names.map((label) => ({ label, type }));

function inside(settings, text, at) {
  const { completion } = settings;
  const word = /[\w.-]*$/.exec(text)[0];
  const before = text.slice(0, text.length - word.length);
  if (/\brender\s+['"]$/.test(before)) return { from: at - word.length, options: options(completion.partials, "text") };
  if (/\|\s*$/.test(before)) return { from: at - word.length, options: options(completion.filters, "function") };
  if (/^%-?\s*$/.test(before)) return { from: at - word.length, options: options(completion.tags, "keyword") };
  if (!PATH.test(text)) return null;
  const [owner, member] = word.split(".");
  if (member !== undefined) {
    const members = completion.members[owner];
    return members ? { from: at - member.length, options: options(members, "property") } : null;
  }
  const names = [...settings.variables(), ...Object.keys(completion.members), ...completion.names];
  return { from: at - word.length, options: options(names, "variable") };
}

export function liquidCompletions(settings, isHtml) {
  return (context) => {
    const start = Math.max(0, context.pos - 2000);
    const text = context.state.sliceDoc(start, context.pos);
    const open = Math.max(text.lastIndexOf("{{"), text.lastIndexOf("{%"));
    const close = Math.max(text.lastIndexOf("}}"), text.lastIndexOf("%}"));
    if (open > close) {
      const found = inside(settings, text.slice(open + 1).replace(/^\{/, ""), context.pos);
      return found && (found.from < context.pos || context.explicit || /[.|]\s*$/.test(text)) ? { ...found, validFor: /^[\w-]*$/ } : null;
    }
    return isHtml && context.explicit ? htmlCompletionSource(context) : null;
  };
}
