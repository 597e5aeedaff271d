// Alpine.js in its build for pages without 'unsafe-eval' (https://alpinejs.dev/advanced/csp), in place of
// the theme's own. It evaluates one expression at a time and knows no globals. The theme's templates use
// a little more, which is rewritten here before Alpine reads it.
import Alpine from "@alpinejs/csp";

const FUNCTIONS = ["theme", "searchForm", "searchDropdown", "searchCommand", "sortRecords", "moveRecords", "getCurrentTab"];
const SIDEBAR = "sidebarDesktopOpen";
const STORED = /\(localStorage\.getItem\('(\w+)'\) !== null\) \? \(localStorage\.getItem\('\1'\) == '1'\) : true/g;
const ADDRESS = /window\.location\.pathname \+ window\.location\.search/g;
// The effect below stores the sidebar's state.
const STORING = /^(\$watch\('sidebarDesktopOpen'|localStorage\.setItem\()/;

const quoted = (text) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

function literals(expression) {
  return expression
    .replace(STORED, (_, name) => String(localStorage.getItem(name) !== "0"))
    .replace(ADDRESS, () => quoted(location.pathname + location.search));
}

function asExpression(statement) {
  const choice = statement.match(/^if \((.*)\) \{ (.*) \} else \{ (.*) \}$/);
  if (choice) return `(${choice[1]}) ? (${choice[2]}) : (${choice[3]})`;
  const condition = statement.match(/^if \((.*)\) (\w.*)$/);
  return condition ? `(${condition[1]}) && (${condition[2]})` : statement;
}

function oneExpression(statements) {
  const expressions = statements
    .split(/;\s*/)
    .map((statement) => statement.trim())
    .filter((statement) => statement && !STORING.test(statement))
    .map(asExpression);
  return expressions.length === 1 ? expressions[0] : `[${expressions.join(", ")}]`;
}

// Choices made in a select2 list are jQuery's events alone, which x-model doesn't hear.
function announceChoices(select) {
  window.django.jQuery(select).on("change", (event) => {
    if (event.isTrigger) select.dispatchEvent(new Event("change", { bubbles: true }));
  });
}

function rewrite(root) {
  for (const element of root.querySelectorAll("*")) {
    for (const { name, value } of [...element.attributes]) {
      if (!name.startsWith("x-")) continue;
      if (name === "x-init" && value.startsWith("const $ = django.jQuery;")) {
        element.removeAttribute(name);
        announceChoices(element);
        continue;
      }
      let text = literals(value);
      if (name === "x-init" || name.startsWith("x-on:")) text = oneExpression(text);
      if (text !== value) element.setAttribute(name, text);
    }
    if (element instanceof HTMLTemplateElement) rewrite(element.content);
  }
}

window.Alpine = Alpine;
document.addEventListener("alpine:init", () => {
  const scope = Object.fromEntries(FUNCTIONS.map((name) => [name, window[name]]));
  Alpine.addScopeToNode(document.documentElement, scope);
  rewrite(document);
});
document.addEventListener("alpine:initialized", () => {
  const page = Alpine.$data(document.body);
  if (!(SIDEBAR in page)) return;
  Alpine.effect(() => localStorage.setItem(SIDEBAR, page[SIDEBAR] ? "1" : "0"));
});
queueMicrotask(() => Alpine.start());
