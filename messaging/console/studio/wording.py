"""What the studio calls the texts of a version."""

from django.utils.translation import gettext_lazy

FIELD_LABELS = {
    "subject": gettext_lazy("Subject"),
    "html": "HTML",
    "mjml": "MJML",
    "text": gettext_lazy("Plain text"),
    "title": gettext_lazy("Title"),
    "body": gettext_lazy("Text"),
    "image": gettext_lazy("Picture (address)"),
    "link": gettext_lazy("Link (address)"),
    "badge": gettext_lazy("Badge"),
}
LANGUAGES = {"html": "html", "mjml": "html"}
"""The language around the Liquid, by field; plain text in all others."""
