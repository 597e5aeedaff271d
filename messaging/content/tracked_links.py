"""Links of ours in emails that tell of opens and clicks, and putting them into an HTML text.

A token says of which delivery it is and, of a click, where it leads: only there, for it is signed,
so that nobody can make us redirect elsewhere. The keys are those of `links`.
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

from messaging.content.links import BadLink
from messaging.models import Hit
from rme.core.html_entities import unescape

OPEN, CLICK = Hit.Kind.OPEN, Hit.Kind.CLICK
_MAC = 16
"""Bytes of the signature: 128 bits, as RFC 2104 §5 allows."""
LONGEST = 2000
"""Characters of an address: browsers and proxies take no more, nor does Django redirect to more."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{40,6000}")

# What is no text of the page is passed over whole, to the end where it does not end; a quote may
# hold anything. Nothing goes back (`*+`), and what has no end is a piece too: no character is read
# twice, so that it takes a time linear in the text.
_PIECES = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(script|style|title|textarea)\b.*?(?:</\1\s*>|\Z)"
    r"""|<a\s(?:[^<>"']|"[^"]*+"|'[^']*+')*+>?""",
    re.IGNORECASE | re.DOTALL,
)
_ATTRIBUTES = re.compile(
    r"""([^\s=>"'/]++)(?:(\s*+=\s*+)("[^"]*+"|'[^']*+'|[^\s"'>]++))?+""", re.IGNORECASE | re.DOTALL
)
_BODY = re.compile(r"</body", re.IGNORECASE)
_WEB = re.compile(r"https?://[^\s\x00-\x20\x7f\\\\<>\"]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Target:
    """Of which delivery a link is, and where it leads; an image's nowhere."""

    delivery_id: UUID
    url: str = ""


def track(html: str, delivery_id: UUID, *, opens: bool, clicks: bool) -> str:
    """Lead the links of an HTML text by way of us, and add an image of no size to it.

    Only `http` and `https` in the `href` of an `a`; never a link to the recipient's own pages.
    """
    if clicks:
        html = _PIECES.sub(lambda piece: _link(piece[0], delivery_id), html)
    if opens:
        image = f'<img src="{open_url(delivery_id)}" width="1" height="1" alt="" border="0">'
        # not in a lower-cased copy, in which a letter may be two: İ
        place = max((found.start() for found in _BODY.finditer(html)), default=len(html))
        html = html[:place] + image + html[place:]
    return html


def _link(piece: str, delivery_id: UUID) -> str:
    if piece[:2].lower() != "<a" or piece[-1] != ">":
        return piece
    return piece[:2] + _ATTRIBUTES.sub(lambda each: _attribute(each, delivery_id), piece[2:])


def _attribute(found: re.Match[str], delivery_id: UUID) -> str:
    name, between, value = found.groups()
    if name.lower() != "href" or value is None:
        return found[0]
    url = unescape(value.strip("\"'")).strip()
    return f'{name}{between}"{click_url(delivery_id, url)}"' if _may_lead(url) else found[0]


def _may_lead(url: str) -> bool:
    """Say whether a link is one to lead by way of us."""
    if len(url) > LONGEST or not _WEB.fullmatch(url) or len(iri_to_uri(url)) > LONGEST:
        return False
    own = settings.BASE_URL.lower()
    if url.lower().startswith((f"{own}/p/", f"{own}/t/")):
        return False  # unsubscribing must work without any detour
    try:
        return bool(urlsplit(url).hostname)
    except ValueError:
        return False


def open_url(delivery_id: UUID) -> str:
    """Give the address of the image that tells of an open."""
    return f"{settings.BASE_URL}/t/o/{_token(OPEN, delivery_id.bytes)}"


def click_url(delivery_id: UUID, url: str) -> str:
    """Give the address that leads on to another, and tells of it."""
    data = delivery_id.bytes + url.encode(errors="replace")
    return f"{settings.BASE_URL}/t/c/{_token(CLICK, data)}"


def read(kind: str, token: str) -> Target:
    """Read a token of a kind. Raises BadLink for what we did not sign."""
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
    return Target(UUID(bytes=data[:16]), data[16:].decode())


def _token(kind: str, data: bytes) -> str:
    mac = _mac(settings.SECRET_KEY, kind, data)
    return urlsafe_b64encode(mac + data).decode().rstrip("=")


def _mac(secret: str, kind: str, data: bytes) -> bytes:
    return hmac.digest(_key(secret), f"{kind}:".encode() + data, "sha256")[:_MAC]


@lru_cache(maxsize=8)
def _key(secret: str) -> bytes:
    return hashlib.sha256(b"messaging.content.tracked_links:" + secret.encode()).digest()
