"""The texts that each language has."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wording:
    """All texts of one language. `name` is the language's own name.

    `{organization}`, `{category}` and `{channel}` are replaced.
    """

    name: str
    language: str
    channels: Mapping[str, str]
    categories: Mapping[str, str]
    service_hint: str

    heading: str
    intro: str
    nowhere: str
    save: str
    stop_heading: str
    stop_text: str
    stop: str
    saved: str
    unchanged: str
    stopped: str
    mailed: str
    unmailed: str

    unsubscribe_heading: str
    unsubscribe_text: str
    unsubscribe: str
    unsubscribed: str
    other: str

    confirm_heading: str
    confirm_text: str
    confirm: str
    confirmed: str

    gone_heading: str
    gone_text: str

    preview: str
    preview_unchanged: str

    mail_subject: str
    mail_text: str
    mail_ignore: str

    def category(self, name: str) -> str:
        """Return a category's name for people: `EVENT_NEWS` becomes Event news."""
        return self.categories.get(name) or name.replace("_", " ").capitalize()
