"""What the studio calls the texts of a version."""

FIELD_LABELS = {
    "subject": "Subject",
    "html": "HTML",
    "mjml": "MJML",
    "text": "Plain text",
    "title": "Title",
    "body": "Text",
    "image": "Picture (address)",
    "link": "Link (address)",
    "badge": "Badge",
}
LANGUAGES = {"html": "html", "mjml": "html"}
"""The language around the Liquid, by field; plain text in all others."""
