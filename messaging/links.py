"""Links in messages to the recipients' preference pages.

A link is the only credential: its bearer may see and change one person's preferences. So it is
signed and contains only ids. The signing key is SECRET_KEY; SECRET_KEY_FALLBACKS verify links that
were made before a rotation.

Only the message itself carries the recipient's link. Content that other people see (previews, dry
runs, test sends, message pages, exports) carries a preview link, which opens the same page but
names nobody, so it can't change anything. `preview_links` and `preview_values` replace the links in
stored content.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_left
from dataclasses import dataclass
from datetime import timedelta
from html.entities import html5
from typing import TypeVar

import orjson
from django.conf import settings
from django.core import signing

# Signatures depend on these names, and links in old mails must stay valid.
_PREFERENCES = "messaging.content.links.preferences"
_CONFIRMATION = "messaging.content.links.confirmation"
_PREVIEW = "messaging.content.links.preview"
_TOKEN = re.compile(
    r"(?:(?<![A-Za-z0-9_-])|(?<=\\[bfnrt]))"  # the start of a word, in JSON after \n as well
    r"(?=(?P<token>[A-Za-z0-9_-]{1,2000}(?:\.|~[A-Za-z0-9]{1,20}~)[A-Za-z0-9_-]{43}))"
)
"""A preference token, or a confirmation with its time. Two of these may overlap."""
_ESCAPE = re.compile(
    r"%(?:25)*(?P<percent>[2-7][0-9A-Fa-f])"
    r"|&\#(?:0{0,9}(?P<decimal>[0-9]{2,3})|[xX]0{0,9}(?P<hexadecimal>[2-7][0-9A-Fa-f]));?"
    r"|&(?P<name>[A-Za-z]{2,10});"
)
"""An ASCII character that is percent-encoded, repeatedly perhaps, or an HTML entity."""
_ESCAPE_ROUNDS = 6
"""How many layers of entities are read; layers of percent-encoding alone count as one."""
_ID_LENGTH = 36
_Value = TypeVar("_Value")
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
        return _signed(
            _PREFERENCES,
            self.organization_id,
            self.delivery_id,
            self.channel,
            self.category,
            self.contact_id,
        )

    @property
    def preview_token(self) -> str:
        """Return the token of a `PreviewLink`.

        It is as long as the token in the message, so that a preview shows an SMS's true size.
        """
        contact_length = len(self.contact_id.encode()) or _ID_LENGTH
        blank_delivery, blank_contact = "-" * _ID_LENGTH, "-" * contact_length
        return _signed(
            _PREVIEW,
            self.organization_id,
            blank_delivery,
            self.channel,
            self.category,
            blank_contact,
        )


@dataclass(frozen=True, slots=True)
class PreviewLink:
    """A link that shows a recipient's page. It names no contact and no message."""

    token: str
    organization_id: str
    channel: str
    category: str


def _signed(salt: str, *parts: str) -> str:
    text = urlsafe_b64encode(":".join(parts).encode()).decode().rstrip("=")
    return _signer(salt).sign(text)


def _signer(salt: str) -> signing.Signer:
    return signing.Signer(salt=salt, sep=".")


def _parts(salt: str, token: str) -> list[str]:
    """Return the parts of a token in the order of `_signed`. Raise BadLink."""
    try:
        text = _signer(salt).unsign(token)
    except signing.BadSignature as error:
        raise BadLink from error
    return urlsafe_b64decode(text + "==").decode().split(":", 4)


def read(token: str) -> PreferenceLink:
    """Parse a preference token. Raises BadLink."""
    organization_id, delivery_id, channel, category, contact_id = _parts(_PREFERENCES, token)
    return PreferenceLink(organization_id, contact_id, channel, category, delivery_id)


def read_preview(token: str) -> PreviewLink:
    """Parse the token of a preview. Raises BadLink."""
    organization_id, _, channel, category, _ = _parts(_PREVIEW, token)
    return PreviewLink(token, organization_id, channel, category)


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


def preview_links(text: str) -> str:
    """Replace recipients' links by preview links, in a text that other people will see.

    The text may be JSON. Links are found by their tokens, wherever these stand: a link may be
    percent-encoded in another address, or be written with HTML entities. Expired confirmations are
    replaced, too: the link in them doesn't expire.
    """
    previews = _previews(text)
    parts, position = [], 0
    for (start, end), preview in sorted(previews.items()):
        if start >= position:
            parts += [text[position:start], preview]
            position = end
    return "".join([*parts, text[position:]])


def _previews(text: str) -> dict[tuple[int, int], str]:
    """Return preview tokens by the places of the tokens that they replace."""
    previews_by_place: dict[tuple[int, int], str] = {}
    layers: list[_Unescaped] = []
    layer_text = text
    previews: dict[str, str | None] = {}
    while True:
        for match in _TOKEN.finditer(layer_text):
            token = match["token"]
            if token not in previews:
                previews[token] = _preview_token(token)
            if preview := previews[token]:
                start, end = match.span("token")
                for layer in reversed(layers):
                    start, end = layer.source(start), layer.source(end)
                previews_by_place[start, end] = preview
        layer = _unescaped(layer_text)
        if not layer.places or len(layers) == _ESCAPE_ROUNDS:
            return previews_by_place
        layers.append(layer)
        layer_text = layer.text


@dataclass(frozen=True, slots=True)
class _Unescaped:
    """A text without one layer of escapes: where they were, and what each of them had longer."""

    text: str
    places: list[int]
    shifts: list[int]

    def source(self, place: int) -> int:
        """Return the place in the text before."""
        return place + self.shifts[bisect_left(self.places, place)]


def _unescaped(text: str) -> _Unescaped:
    parts: list[str] = []
    places: list[int] = []
    shifts = [0]
    position = 0
    for escape in _ESCAPE.finditer(text):
        if character := _character(escape):
            places.append(escape.start() - shifts[-1])
            shifts.append(shifts[-1] + len(escape[0]) - 1)
            parts += [text[position : escape.start()], character]
            position = escape.end()
    return _Unescaped("".join([*parts, text[position:]]), places, shifts)


def _character(escape: re.Match[str]) -> str:
    """Return the printable ASCII character of an escape, or an empty text."""
    if name := escape["name"]:
        character = html5.get(f"{name};", "")
    elif decimal := escape["decimal"]:
        character = chr(int(decimal))
    else:
        character = chr(int(escape["percent"] or escape["hexadecimal"], 16))
    return character if len(character) == 1 and "!" <= character <= "~" else ""


def preview_values(values: _Value) -> _Value:
    """Return JSON values with all links replaced as `preview_links` does."""
    replaced: _Value = orjson.loads(preview_links(orjson.dumps(values).decode()))
    return replaced


def _preview_token(token: str) -> str | None:
    """Return the token that takes the place of a recipient's; None for any other text."""
    try:
        if "~" in token:
            token, *_ = _confirmation_signer().unsign_object(token)
        return read(token).preview_token
    except (BadLink, signing.BadSignature):
        return None
