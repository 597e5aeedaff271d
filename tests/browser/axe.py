"""axe-core in a page: what violates WCAG 2.2 A or AA, or axe's best practices."""

from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
BY_COLOUR = ["color-contrast", "link-in-text-block"]
"""The rules whose result depends on the colours, and so on light and dark."""
EXPERIMENTAL = ["label-content-name-mismatch", "target-size"]
"""Rules of these levels that axe doesn't run unless they are named."""
_RUN = """async ([context, only, named]) => {
  const rules = Object.fromEntries(named.map((each) => [each, { enabled: true }]));
  const options = { runOnly: only, rules, resultTypes: ["violations"] };
  const found = await axe.run(context || document, options);
  return found.violations.map(
    (each) => [each.id, each.nodes.slice(0, 3).map((node) => node.target.join(" ") + " " +
      (node.any[0] || node.all[0] || node.none[0]).message)]);
}"""


def violations(page: Page, context: Any = None, *, colours_only: bool = False) -> list[Any]:
    """Return the violations of the rules, each with its first elements."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    only = (
        {"type": "rule", "values": BY_COLOUR} if colours_only else {"type": "tag", "values": RULES}
    )
    named = [] if colours_only else EXPERIMENTAL
    found: list[Any] = page.evaluate(_RUN, [context, only, named])
    return found


def scrolls_sideways(page: Page) -> bool:
    """Return whether a page is wider than its window."""
    root = page.locator(":root")  # waits for the element: a page that has just begun has none
    found: bool = root.evaluate("root => root.scrollWidth > window.innerWidth")
    return found
