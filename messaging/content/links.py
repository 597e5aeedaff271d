"""Links in messages to the recipients' preference pages.

A link is the only credential: its bearer may see and change one person's preferences. So it is
signed and contains only ids. The signing key is SECRET_KEY; SECRET_KEY_FALLBACKS verify links that
were made before a rotation.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.core import signing

_PREFERENCES = "messaging.content.links.preferences"
_CONFIRMATION = "messaging.content.links.confirmation"
CONFIRMATION_MAX_AGE = timedelta(days=30)


class BadLink(Exception):
    """The link was not signed here, is incomplete, or has expired."""


@dataclass(frozen=True, slots=True)
class PreferenceLink:
    """A link to one contact's preferences, from one message. It does not expire."""

    organization_id: str
    contact_id: str
    channel: str
    category: str
    delivery_id: str = ""

    @property
    def token(self) -> str:
        """Return the signed token, safe in a URL path."""
        # The contact comes last: its id is the platform's and may contain any character.
        parts = (
            self.organization_id,
            self.delivery_id,
            self.channel,
            self.category,
            self.contact_id,
        )
        text = urlsafe_b64encode(":".join(parts).encode()).decode().rstrip("=")
        return _preference_signer().sign(text)


def _preference_signer() -> signing.Signer:
    return signing.Signer(salt=_PREFERENCES, sep=".")


def read(token: str) -> PreferenceLink:
    """Parse a preference token. Raises BadLink."""
    try:
        text = _preference_signer().unsign(token)
    except signing.BadSignature as error:
        raise BadLink from error
    parts = urlsafe_b64decode(text + "==").decode().split(":", 4)
    organization_id, delivery_id, channel, category, contact_id = parts
    return PreferenceLink(organization_id, contact_id, channel, category, delivery_id)


def preferences_url(token: str) -> str:
    """Return the URL of the preference page."""
    return f"{settings.BASE_URL}/p/{token}"


def one_click_url(token: str) -> str:
    """Return the URL that unsubscribes by a POST (RFC 8058 §3.1)."""
    return f"{settings.BASE_URL}/p/u/{token}"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Categories that a person chose on the preference page and confirms by a link in an email."""

    link: PreferenceLink
    categories: tuple[str, ...]

    @property
    def token(self) -> str:
        """Return a signed token that expires after `CONFIRMATION_MAX_AGE`."""
        return _confirmation_signer().sign_object([self.link.token, *self.categories])


def _confirmation_signer() -> signing.TimestampSigner:
    return signing.TimestampSigner(salt=_CONFIRMATION, sep="~")


def read_confirmation(token: str) -> Confirmation:
    """Parse a confirmation token. Raises BadLink."""
    try:
        link, *categories = _confirmation_signer().unsign_object(
            token, max_age=CONFIRMATION_MAX_AGE
        )
    except signing.BadSignature as error:
        raise BadLink from error
    return Confirmation(read(link), tuple(categories))


def confirmation_url(token: str) -> str:
    """Return the URL of the confirmation page."""
    return f"{settings.BASE_URL}/p/c/{token}"
