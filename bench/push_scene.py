"""The organization `bench` with devices of each platform, and what is sent to them."""

from typing import Any
from uuid import UUID

from bench.push_server import PushServer
from bench.scene import Scene
from tests.fakes import apns, fcm
from tests.push.subscriptions import Browser

DEVICES = 300
"""Of each platform, each of a contact of its own."""
TITLE = "Your order is on its way"
BODY = "Grüezi! Parcel {} left Zürich this morning and will be with you before noon tomorrow."
DATA = {"order": "4711", "screen": "orders/4711"}


class PushScene:
    """Accounts at a push server, devices, and messages by number."""

    def __init__(self, scene: Scene, server: PushServer) -> None:
        self.scene, self.server = scene, server
        self.tokens = {
            "IOS": [f"{number:064x}" for number in range(DEVICES)],
            "ANDROID": [f"{number:022x}:{'APA91b' * 20}" for number in range(DEVICES)],
            "WEB": [Browser(f"{server.url}/wpush/{n}").text for n in range(DEVICES)],
        }
        self.people = {
            platform: scene.contacts[start * DEVICES : (start + 1) * DEVICES]
            for start, platform in enumerate(self.tokens)
        }
        self._accounts()
        self._devices()

    def _accounts(self) -> None:
        import orjson

        from messaging.models import ProviderAccount

        ca = self.server.ca.read_text()
        settings = {
            "apns": apns.settings(self.server.port, ca, 10.0),
            "fcm": fcm.settings(self.server.port, ca, 10.0),
            "webpush": {"subject": "mailto:ops@example.com", "ca_pem": ca},
        }
        for kind, given in settings.items():
            ProviderAccount.objects.update_or_create(
                organization_id="bench",
                name=kind,
                defaults={
                    "kind": kind,
                    "channel": "PUSH",
                    "credentials": orjson.dumps(given).decode(),
                },
            )

    def _devices(self) -> None:
        from push.models import Device, token_digest

        Device.objects.filter(organization_id="bench").delete()
        Device.objects.bulk_create(
            Device(
                organization_id="bench",
                contact_id=self.people[platform][number],
                platform=platform,
                token=token,
                token_digest=token_digest(token),
            )
            for platform, tokens in self.tokens.items()
            for number, token in enumerate(tokens)
        )

    def accept(self, platform: str, count: int) -> None:
        """Let messages wait in the database, and nothing else."""
        from bench.accepting import accept_in_process
        from rme.core.cache import TtlCache

        TtlCache.clear_all()
        self.scene.clear()
        people = self.people[platform]
        accept_in_process(
            self.scene,
            count,
            lambda index: {
                "channel": "PUSH",
                "category": "TRANSACTIONAL",
                "to": [{"contactId": people[index % DEVICES]}],
                "content": {"title": TITLE, "body": BODY.format(index), "data": DATA},
            },
        )

    def job(self, platform: str, count: int) -> dict[str, Any]:
        """Write what a peer is to send: the same payloads to the same devices."""
        import orjson
        from django.conf import settings

        from push import vapid

        common = {"port": self.server.port, "ca": str(self.server.ca)}
        tokens = self.tokens[platform]
        numbers = range(count)
        match platform:
            case "IOS":
                alert = {"title": TITLE}
                given = {"sound": "default"}
                messages: list[dict[str, Any]] = [
                    {
                        "token": tokens[n % DEVICES],
                        "payload": {
                            "aps": {"alert": {**alert, "body": BODY.format(n)}, **given},
                            "data": DATA,
                        },
                    }
                    for n in numbers
                ]
                names = {"key_id": apns.KEY, "team_id": apns.TEAM, "topic": "com.example.app"}
                return {**common, **names, "key": apns.key_pem(), "messages": messages}
            case "ANDROID":
                messages = [
                    {
                        "token": tokens[n % DEVICES],
                        "title": TITLE,
                        "body": BODY.format(n),
                        "data": DATA,
                        "collapse_key": str(UUID(int=n)),
                    }
                    for n in numbers
                ]
                account = orjson.loads(fcm.account(self.server.port))
                return {**common, "account": account, "messages": messages}
        messages = [
            {
                "subscription": orjson.loads(tokens[n % DEVICES]),
                "payload": orjson.dumps(
                    {
                        "title": TITLE,
                        "body": BODY.format(n),
                        "data": DATA,
                        "tag": str(UUID(int=n)),
                    }
                ).decode(),
                "topic": f"{n:032d}",
            }
            for n in numbers
        ]
        keys = {
            "vapid_private_key": settings.VAPID_PRIVATE_KEY.rstrip("="),
            "vapid_public_key": vapid.public_key(),
        }
        return {**common, **keys, "messages": messages}


def check(count: int) -> None:
    """Check that each message has one accepted attempt, and is sent."""
    from messaging.models import Attempt, Delivery

    assert Delivery.objects.filter(status="SENT").count() == count
    assert Attempt.objects.filter(outcome="Accepted").count() == count
    assert Attempt.objects.count() == count
