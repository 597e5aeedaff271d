"""What a person does in a browser, counted: by mouse, or by the keyboard alone."""

from typing import Literal

from playwright.sync_api import FilePayload, Locator, Page, expect

Role = Literal["button", "link"]

TABS = 250
"""The most presses of Tab that lead to anything on a page."""
# One question for each press: to find an element by its role takes longer than all else here.
_FOCUSED = """target => {
  const focused = document.activeElement;
  if (focused === target) return "target";
  const skips = focused?.textContent.trim() === "Skip to the content";
  return skips && target.closest("#content") ? "skip" : "other";
}"""


Target = str | Locator
"""The label of a field, or a field that has none of its own."""


class Journey:
    """A person with a mouse. What is clicked, chosen or filled in counts as one interaction."""

    def __init__(self, tab: Page) -> None:
        self.tab, self.count = tab, 0

    def search(self, text: str, result: str = "") -> None:
        """Fill in the search of the bar, and open its first result, or the one with a title."""
        self.fill(self.tab.locator("#console-search"), text)
        self.count += 1
        if result:
            self._choose_result(self.tab.get_by_role("option", name=result))
        else:
            self.tab.keyboard.press("Enter")

    def fill(self, field: Target, text: str) -> None:
        """Fill in a field."""
        self.count += 1
        self._type(self._field(field), text)

    def choose(self, field: Target, option: str) -> None:
        """Choose an option of a list."""
        self.count += 1
        self._choose(self._field(field), option)

    def check(self, field: Target) -> None:
        """Check a box, or remove its check."""
        self.count += 1
        self._activate(self._field(field), "Space")

    def click(self, role: Role, name: str) -> None:
        """Activate a link or a button."""
        self.count += 1
        self._activate(self.tab.get_by_role(role, name=name, exact=True).first, "Enter")
        self.tab.wait_for_load_state("domcontentloaded")  # of the page that it leads to

    def unfold(self, title: str) -> None:
        """Open a folded part of a page."""
        self.count += 1
        self._activate(self.tab.locator("summary", has_text=title), "Enter")

    def choose_file(self, field: Target, file: FilePayload) -> None:
        """Choose a file by the browser's own dialog."""
        self.count += 1
        with self.tab.expect_file_chooser() as opened:
            self._activate(self._field(field), "Enter")
        opened.value.set_files(file)

    def log_in(self, name: str, password: str) -> None:
        """Log in by the form; it does not count, since numbers of interactions begin after it."""
        before = self.count
        self.fill("Username", name)
        self.fill(self.tab.locator("input[name=password]"), password)
        self.click("button", "Log in")
        self.count = before

    def _field(self, field: Target) -> Locator:
        return field if isinstance(field, Locator) else self.tab.get_by_label(field).first

    def _type(self, field: Locator, text: str) -> None:
        field.fill(text)

    def _choose(self, field: Locator, option: str) -> None:
        field.select_option(label=option)

    def _choose_result(self, option: Locator) -> None:
        option.click()

    def _activate(self, target: Locator, _key: str) -> None:
        target.click()


class KeyboardJourney(Journey):
    """A person without a mouse: Tab, Enter, Space, letters, and the page's shortcuts."""

    def _type(self, field: Locator, text: str) -> None:
        self._reach(field)
        self.tab.keyboard.press("Control+a")
        self.tab.keyboard.type(text)

    def _choose(self, field: Locator, option: str) -> None:
        self._reach(field)
        self.tab.keyboard.type(option)  # a list goes to what begins so
        expect(field.locator("option:checked")).to_have_text(option)

    def _choose_result(self, option: Locator) -> None:
        option.wait_for()
        while option.get_attribute("aria-selected") != "true":
            self.tab.keyboard.press("ArrowDown")
        self.tab.keyboard.press("Enter")

    def _activate(self, target: Locator, key: str) -> None:
        self._reach(target)
        target.press(key)

    def _reach(self, target: Locator) -> None:
        """Press Tab until a control has the focus, which must be visible there."""
        target.wait_for()
        self.tab.wait_for_load_state("load")
        for _ in range(TABS):
            focused = target.evaluate(_FOCUSED)
            if focused == "target":
                expect(target).to_be_in_viewport()
                return
            if focused == "skip":
                self.tab.keyboard.press("Enter")
            self.tab.keyboard.press("Tab")
        raise AssertionError(f"Tab does not lead to {target}")
