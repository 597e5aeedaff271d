"""simple-salesforce on our transport: its requests go out by an adapter, and so are checked.

Sessions come of the OAuth token endpoint of the organization's own address: client credentials,
or a JWT bearer assertion where a private key is given (RFC 7523).
"""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlencode

import jwt
import orjson
import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from rme.core.cache import TtlCache
from rme.crm.connectors.base import MappingWrong, PlatformAway, PlatformRefused
from rme.crm.connectors.platform_calls import PlatformCaller, json_of, limit_of
from rme.crm.platforms import PlatformRecord
from rme.transport import InvalidRequest, origin_of

SESSION_SECONDS = 3000
"""Shorter than the shortest that an organization usually sets; an older one is found out by 401."""
_ASSERTION_SECONDS = 180
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class SalesforceSession:
    """A session id, and the address that it is good for."""

    id: str = field(repr=False)
    instance_url: str


class SalesforceClient(Protocol):
    """What is used of simple-salesforce's client, which is too heavy to import for its type."""

    @property
    def session_id(self) -> str: ...
    @property
    def sf_instance(self) -> str: ...
    @property
    def sf_version(self) -> str | None: ...
    @property
    def session(self) -> requests.Session: ...
    def query_all(self, query: str) -> Any: ...
    def search(self, search: str) -> Any: ...


_sessions: TtlCache[str, SalesforceSession] = TtlCache(SESSION_SECONDS)


class TransportAdapter(BaseAdapter):
    """Carries what `requests` sends over the checked transport. `creates`: see `Caller.call`."""

    def __init__(self, caller: PlatformCaller) -> None:
        super().__init__()
        self.caller = caller
        self.creates = False

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        """Perform a request. Raises PlatformError; a redirect is no answer."""
        body = request.body or b""
        try:
            reply = self.caller.call(
                str(request.url),
                method=str(request.method),
                headers=tuple((name, str(value)) for name, value in request.headers.items()),
                body=body.encode() if isinstance(body, str) else bytes(body),
                creates=self.creates,
            )
        except InvalidRequest as error:  # a session id that cannot be written
            raise PlatformRefused from error
        if reply.status in _REDIRECTS:
            raise PlatformAway
        response = requests.Response()
        response.status_code = reply.status
        response.headers = CaseInsensitiveDict(reply.headers)
        response.encoding = "utf-8"
        response.url = str(request.url)
        response.request = request
        response._content = reply.body
        return response

    def close(self) -> None:
        """Leave the connections: they are the transport's."""


def requests_session(adapter: TransportAdapter) -> requests.Session:
    """Make a session whose every request goes by the adapter."""
    session = requests.Session()
    session.trust_env = False  # no proxies and no .netrc of the process's environment
    session.headers["Accept-Encoding"] = "identity"
    session.headers["User-Agent"] = "rme"
    for scheme in ("https://", "http://"):
        session.mount(scheme, adapter)
    return session


def client(platform: PlatformRecord, adapter: TransportAdapter) -> SalesforceClient:
    """Give a client with a session: the one that is kept, or a new one. Raises PlatformError."""
    from simple_salesforce.api import Salesforce  # imports a SOAP library: 0.2 s of CPU, 36 MB

    session = _sessions.get(_key(platform), lambda: _log_in(platform, adapter.caller))
    assert session is not None  # it raises instead
    return Salesforce(
        session_id=session.id,
        instance_url=session.instance_url,
        session=requests_session(adapter),
        version=str(platform.settings.get("api_version") or "62.0"),
    )


def forget(platform: PlatformRecord, session_id: str) -> None:
    """Drop a session that was refused, unless another has taken its place."""
    kept = _sessions.get(_key(platform), lambda: None)
    if kept is not None and kept.id == session_id:
        _sessions.forget(_key(platform))


def _key(platform: PlatformRecord) -> str:
    settings = orjson.dumps(dict(platform.settings), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(platform.organization_id.encode() + b"\0" + settings).hexdigest()


def _log_in(platform: PlatformRecord, caller: PlatformCaller) -> SalesforceSession:
    """Ask for an access token. Raises PlatformRefused, PlatformLimit, PlatformAway."""
    if platform.problem:
        raise MappingWrong
    settings = platform.settings
    address = str(settings.get("address", "")).rstrip("/")
    try:
        reply = caller.call(
            f"{address}/services/oauth2/token",
            headers=(
                ("Content-Type", "application/x-www-form-urlencoded"),
                ("Accept", "application/json"),
            ),
            body=urlencode(_grant(settings)).encode(),
        )
    except InvalidRequest as error:
        raise PlatformRefused from error
    if reply.status == 429:
        raise limit_of(reply)
    if reply.status >= 500 or reply.status in _REDIRECTS:
        raise PlatformAway
    said = json_of(reply)
    if reply.status != 200:
        raise PlatformRefused
    token = said.get("access_token") if isinstance(said, dict) else None
    where = said.get("instance_url") if isinstance(said, dict) else None
    found = origin_of(where) if isinstance(where, str) else None
    if not isinstance(token, str) or found is None or found.scheme != "https":
        raise PlatformAway
    return SalesforceSession(token, str(where))


def _grant(settings: Mapping[str, Any]) -> dict[str, str]:
    given = {name: str(value) for name, value in settings.items()}
    if not given.get("private_key"):
        return {
            "grant_type": "client_credentials",
            "client_id": given.get("client_id", ""),
            "client_secret": given.get("client_secret", ""),
        }
    claims = {
        "iss": given.get("client_id", ""),
        "sub": given.get("username", ""),
        "aud": given.get("audience", ""),
        "exp": int(time.time()) + _ASSERTION_SECONDS,
    }
    try:
        assertion = jwt.encode(claims, given["private_key"], algorithm="RS256")
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise PlatformRefused from error
    return {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}
