"""What is stored when a history has come to rest, beside what the world knows."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from django.conf import settings

from messaging.delivery.manual_review import Decision
from messaging.models import Attempt, Delivery, Event, Message
from messaging.store import event_view
from rme.crm.models import Contact
from tests.simulation.world.database import CATEGORIES
from tests.simulation.world.history import History
from tests.simulation.world.provider import Taken

HELD = {name for name, on_unknown in CATEGORIES if on_unknown == "HOLD"}
IN_DOUBT = (None, "Unknown")
RESENDS = len(settings.UNKNOWN_BACKOFF_SECONDS)
_ALL_EVENTS = f"SELECT * FROM {event_view.select('true', 'true', 'true')} e ORDER BY at, id"


@dataclass
class Sent:
    """An attempt, with what the provider knows of it."""

    row: Attempt
    taken: Sequence[Taken]
    reported: set[str]
    calls: int
    """How often it was handed over."""


class State:
    """What is stored when the world has come to rest, beside what the world knows."""

    def __init__(self, history: History) -> None:
        self.history, self.world = history, history.world
        self.deliveries = {row.pk: row for row in Delivery.objects.all()}
        taken: defaultdict[str, list[Taken]] = defaultdict(list)
        for each in self.world.taken:
            taken[each.attempt_id].append(each)
        rows = {str(row.pk): row for row in Attempt.objects.order_by("started_at", "pk")}
        reported, calls = self.world.reported, self.world.calls
        self.attempts = {
            key: Sent(row, taken[key], reported.get(key, set()), calls.get(key, 0))
            for key, row in rows.items()
        }
        self.of_delivery: defaultdict[object, list[Sent]] = defaultdict(list)
        for sent in self.attempts.values():
            self.of_delivery[sent.row.delivery_id].append(sent)
        self.events: list[Event] = list(Event.objects.raw(_ALL_EVENTS))
        self.kinds: defaultdict[object, list[Event]] = defaultdict(list)
        for event in self.events:
            self.kinds[event.delivery_id].append(event)

    @cached_property
    def first_delivered(self) -> set[UUID]:
        """Return the messages that go to the next channel if they are not confirmed in time."""
        rows = Message.objects.filter(fallback_after__isnull=False)
        return set(rows.values_list("pk", flat=True))

    @cached_property
    def people(self) -> dict[str, Contact]:
        return {str(each.pk): each for each in self.history.stage.people}


Finding = Iterator[str]


def is_held(category: str, channel: str) -> bool:
    """Return whether what is unknown waits for a person; push messages never do at once."""
    return category in HELD and channel != "PUSH"


def is_resend(event: Event) -> bool:
    return decision_of(event) in ("RESEND", Decision.SEND_AGAIN)


def decision_of(event: Event) -> str:
    return str((event.detail or {}).get("decision", ""))
