"""The links of messages to the pages of their recipients.

A link is its own key: whoever holds it may see and change one person's preferences, so it is
signed, and carries ids alone. The keys are SECRET_KEY and, for links of before a rotation,
SECRET_KEY_FALLBACKS.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.core import signing

_PREFERENCES = "messaging.content.links.preferences"
_CONFIRMATION = "messaging.content.links.confirmation"
CONFIRMATION_LIFE = timedelta(days=30)


class BadLink(Exception):
    """The link is not one of ours, was cut off, or its time is over."""


@dataclass(frozen=True, slots=True)
class PreferenceLink:
    """To whose preferences a message leads, and by which message. It does not expire."""

    organization_id: str
    contact_id: str
    channel: str
    category: str
    delivery_id: str = ""

    @property
    def token(self) -> str:
        """Give the link's text, fit for a path."""
        # The contact comes last: its id is the platform's, and may hold any character.
        parts = (
            self.organization_id,
            self.delivery_id,
            self.channel,
            self.category,
            self.contact_id,
        )
        text = urlsafe_b64encode(":".join(parts).encode()).decode().rstrip("=")
        return _signer().sign(text)


def _signer() -> signing.Signer:
    return signing.Signer(salt=_PREFERENCES, sep=".")


def read(token: str) -> PreferenceLink:
    """Read a link's text. Raises BadLink."""
    try:
        text = _signer().unsign(token)
    except signing.BadSignature as error:
        raise BadLink from error
    parts = urlsafe_b64decode(text + "==").decode().split(":", 4)
    organization_id, delivery_id, channel, category, contact_id = parts
    return PreferenceLink(organization_id, contact_id, channel, category, delivery_id)


def preferences_url(token: str) -> str:
    """Give the address of the preference page."""
    return f"{settings.BASE_URL}/p/{token}"


def one_click_url(token: str) -> str:
    """Give the address that unsubscribes by a POST (RFC 8058 §3.1)."""
    return f"{settings.BASE_URL}/p/u/{token}"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What a person wished on the preference page and confirms by a link in a mail."""

    link: PreferenceLink
    categories: tuple[str, ...]

    @property
    def token(self) -> str:
        """Give the text of a link that is good for `CONFIRMATION_LIFE` from now on."""
        return _confirming().sign_object([self.link.token, *self.categories])


def _confirming() -> signing.TimestampSigner:
    return signing.TimestampSigner(salt=_CONFIRMATION, sep="~")


def read_confirmation(token: str) -> Confirmation:
    """Read the text of a confirmation. Raises BadLink."""
    try:
        link, *categories = _confirming().unsign_object(token, max_age=CONFIRMATION_LIFE)
    except signing.BadSignature as error:
        raise BadLink from error
    return Confirmation(read(link), tuple(categories))


def confirmation_url(token: str) -> str:
    """Give the address of the page that confirms."""
    return f"{settings.BASE_URL}/p/c/{token}"
