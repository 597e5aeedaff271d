"""Widgets of the forms of several packages: secrets."""

from typing import Any

from unfold import widgets


# The theme has no types.
class SecretTextarea(widgets.UnfoldAdminTextareaWidget):
    """A text area for a secret; it never shows the value, and no script keeps it."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__({"autocomplete": "off", "data-secret": "", **(attrs or {})})

    def format_value(self, value: object) -> str:
        return ""
