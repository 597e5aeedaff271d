"""What a person does in a browser, counted: by mouse, or by the keyboard alone."""

from playwright.sync_api import Locator, Page, expect

TABS = 250
"""The most presses of Tab that lead to anything on a page."""


class Journey:
    """A person with a mouse. What is clicked, chosen or filled in counts as one interaction."""

    def __init__(self, tab: Page) -> None:
        self.tab, self.count = tab, 0

    def search(self, text: str) -> None:
        """Type into the search field by its shortcut, and press Enter."""
        self.count += 1
        self.tab.keyboard.press("Control+k")
        expect(self.tab.locator("#console-search")).to_be_focused()
        self.tab.keyboard.type(text)
        self.tab.keyboard.press("Enter")

    def fill(self, label: str, text: str) -> None:
        """Fill in the field with a label."""
        self.count += 1
        self._type(self._field(label), text)

    def choose(self, label: str, option: str) -> None:
        """Choose an option of the list with a label."""
        self.count += 1
        self._choose(self._field(label), option)

    def check(self, label: str) -> None:
        """Check a box."""
        self.count += 1
        self._activate(self._field(label), "Space")

    def click(self, role: str, name: str) -> None:
        """Activate a link or a button."""
        self.count += 1
        self._activate(self.tab.get_by_role(role, name=name, exact=True).first, "Enter")

    def _field(self, label: str) -> Locator:
        return self.tab.get_by_label(label).first

    def _type(self, field: Locator, text: str) -> None:
        field.fill(text)

    def _choose(self, field: Locator, option: str) -> None:
        field.select_option(label=option)

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

    def _activate(self, target: Locator, key: str) -> None:
        self._reach(target)
        self.tab.keyboard.press(key)

    def _reach(self, target: Locator) -> None:
        """Press Tab until a control has the focus, which must be visible there."""
        target.wait_for()
        self.tab.wait_for_load_state("load")
        skip = self.tab.get_by_role("link", name="Skip to the content")
        for _ in range(TABS):
            if _is_focused(target):
                return
            self.tab.keyboard.press("Tab")
            if skip.count() and _is_focused(skip):
                self.tab.keyboard.press("Enter")
        raise AssertionError(f"Tab does not lead to {target}")


def _is_focused(target: Locator) -> bool:
    return bool(target.evaluate("each => each === document.activeElement"))
