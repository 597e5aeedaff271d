"""Mozilla's push service on loopback: browsers by websocket, and senders by RFC 8030.

https://mozilla-push-service.readthedocs.io/en/latest/design/ has the protocol of the websocket.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric import ec
from py_vapid.utils import b64urlencode

from push.base64url import decode
from tests.fakes.http2 import Http2Connection, Http2Server, Stream
from tests.fakes.tls import ca_pem
from tests.fakes.websocket import Websocket, WebsocketServer

LARGEST = 4096


@dataclass
class Channel:
    """A subscription: who has it, and the only key with which it may be sent to."""

    id: str
    key: str
    socket: Websocket


@dataclass
class Autopush:
    """What the service received."""

    channels: dict[str, Channel] = field(default_factory=dict)
    """By the end of their endpoints."""
    acknowledged: list[int] = field(default_factory=list)
    """The codes browsers acknowledged with: 100 is success (decrypted, passed to the worker)."""
    greeted: int = 0
    answered: list[int] = field(default_factory=list)
    """The statuses that senders received."""
    agent: str = field(default_factory=lambda: uuid4().hex)
    browsers: WebsocketServer = field(init=False)
    senders: Http2Server = field(init=False)

    def __post_init__(self) -> None:
        self.browsers = WebsocketServer(self._listen)
        self.senders = Http2Server(self._take)

    def settings(self) -> dict[str, Any]:
        """Return the settings of an account that trusts this service."""
        return {"subject": "mailto:ops@example.com", "ca_pem": ca_pem(), "timeout": 5.0}

    def forget_everything(self) -> None:
        """Lose all subscriptions: browsers that connect again are unknown."""
        self.agent = uuid4().hex
        lost, self.channels = self.channels, {}
        for channel in lost.values():
            channel.socket.end()

    # --- browsers -------------------------------------------------------------------------------

    def _listen(self, browser: Websocket) -> None:
        while (text := browser.receive()) is not None:
            received = orjson.loads(text)
            answer = self._answer(browser, received.get("messageType"), received)
            if answer is not None:
                browser.send(orjson.dumps(answer).decode())

    def _answer(self, browser: Websocket, kind: Any, received: dict[str, Any]) -> Any:
        match kind:
            case "hello":
                self.greeted += 1
                known = {"uaid": self.agent, "use_webpush": True, "broadcasts": {}}
                return {"messageType": "hello", "status": 200, **known}
            case "register":
                name = received["channelID"]  # a repeated request gets the same subscription
                self.channels[name] = Channel(name, received["key"], browser)
                endpoint = f"{self.senders.url}wpush/v2/{name}"
                answer = {
                    "channelID": received["channelID"],
                    "status": 200,
                    "pushEndpoint": endpoint,
                }
                return {"messageType": "register", **answer}
            case "unregister":
                self.channels.pop(received["channelID"], None)
                gone = {"channelID": received["channelID"], "status": 200}
                return {"messageType": "unregister", **gone}
            case "ack":
                self.acknowledged += [each["code"] for each in received["updates"]]
            case None:
                return {}  # a ping
        return None

    # --- who sends ------------------------------------------------------------------------------

    def _take(self, connection: Http2Connection, stream: Stream) -> None:
        name = stream.headers[":path"].rpartition("/")[2]
        status = self._judge(stream, self.channels.get(name))
        if status == 201:
            self._pass_on(stream, self.channels[name])
        self.answered.append(status)
        connection.respond(stream, status, location=f"{self.senders.url}m/{name}")

    def _judge(self, stream: Stream, channel: Channel | None) -> int:
        headers = stream.headers
        if channel is None:
            return 410
        if headers.get("content-encoding") != "aes128gcm" or not headers.get("ttl", "").isdigit():
            return 400
        if len(stream.body) > LARGEST:
            return 413
        return 201 if self._may_send(headers.get("authorization", ""), channel) else 401

    def _may_send(self, authorization: str, channel: Channel) -> bool:
        """Check who sends (RFC 8292): it has the key with which the browser subscribed."""
        scheme, _, given = authorization.partition(" ")
        parts = dict(part.strip().split("=", 1) for part in given.split(","))
        public = decode(parts["k"])
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public)
        origin = self.senders.url.rstrip("/")
        claims = jwt.decode(parts["t"], key, algorithms=["ES256"], audience=origin)
        return scheme == "vapid" and public == decode(channel.key) and "sub" in claims

    def _pass_on(self, stream: Stream, channel: Channel) -> None:
        notification = {
            "messageType": "notification",
            "channelID": channel.id,
            "version": uuid4().hex,
            "data": b64urlencode(bytes(stream.body)),
            "headers": {"encoding": "aes128gcm"},
        }
        channel.socket.send(orjson.dumps(notification).decode())


@contextmanager
def autopush() -> Iterator[Autopush]:
    """Serve while the context is open."""
    service = Autopush()
    with service.browsers, service.senders:
        yield service
