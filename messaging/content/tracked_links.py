"""Tracking of opens and clicks: signed URLs, and rewriting the links of an HTML text to them.

A token names the delivery and, for a click, the target URL. It is signed, so that it cannot be used
as an open redirect. The keys are those of `links`.
"""

import hashlib
import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.utils.encoding import iri_to_uri

from messaging.links import BadLink
from messaging.models import Hit
from rme.core.html_entities import unescape_attribute

OPEN, CLICK = Hit.Kind.OPEN, Hit.Kind.CLICK
_MAC = 16
"""Bytes of the signature: 128 bits, as RFC 2104 §5 allows."""
MAX_URL_LENGTH = 2000
"""Characters: browsers and proxies accept no more, nor does Django redirect to more."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{40,6000}")

# Comments and elements without links are skipped as a whole, to the end of the text if they are not
# closed. Quoted values may hold any character. Possessive quantifiers (`*+`) and unclosed pieces
# that match too keep the time linear in the text: no character is read twice.
_PIECES = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(script|style|title|textarea)\b.*?(?:</\1\s*>|\Z)"
    r"""|<a\s(?:[^<>"']++|"[^"]*+"|'[^']*+')*>?""",
    re.IGNORECASE | re.DOTALL,
)
_ATTRIBUTES = re.compile(
    r"""([^\s=>"'/]++)(?:(\s*+=\s*+)("[^"]*+"|'[^']*+'|[^\s"'>]++))?""", re.IGNORECASE | re.DOTALL
)
_BODY = re.compile(r"</body", re.IGNORECASE)
_WEB = re.compile(r"https?://[^\s\x00-\x20\x7f\\\\<>\"]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TrackedTarget:
    """The delivery of a tracked link, and its target URL (empty for an image)."""

    delivery_id: UUID
    url: str = ""


def track(html: str, delivery_id: UUID, *, opens: bool, clicks: bool) -> str:
    """Replace the links of an HTML text by tracked ones, and add a 1 by 1 pixel image.

    Only `http` and `https` URLs in the `href` of an `a`; never links to the recipient's own pages.
    """
    if clicks:
        html = _PIECES.sub(lambda piece: _link(piece[0], delivery_id), html)
    if opens:
        image = f'<img src="{open_url(delivery_id)}" width="1" height="1" alt="" border="0">'
        # searched in the original: lower case may be longer (İ becomes two characters)
        place = max((match.start() for match in _BODY.finditer(html)), default=len(html))
        html = html[:place] + image + html[place:]
    return html


def _link(piece: str, delivery_id: UUID) -> str:
    if piece[:2].lower() != "<a" or piece[-1] != ">":
        return piece
    return piece[:2] + _ATTRIBUTES.sub(lambda match: _attribute(match, delivery_id), piece[2:])


def _attribute(match: re.Match[str], delivery_id: UUID) -> str:
    name, between, value = match.groups()
    if name.lower() != "href" or value is None:
        return match[0]
    url = unescape_attribute(value.strip("\"'")).strip()
    return f'{name}{between}"{click_url(delivery_id, url)}"' if _is_trackable(url) else match[0]


def _is_trackable(url: str) -> bool:
    """Return whether a link may be replaced by a tracked one."""
    if (
        len(url) > MAX_URL_LENGTH
        or not _WEB.fullmatch(url)
        or len(iri_to_uri(url)) > MAX_URL_LENGTH
    ):
        return False
    base = settings.BASE_URL.lower()
    if url.lower().startswith((f"{base}/p/", f"{base}/t/")):
        return False  # unsubscribing must work without any detour
    try:
        return bool(urlsplit(url).hostname)
    except ValueError:
        return False


def open_url(delivery_id: UUID) -> str:
    """Return the URL of the image that reports an open."""
    return f"{settings.BASE_URL}/t/o/{_token(OPEN, delivery_id.bytes)}"


def click_url(delivery_id: UUID, url: str) -> str:
    """Return the URL that reports a click and redirects to `url`."""
    data = delivery_id.bytes + url.encode(errors="replace")
    return f"{settings.BASE_URL}/t/c/{_token(CLICK, data)}"


def read(kind: str, token: str) -> TrackedTarget:
    """Parse a token of a kind. Raises BadLink unless it was signed here."""
    if not _TOKEN.fullmatch(token):
        raise BadLink
    try:
        raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError as error:
        raise BadLink from error
    mac, data = raw[:_MAC], raw[_MAC:]
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    good = [hmac.compare_digest(mac, _mac(secret, kind, data)) for secret in secrets]
    if not any(good) or len(data) < 16:
        raise BadLink
    return TrackedTarget(UUID(bytes=data[:16]), data[16:].decode())


def _token(kind: str, data: bytes) -> str:
    mac = _mac(settings.SECRET_KEY, kind, data)
    return urlsafe_b64encode(mac + data).decode().rstrip("=")


def _mac(secret: str, kind: str, data: bytes) -> bytes:
    return hmac.digest(_key(secret), f"{kind}:".encode() + data, "sha256")[:_MAC]


@lru_cache(maxsize=8)
def _key(secret: str) -> bytes:
    return hashlib.sha256(b"messaging.content.tracked_links:" + secret.encode()).digest()
