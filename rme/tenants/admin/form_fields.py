"""Widgets of the forms of several packages: secrets."""

from unfold import widgets


# The theme has no types.
class SecretTextarea(widgets.UnfoldAdminTextareaWidget):
    """A text area for a secret; it never shows the value."""

    def format_value(self, value: object) -> str:
        return ""
