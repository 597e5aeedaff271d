"""An account whose provider is polled for receipts, and when."""

from collections import Counter
from itertools import count
from urllib.parse import parse_qs

import orjson
import pytest

from messaging.feedback import polling
from messaging.models import ProviderReference
from rme.core.db import clock
from tests.clocks import StandingClock
from tests.fakes import http1
from tests.fakes.http1 import Http1Server
from tests.messaging.feedback.sms_scene import Scene
from tests.rest import message, work


class Twilio(Scene):
    """Twilio as it is asked: what it says of each message, by the number it went to."""

    def __init__(self, org, **fields):
        super().__init__(org, "twilio", **{"settings": {"status_by": "POLL"}, **fields})
        self.server = Http1Server(self._answer)
        self.numbers, self.sids = {}, count(1)
        self.told = {"status": "delivered"}
        self.by_number = {}
        self.asked = Counter()
        self.refuses = 0

    def _answer(self, connection, seen):
        if seen.method == "POST":
            sid = f"SM{next(self.sids)}"
            self.numbers[sid] = parse_qs(seen.body.decode())["To"][0]
            return http1.respond(connection, 201, orjson.dumps({"sid": sid}))
        if self.refuses:
            return http1.respond(connection, self.refuses, b'{"status": 429, "code": 20429}')
        number = self.numbers[seen.path.rpartition("/")[2].removesuffix(".json")]
        self.asked[number] += 1
        return http1.respond(connection, 200, orjson.dumps(self.by_number.get(number, self.told)))

    def send_all(self, api, people):
        """Send a message to each."""
        api.bulk([message(person, channel="SMS") for person in people])
        work(self.transport)

    def poll(self):
        """Ask what is due, once; gives how many messages that were."""
        return polling.poll_batch(self.transport)[0]


def stop_clock(patch: pytest.MonkeyPatch) -> None:
    """Let the process's clock stand: how long a message waits is told by it to the second."""
    clock.now()  # so that it stands at the time of this call
    StandingClock(patch, clock)


def due():
    """Let it be time to ask, whatever the age of messages."""
    ProviderReference.objects.filter(ask_at__isnull=False).update(ask_at=clock.now())


def waits():
    """Return in how many seconds each message is polled; None for never again."""
    now = clock.now()
    rows = ProviderReference.objects.order_by("id").values_list("ask_at", flat=True)
    return [at and round((at - now).total_seconds()) for at in rows]
