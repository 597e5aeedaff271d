"""What the client and its twin with coroutines share: tokens, idempotency keys, retries, errors.

`Exchange.steps` says what is to be done next and is told what came of it, so it needs no input and
output of its own.
"""

import json
import time
import uuid
from collections.abc import Generator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx

from rme_client import retries
from rme_client.calls import Call
from rme_client.errors import ApiError, ConnectionFailed, RateLimited

VERSION = "0.1.0"
PREFIX = "/rme/v1"
TOKEN_PATH = "/services/oauth2/token"  # noqa: S105  # a path
TOKEN_MARGIN = 30.0
"""A token that expires within these seconds is replaced."""


@dataclass(frozen=True, slots=True)
class Send:
    """A request to be made. A result of it is a response, or httpx's error."""

    method: str
    url: str
    headers: dict[str, str]
    params: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None
    form: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """A time to wait, in seconds."""

    seconds: float


Steps = Generator[Send | Wait, httpx.Response | httpx.TransportError | None, object]


class Exchange:
    """A client's credentials and settings, and its token."""

    def __init__(
        self,
        base_url: str,
        *,
        client_id: str,
        client_secret: str,
        token: str,
        max_retries: int,
    ) -> None:
        if bool(token) == bool(client_id and client_secret):
            raise ValueError("Give a token, or client_id and client_secret.")
        parts = urlsplit(base_url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.url = base_url.rstrip("/") if parts.path.strip("/") else f"{self.origin}{PREFIX}"
        self.max_retries = max_retries
        self._form = {
            "grant_type": "client_credentials",
            "client_id": client_id,
            "client_secret": client_secret,
        }
        self._own_token = not token
        self._token, self._token_until = token, float("inf") if token else 0.0

    def steps(self, call: Call) -> Steps:
        """Perform a call: send, wait and send again. Return the answer's JSON. Raise RmeError."""
        headers = {name: str(value) for name, value in call.headers.items() if value is not None}
        if call.keyed:  # the same for all retries
            headers.setdefault("Idempotency-Key", str(uuid.uuid4()))
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        request = Send(
            call.method,
            f"{self.url}{call.path}",
            headers,
            {name: _text(value) for name, value in call.query.items() if value is not None},
            None if call.body is None else json.dumps(call.body).encode(),
        )
        repeatable = call.keyed or call.method in retries.REPEATABLE
        renewed = False
        while True:
            yield from self._get_token()
            response = yield from self._send(request, repeatable=repeatable)
            if response.status_code != 401 or renewed or not self._own_token:
                break
            renewed, self._token_until = True, 0.0  # it was revoked before its time
        if response.is_success:
            return response.json() if response.content else None
        raise _error(response)

    def _get_token(self) -> Generator[Send | Wait, httpx.Response | httpx.TransportError | None]:
        if time.monotonic() < self._token_until - TOKEN_MARGIN:
            return
        request = Send("POST", f"{self.origin}{TOKEN_PATH}", {}, form=self._form)
        response = yield from self._send(request, repeatable=True)
        if not response.is_success:
            raise _error(response)
        given = response.json()
        self._token = given["access_token"]
        self._token_until = time.monotonic() + float(given.get("expires_in", 3600))

    def _send(
        self, request: Send, *, repeatable: bool
    ) -> Generator[Send | Wait, httpx.Response | httpx.TransportError | None, httpx.Response]:
        """Send, and send again while that may help. Return the last response."""
        for retry in range(self.max_retries + 1):
            asked: float | None = None
            if request.form is None:
                request.headers["Authorization"] = f"Bearer {self._token}"
            request.headers["User-Agent"] = f"rme-client-python/{VERSION}"
            result = yield request
            is_last = retry == self.max_retries
            if isinstance(result, httpx.Response):
                asked = retries.retry_after(result.headers)
                code = _error(result).code if result.is_error else ""
                if (
                    is_last
                    or (asked or 0.0) > retries.LONGEST_RETRY_AFTER
                    or not retries.is_temporary(result.status_code, code, repeatable=repeatable)
                ):
                    return result
            elif is_last or not repeatable:
                raise ConnectionFailed(str(result)) from result
            yield Wait(retries.wait(retry, asked))
        raise AssertionError("the last retry returns or raises")


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _error(response: httpx.Response) -> ApiError:
    """Return the error of a response; the token endpoint and proxies have other bodies."""
    try:
        body = response.json()
    except ValueError:
        body = None
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        message = response.text[:200]
        error = {"code": error if isinstance(error, str) else "UNKNOWN", "message": message}
    kind = RateLimited if response.status_code == 429 else ApiError
    return kind(response.status_code, error, retries.retry_after(response.headers))
