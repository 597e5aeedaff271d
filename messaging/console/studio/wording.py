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

SCRIPT_WORDS = {
    "saving": gettext_lazy("Saving …"),
    "saved": gettext_lazy("Draft {number} is saved."),
    "notSaved": gettext_lazy("Not saved."),
    "loggedOut": gettext_lazy(
        "Not saved: you are logged out, or can't write here any more. Log in in another window. "
        "The next change tries again."
    ),
    "away": gettext_lazy("Not saved: the server doesn't answer. The next change tries again."),
    "changed": gettext_lazy(
        "{person} changed this template in the meantime. Your text isn't saved, and nothing was "
        "overwritten."
    ),
    "noPreview": gettext_lazy("There is no preview: you are logged out, or can't see it any more."),
    "segment": gettext_lazy("{encoding}, {characters} characters, 1 segment"),
    "segments": gettext_lazy("{encoding}, {characters} characters, {segments} segments"),
    "forced": gettext_lazy("UCS-2 because of: {characters}"),
    "missing": gettext_lazy("Without a value: {names}"),
    "declare": gettext_lazy("Declare {name}"),
    "undeclared": gettext_lazy("The text uses {name}, which isn't declared."),
    "atLine": gettext_lazy("{field}, line {line}: {message}"),
    "nobody": gettext_lazy("No contact found."),
    "yes": gettext_lazy("yes"),
    "no": gettext_lazy("no"),
    "change": gettext_lazy("Change {number} of {count}."),
    "one": gettext_lazy("{label}, version {number}"),
    "both": gettext_lazy("{label}, version {before} and version {after}"),
}
"""What the scripts of these pages say."""
