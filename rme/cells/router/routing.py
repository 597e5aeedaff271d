"""By what the cell of a request is found: its key. One table of paths, in `key_of`.

No key holds a secret: of a token there is its digest, of an API key its public part.
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import parse_qsl
from uuid import UUID

from rme.cells.router.heads import Head

MAC_BYTES = 16
"""A tracking token is a MAC of this length, a delivery's id of 16 bytes, and the target."""
LENGTH_LIMIT = 255


class KeyKind(StrEnum):
    """What a key is, as cells look it up."""

    TOKEN = "token"  # noqa: S105 - a kind
    CLIENT = "client"
    API_KEY = "api_key"
    ORGANIZATION = "organization"
    PROVIDER_ACCOUNT = "provider_account"
    DELIVERY = "delivery"
    INVITATION = "invitation"
    PERSON = "person"
    """The user name or email address that was typed at log-in."""


@dataclass(frozen=True, slots=True)
class Key:
    """What a cell looks up to find an organization, or a person."""

    kind: KeyKind
    value: str


class Area(StrEnum):
    """The parts of the service, which differ in how they show an error."""

    API = "api"
    OAUTH = "oauth"
    BOT = "bot"
    CONSOLE = "console"
    PUBLIC = "public"


LOG_IN = "/admin/login/"
FORGOTTEN = "/admin/account/password/reset/"
OAUTH = "/services/"
_API_KEY = re.compile(r"rme_([a-z0-9]{1,32})_")
_INVITATION = re.compile(r"/admin/account/invitation/([A-Za-z0-9_-]{1,100})/")


def area_of(head: Head) -> Area:
    """Return the part of the service that a request is for."""
    path = head.path
    if path.startswith("/rme/v1/"):
        return Area.API
    if path.startswith(OAUTH):
        return Area.OAUTH
    if path.startswith(("/p/", "/t/", "/hooks/", "/.well-known/")):
        return Area.PUBLIC
    if path.startswith(("/admin", "/static/", "/push-demo")) or path == "/":
        return Area.CONSOLE
    return Area.BOT if "x-api-key" in head.by_name else Area.PUBLIC


def needs_form(head: Head) -> bool:
    """Return whether the key of a request is in its body."""
    if head.method != "POST":
        return False
    if head.path in (LOG_IN, FORGOTTEN):
        return True
    return head.path.startswith(OAUTH) and not head.basic_name


def parse_form(body: bytes) -> dict[str, str]:
    """Parse a form; of a field that is given twice, the first counts. A bad form has no fields."""
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=100)
    except ValueError:
        return {}
    return dict(reversed(pairs))


def key_of(head: Head, area: Area, form: Mapping[str, str]) -> Key | None:
    """Return what a request's cell is found by; None if any cell may answer."""
    if area is Area.OAUTH:
        return _client(head, form)
    if area is Area.CONSOLE:
        return _of_console(head, form)
    if area is Area.PUBLIC and (key := _of_link(head.path)):
        return key
    if token := head.bearer:
        return Key(KeyKind.TOKEN, hashlib.sha256(token.encode("utf-8", "replace")).hexdigest())
    if match := _API_KEY.match(head.by_name.get("x-api-key", "").strip()):
        return Key(KeyKind.API_KEY, match[1])
    return None


def _client(head: Head, form: Mapping[str, str]) -> Key | None:
    client_id = head.basic_name or form.get("client_id") or _issuer(form.get("assertion", ""))
    usable = client_id.isascii() and client_id.isalnum() and len(client_id) <= LENGTH_LIMIT
    return Key(KeyKind.CLIENT, client_id) if usable else None


def _issuer(assertion: str) -> str:
    """Return the `iss` of an assertion. It is not verified here: the cell does that."""
    parts = assertion.split(".")
    try:
        claims = json.loads(_decode(parts[1])) if len(parts) == 3 else {}
    except (ValueError, RecursionError):
        return ""
    issuer = claims.get("iss") if isinstance(claims, dict) else None
    return issuer if isinstance(issuer, str) else ""


def _of_console(head: Head, form: Mapping[str, str]) -> Key | None:
    if head.query("cell"):
        return None  # named by the person or by a link in an email
    if match := _INVITATION.match(head.path):
        return Key(KeyKind.INVITATION, hashlib.sha256(match[1].encode()).hexdigest())
    if head.method != "POST":
        return None
    name = {LOG_IN: "username", FORGOTTEN: "email"}.get(head.path, "")
    typed = form.get(name, "").strip()[:LENGTH_LIMIT]
    return Key(KeyKind.PERSON, typed) if typed and "\0" not in typed else None


def _of_link(path: str) -> Key | None:
    """Return the key of a signed link. Its signature is not verified here: the cell does that."""
    parts = path.split("/")[1:]
    try:
        if parts[0] == "hooks" and len(parts) == 2:
            return _text(KeyKind.PROVIDER_ACCOUNT, parts[1])
        if parts[0] == "t" and len(parts) == 3:
            raw = _decode(parts[2])[MAC_BYTES : MAC_BYTES + 16]
            return Key(KeyKind.DELIVERY, str(UUID(bytes=raw)))
        if parts[0] == "p":
            return _text(KeyKind.ORGANIZATION, _organization_of(parts[-1]))
    except (ValueError, RecursionError):
        pass  # not one of our links: any cell refuses it
    return None


def _organization_of(token: str) -> str:
    """Return the organization in a preference link, or in the confirmation of one."""
    if "~" in token:
        token = str(json.loads(_decode(token.partition("~")[0]))[0])
    return _decode(token.partition(".")[0]).decode().partition(":")[0]


def _text(kind: KeyKind, value: str) -> Key | None:
    return Key(kind, value) if 0 < len(value) <= LENGTH_LIMIT and "\0" not in value else None


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(text) from error
