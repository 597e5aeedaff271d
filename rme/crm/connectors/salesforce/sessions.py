"""simple-salesforce on our transport, which checks addresses: an adapter carries its requests.

Sessions come from the OAuth token endpoint at the organization's own address: by client
credentials, or by a JWT bearer assertion if there is a private key (RFC 7523).
"""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
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
from rme.transport.addresses import origin_of
from rme.transport.messages import InvalidRequest

SESSION_SECONDS = 3000
"""Shorter than organizations usually configure; one that ended earlier is noticed by a 401."""
_ASSERTION_SECONDS = 180
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class SalesforceSession:
    """A session id, and the address at which it is valid."""

    id: str = field(repr=False)
    instance_url: str


class SalesforceClient(Protocol):
    """The part of `simple_salesforce.Salesforce` that the connector uses."""

    session_id: str
    sf_instance: str
    sf_version: str | None
    session: requests.Session

    def query_all(self, query: str) -> object: ...

    def search(self, search: str) -> object: ...


_sessions: TtlCache[str, SalesforceSession] = TtlCache(SESSION_SECONDS)


class TransportAdapter(BaseAdapter):
    """Sends requests of the library `requests` over the checked transport.

    `creates`: see `PlatformCaller.call`.
    """

    def __init__(self, caller: PlatformCaller) -> None:
        super().__init__()
        self.caller = caller
        self.creates = False

    def send(
        self, request: requests.PreparedRequest, *_: object, **__: object
    ) -> requests.Response:
        """Return the response. Raise PlatformError, also for a redirect."""
        body = request.body or b""
        try:
            reply = self.caller.call(
                str(request.url),
                method=str(request.method),
                headers=tuple((name, str(value)) for name, value in request.headers.items()),
                body=body.encode() if isinstance(body, str) else bytes(body),
                creates=self.creates,
            )
        except InvalidRequest as error:  # a session id that is no header value
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
        """Do nothing: the connections belong to the transport."""


def requests_session(adapter: TransportAdapter) -> requests.Session:
    """Return a session that sends every request by the adapter."""
    session = requests.Session()
    session.trust_env = False  # ignore proxies and .netrc of the process's environment
    session.headers["Accept-Encoding"] = "identity"
    session.headers["User-Agent"] = "rme"
    for scheme in ("https://", "http://"):
        session.mount(scheme, adapter)
    return session


def client(platform: PlatformRecord, adapter: TransportAdapter) -> SalesforceClient:
    """Return a client with the cached session or a new one. Raise PlatformError."""
    # Imported here: it takes 0.4 s, for a SOAP library that nothing else needs.
    from simple_salesforce.api import Salesforce

    session = _sessions.get(_key(platform), lambda: _log_in(platform, adapter.caller))
    assert session is not None  # _log_in raises instead
    new_client: SalesforceClient = Salesforce(
        session_id=session.id,
        instance_url=session.instance_url,
        session=requests_session(adapter),
        version=str(platform.settings.get("api_version") or "62.0"),
    )
    return new_client


def forget(platform: PlatformRecord, session_id: str) -> None:
    """Drop a session that was refused, unless another has replaced it."""
    cached = _sessions.get(_key(platform), lambda: None)
    if cached is not None and cached.id == session_id:
        _sessions.forget(_key(platform))


def _key(platform: PlatformRecord) -> str:
    settings = orjson.dumps(dict(platform.settings), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(platform.organization_id.encode() + b"\0" + settings).hexdigest()


def _log_in(platform: PlatformRecord, caller: PlatformCaller) -> SalesforceSession:
    """Return a new session. Raise PlatformError."""
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
    answer = json_of(reply)
    if reply.status != 200:
        raise PlatformRefused
    token = answer.get("access_token") if isinstance(answer, dict) else None
    instance_url = answer.get("instance_url") if isinstance(answer, dict) else None
    origin = origin_of(instance_url) if isinstance(instance_url, str) else None
    if not isinstance(token, str) or origin is None or origin.scheme != "https":
        raise PlatformAway
    return SalesforceSession(token, str(instance_url))


def _grant(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the parameters of the token request. Raise PlatformRefused for an unusable key."""
    texts = {name: str(value) for name, value in settings.items()}
    if not texts.get("private_key"):
        return {
            "grant_type": "client_credentials",
            "client_id": texts.get("client_id", ""),
            "client_secret": texts.get("client_secret", ""),
        }
    claims = {
        "iss": texts.get("client_id", ""),
        "sub": texts.get("username", ""),
        "aud": texts.get("audience", ""),
        "exp": int(time.time()) + _ASSERTION_SECONDS,
    }
    try:
        assertion = jwt.encode(claims, texts["private_key"], algorithm="RS256")
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise PlatformRefused from error
    return {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}
